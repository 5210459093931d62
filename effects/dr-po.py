"""DR-PO (2404.08495), resets to states of demonstrations, against the same PPO from the prompt.

On countdown:4, where the first number decides, it lost 0.036: what a demonstration begins with is never practised.
Papers: dr-po
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.agents.wrong_demonstration_control import DemonstrateAnother
from strop.recipes.rollout.dr_po import ResetToDemonstration, dr_po
from strop.recipes.setting import Setting
from strop.run import Run


def _setting(setting: Setting) -> Setting:
    return replace(setting, env="arithmetic:6", learning_rate=5e-5, heldout_tasks=384)


def treatment(setting: Setting) -> Run:
    """Every rollout begins within the environment's own demonstration."""
    return dr_po(_setting(setting))


def control(setting: Setting) -> Run:
    """The same without resets, which is PPO."""
    return dr_po(_setting(setting), share=0.0)


def negative(setting: Setting) -> Run:
    """Every rollout begins within the working of another task."""
    run = treatment(setting)
    return replace(run, strategy=ResetToDemonstration(DemonstrateAnother(run.envs)))


experiment = Experiment(
    key="dr-po",
    claim="At equal sampled tokens, PPO from states of demonstrations has a higher mean held-out accuracy over the run "
    "than PPO from the prompt.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
    metric="heldout_area",
)
