"""What failed attempts lack is practised in a world of its own by an adapter of its own, and a router picks adapters.

Title: TRACE: Capability-Targeted Agentic Training
Paper: arXiv 2604.05336 (2026)
Claim: 14.1 points more on tau2-bench and 7 more perfect scores in ToolSandbox; 9.2 and 7.4 points over GRPO and GEPA.
Reading: The ranking is ours: the share of failed attempts that lack a skill, less that of successful ones, by most of
    10 labels. A skill is practised at the level at which the first weights succeed in 20 to 60 %; all that are lacking
    are trained side by side, GRPO with 8 groups of 8 in all. Attempts at the setting's world are labelled and never
    trained on; it alone is measured, with the router. Rules label and route: the bundled model reads no descriptions.
Left out: Worlds and skills written by a model: those of the bundled store are given. Adapters one after the other.
Acts: practised > 0 and lacking/add > 0 and grad_norm/add > 0 with after=16, probes=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.multi_agent.skill_practice import Practice
from strop.environments.multi_agent.store_skills import SKILLS, described
from strop.errors import ConfigurationError
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.per_policy import EnginePerVoice
from strop.generate.llm_clients.procedural import Procedural
from strop.generate.strategies.independent import Independent
from strop.recipes.agent.trace.agent import PicksVoice
from strop.recipes.agent.trace.gate import SpokenBy
from strop.recipes.agent.trace.strategy import VoicePerWorld
from strop.recipes.agent.trace.task_generator import Lacking
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.roles import Adviser
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.trainer_per_voice import TrainerPerVoice

_RULES = "strop.environments.multi_agent.store_skills"
_LEVELS = range(1, 7)


def trace(
    setting: Setting = Setting(world="keyvalue:4"),
    labels: str = "rules",  # who says what attempts lack: rules, itself (the first weights), or http://HOST:PORT/v1#MODEL
    router: str = "rules",  # who picks an adapter for a task: the same
    passes: int = 10,  # labels of each attempt
    after: int = 64,  # attempts that are labelled before skills are ranked
    most: int = 3,  # skills that are practised
    low: float = 0.2,  # least success of the first weights where a skill is practised
    high: float = 0.6,  # and most
    probes: int = 16,  # attempts of theirs at each world that is considered
    lora: int = 8,  # rank of each skill's adapters
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """GRPO of an adapter for each skill; the first weights stay as they are."""
    run = setting.run("trace", GroupStandard(), (Clip(clip, clip),))
    target, skills = run.worlds, tuple(SKILLS)
    if any(world.name != "keyvalue" for world in target):
        raise ConfigurationError(
            f"trace knows the skills of stores alone: use world=keyvalue:LEVEL, got {setting.world}"
        )
    practice = tuple(Practice(skill, level, setting.seed) for skill in skills for level in _LEVELS)
    voices = ("base", *skills)
    trainers = tuple(
        TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, lora=lora) for _ in voices
    )
    run.worlds = (*target, *practice)
    run.sampler = WithWritten(Uniform(target), share=1.0)
    run.writer = Lacking(_asked(labels, "lacking"), practice, passes, after, most, (low, high), probes)
    run.strategy = VoicePerWorld(Independent(), tuple((f"practice {skill}", skill) for skill in skills))
    run.gates = (SpokenBy(skills),)
    run.engine = EnginePerVoice(voices, tuple(engine_on(setting.device) for _ in voices))
    run.trainer = TrainerPerVoice(voices, trainers)
    picks = PicksVoice(skills, described(skills), _asked(router, "chosen"))
    run.evaluation = replace(run.evaluation, agent=picks, worlds=target)
    return run


def _asked(text: str, rule: str) -> Adviser | None:
    return Procedural(f"{_RULES}:{rule}") if text == "rules" else parse_adviser(text)
