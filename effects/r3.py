"""R3 (2402.05808), starts within demonstrations, where few rollouts from the prompt are right.

On arithmetic:7, where nothing is right from the prompt, nothing came of it: 0.000 in all arms after 300,000 tokens.
Papers: r3
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.agents.wrong_demonstration_control import DemonstrateAnother
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.recipes.rollout.r3 import r3
from strop.recipes.setting import Setting
from strop.run import Run


def treatment(setting: Setting) -> Run:
    """Places within the environment's own demonstration and the prompt, mixed."""
    return r3(replace(setting, env="arithmetic:6", learning_rate=1e-4, heldout_tasks=256))


def control(setting: Setting) -> Run:
    """The same PPO from the prompt alone."""
    return replace(treatment(setting), strategy=Independent())


def negative(setting: Setting) -> Run:
    """The same places within demonstrations of other tasks."""
    run = treatment(setting)
    return replace(run, strategy=ReverseCurriculum(DemonstrateAnother(run.envs)))


experiment = Experiment(
    key="r3",
    claim="Where one rollout in ten from the prompt is right, starts within demonstrations have a higher mean held-out "
    "accuracy over the run than PPO from the prompt at equal sampled tokens.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
    metric="heldout_area",
)
