"""ZeroSearch: GRPO on search episodes with a simulated search engine whose answers get noisier over the run.

Title: ZeroSearch: Incentivize the Search Capability of LLMs without Searching
Paper: arXiv 2505.04588 (2025)
Claim: With a simulator of 7B parameters a policy does as well as with a real engine, with one of 14B better.
Reading: The noise probability rises from 0 to 0.5 over the run, by the released curve with base 4, sampled for each
    query; at most 5 turns; the reward is the answer's F1 without a format reward, as released. The simulator reads
    question and answer; tasks of a table get the search tool, and `search=` names the texts of the evaluation. By
    default rules replace it and write one fact for each query (five texts of 30 words in the paper), a noisy one about
    another place; simulator=http://HOST:PORT/v1#MODEL asks a model. Evaluation is with the real search, which knows no
    answer. The bundled model has never searched, so a short supervised run on demonstrations comes first.
Left out: The simulator's own fine-tuning; PPO and REINFORCE, which the paper also tries.
Acts: search_noise > 0 and turns > 1 with warmup_steps=10
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.search import Search
from strop.environments.tools.toolbox import Toolbox
from strop.filter.rewards.search_answer_f1 import Refined
from strop.generate.agents.chat import Chat
from strop.recipes.agent.zerosearch.environment import SimulatedSearch
from strop.recipes.named_parts import named_part, named_search, reward_seconds, with_search
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment
from strop.run import Run
from strop.standins.search_engine import found
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def zerosearch(
    setting: Setting = Setting(env="search:1", group_size=5),
    simulator: str = "rules",  # writes search results (a named part)
    search: str = "rules",  # real search, for evaluation: a folder or JSONL file of texts (or a named part)
    start: float = 0.0,  # noise probability at the start of the run
    end: float = 0.5,  # noise probability at the end of the run
    base: float = 4.0,  # base of the noise curve: 1 is linear, larger ones rise later
    turns: int = 5,  # maximum number of turns of a rollout
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
    warmup_steps: int = BundledOnly(14),  # supervised steps on demonstrations before RL
) -> Run:
    """GRPO with a noise curriculum, which ends at the last step."""
    run = setting.run("zerosearch", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), agent=Chat(turns))
    client, seconds = named_part("simulator", simulator, setting, found, ("search",)), reward_seconds(simulator)
    tool = named_search("search", search, setting)
    real = tuple(_search(with_search(env, tool, search)) for env in run.envs)
    run.envs = tuple(SimulatedSearch(env, client, setting.steps, start, end, base, seconds) for env in real)
    run.sampler = Uniform(run.envs)
    run.rewards = (Refined(found=0.0),)
    run.warmup = shown(setting, "zerosearch", warmup_steps)  # with real searches: demonstrations rely on the results
    run.env_seconds = max(run.env_seconds, seconds)
    run.evaluation = replace(run.evaluation, agent=run.agent, envs=real)
    return run


def _search(env: Environment) -> Search | Toolbox:
    assert isinstance(env, Search | Toolbox)
    return env
