"""What failed rollouts lack is practised in an environment of its own by an adapter of its own, and a router picks
adapters.

Title: TRACE: Capability-Targeted Agentic Training
Paper: arXiv 2604.05336 (2026)
Claim: 14.1 points more on tau2-bench and 7 more perfect scores in ToolSandbox; 9.2 and 7.4 points over GRPO and GEPA.
Reading: The ranking is ours: the share of failed rollouts that lack a skill, less that of successful ones, by most of
    10 labels. A skill is practised at the level at which the first weights succeed in 20 to 60 %; all that are lacking
    are trained side by side, GRPO with 8 groups of 8 in all. Rollouts of the setting's environment are labelled and
    never trained on; it alone is measured, with the router. Rules label and route: the bundled model reads no
    descriptions.
Left out: Environments and skills written by a model: those of the bundled store are given. Adapters one after the
    other.
Acts: practised > 0 and lacking/add > 0 and grad_norm/add > 0 with after=16, probes=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.multi_agent.skill_practice import Practice
from strop.environments.multi_agent.store_skills import SKILLS, chosen, described, lacking
from strop.errors import ConfigurationError
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.per_policy import EnginePerPolicy
from strop.generate.llm_clients.procedural import Procedural, Rule
from strop.generate.strategies.independent import Independent
from strop.recipes.agent.trace.agent import PicksPolicy
from strop.recipes.agent.trace.gate import SpokenBy
from strop.recipes.agent.trace.strategy import PolicyPerEnvironment
from strop.recipes.agent.trace.task_generator import Lacking
from strop.recipes.llm_clients import parse_llm_client
from strop.recipes.setting import Setting
from strop.roles import LLMClient
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.trainer_per_policy import TrainerPerPolicy

_LEVELS = range(1, 7)


def trace(
    setting: Setting = Setting(env="keyvalue:4"),
    labels: str = "rules",  # who says what rollouts lack: rules, itself (the first weights), or http://HOST:PORT/v1#MODEL
    router: str = "rules",  # who picks an adapter for a task: the same
    passes: int = 10,  # labels of each rollout
    after: int = 64,  # rollouts that are labelled before skills are ranked
    most: int = 3,  # skills that are practised
    low: float = 0.2,  # least success of the first weights where a skill is practised
    high: float = 0.6,  # and most
    probes: int = 16,  # rollouts of theirs at each environment that is considered
    lora: int = 8,  # rank of each skill's adapters
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO of an adapter for each skill; the first weights stay as they are."""
    run = setting.run("trace", GroupStandard(), (Clip(clip, clip),))
    target, skills = run.envs, tuple(SKILLS)
    if any(env.name != "keyvalue" for env in target):
        raise ConfigurationError(f"trace knows the skills of stores alone: use env=keyvalue:LEVEL, got {setting.env}")
    practice = tuple(Practice(skill, level, setting.seed) for skill in skills for level in _LEVELS)
    policy_names = ("base", *skills)
    trainers = tuple(
        TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, lora=lora) for _ in policy_names
    )
    run.envs = (*target, *practice)
    run.sampler = WithWritten(Uniform(target), share=1.0)
    run.task_generator = Lacking(_asked(labels, lacking), practice, passes, after, most, (low, high), probes)
    run.strategy = PolicyPerEnvironment(Independent(), tuple((f"practice {skill}", skill) for skill in skills))
    run.gates = (SpokenBy(skills),)
    run.engine = EnginePerPolicy(policy_names, tuple(engine_on(setting.device) for _ in policy_names))
    run.trainer = TrainerPerPolicy(policy_names, trainers)
    picks = PicksPolicy(skills, described(skills), _asked(router, chosen))
    run.evaluation = replace(run.evaluation, agent=picks, envs=target)
    return run


def _asked(text: str, rule: Rule) -> LLMClient | None:
    return Procedural(rule) if text == "rules" else parse_llm_client(text)
