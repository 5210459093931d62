"""Rewards that a taught model's logits imply (2210.08708) against none, and against those of one taught on other texts.

The teacher is the pocket model after supervised training on demonstrations of the same environment, that of the
negative control after as much on demonstrations of other tasks; they are made when they are first needed and kept in
runs/teachers. The student never sees a demonstration, and no rollout is judged. Its own first logits are no negative
control: a student that follows them becomes surer, and with that better.
Papers: teacher-forcing-rewards
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strop.effects import Experiment
from strop.effects.prior_runs import earlier_model
from strop.generate.agents.wrong_demonstration_control import DemonstrateAnother
from strop.recipes.classics.sft import sft
from strop.recipes.reward.teacher_forcing_rewards import teacher_forcing_rewards
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant

ENV = "arithmetic:6"
TEACHER_STEPS = 40
TEACHERS = Path("runs/teachers")


def teacher(device: str, is_right: bool = True) -> str:
    """A folder with the teacher."""

    def run() -> Run:
        sizes = {"steps": TEACHER_STEPS, "checkpoint_every": TEACHER_STEPS, "heldout_every": 0}
        sizes |= {"group_size": 1, "groups_per_step": 64, "heldout_tasks": 32}
        taught = sft(Setting(env=ENV, seed=1000, learning_rate=1e-4, device=device, **sizes))
        return taught if is_right else replace(taught, agent=DemonstrateAnother(taught.envs))

    return earlier_model(TEACHERS / f"arithmetic6-{'sft' if is_right else 'others'}-{TEACHER_STEPS}", run)


def _run(setting: Setting, folder: str) -> Run:
    sizes = {"group_size": 1, "groups_per_step": 64, "heldout_tasks": 256, "heldout_every": 4}
    return teacher_forcing_rewards(replace(setting, env=ENV, **sizes), teacher=folder)


def treatment(setting: Setting) -> Run:
    """Each token earns what the teacher's logits say."""
    return _run(setting, teacher(setting.device))


def control(setting: Setting) -> Run:
    """Every token earns the same."""
    return replace(_run(setting, "pocket"), advantage=Constant())


def negative(setting: Setting) -> Run:
    """Each token earns what the logits say of a model that was shown the working of another task each time."""
    return _run(setting, teacher(setting.device, is_right=False))


experiment = Experiment(
    key="teacher-forcing-rewards",
    claim="At equal sampled tokens and without any judged rollout, rewards from the logits of a model that was taught "
    "on right texts have a higher mean held-out accuracy over the run than none, or than those from a model that was "
    "taught as long on texts of other tasks.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=100_000,
    metric="heldout_area",
)
