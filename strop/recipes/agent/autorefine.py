"""Search, note what was found, search again or answer; a noted answer that was not given still earns a little.

Title: Search and Refine During Think: Autonomous Retrieval-Augmented Reasoning of LLMs
Paper: arXiv 2505.11277 (2025)
Claim: On seven sets of questions a 3B model answers 6.9 points more than the best search agents before it.
Reading: F1 of the answer, or 0.1 where it is 0 and a note holds the answer; groups of 5, at most 5 turns, a
    penalty of 0.001 to the reference, nothing for layout, and only the policy's own tokens trained: all as released.
    A note is the working of a completion that read what was found: the bundled model has no other marks for it. Search
    is
    BM25 in a collection of made-up facts, one of them for each query. The bundled model has never searched, so a short
    supervised run shows it how, until it answers half: of 160 rollouts then made 3 earned by a note alone, and none
    after 20 steps of it, when nearly all answers are right.
Left out: A dense index of Wikipedia, three documents for each query.
Acts: fact/refined > 0 and turns > 1 with warmup_steps=8, env=search:1
"""

from __future__ import annotations

from dataclasses import replace

from strop.environments.bundled.search import Search
from strop.errors import ConfigurationError
from strop.filter.rewards.search_answer_f1 import Refined
from strop.generate.agents.chat import Chat
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_envs
from strop.roles import Environment
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def autorefine(
    setting: Setting = Setting(env="search:2", group_size=5),
    found: float = 0.1,  # for an answer that was noted and not given
    turns: int = 5,  # maximum number of turns of a rollout
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
    warmup_steps: int = 8,  # supervised steps on demonstrations before RL
) -> Run:
    """Questions of the search environment, with notes between searches."""
    run = setting.run("autorefine", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), agent=Chat(turns))
    run.warmup = shown(setting, "autorefine", warmup_steps)
    wrap_envs(run, lambda env: (_noting(env),))
    run.rewards = (Refined(found),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run


def _noting(env: Environment) -> Environment:
    if not isinstance(env, Search):
        raise ConfigurationError(f"notes are of what was searched for: env=search:2, got {env.name}:{env.level}")
    return replace(env, style="refine")
