"""REINFORCE on what a teacher's logits say that each token earned; no task is judged.

Title: Teacher Forcing Recovers Reward Functions for Text Generation
Paper: arXiv 2210.08708 (2022)
Claim: A reward that a teacher-forced model implies trains generators on prompts without answers, better than others do.
Reading: Returns are divided by 100 and held within 1, as released, with its baseline. The next state's plain maximum is
    taken. One attempt per task, because siblings are not compared. What the world would have paid is logged and weighs
    nothing.
Left out: A behaviour policy kept for 5000 updates, with importance weights: each draw is of the current weights.
Acts: teacher_regret < 0 and credit_within > 0 with teacher=MODEL
"""

from __future__ import annotations

from strop.models.names import model_folder
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.teacher_forced import TeacherForced
from strop.training.losses.reinforce import Reinforce


def teacher_forcing_rewards(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    *,
    teacher: str,  # folder of a model with the same vocabulary, taught on right texts
    divisor: float = 100.0,  # that returns are divided by
    has_baseline: bool = True,  # the teacher's own expectation is subtracted
) -> Run:
    """`teacher` is a folder with a model of the same vocabulary, as runs/NAME/checkpoints/step-100 of recipe sft."""
    advantage = TeacherForced(str(model_folder(teacher)), divisor, has_baseline=has_baseline)
    run = setting.run("teacher_forcing_rewards", advantage, (Reinforce(),))
    run.rewards = (measured(run.worlds),)
    return run
