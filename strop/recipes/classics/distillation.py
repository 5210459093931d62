"""On-policy distillation (GKD): a teacher scores every token of the student's own rollouts by reverse KL.

Title: On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes
Paper: arXiv 2306.13649 (2023)
Claim: A student that learns from a teacher's feedback on its own outputs is better than one that imitates the
    teacher's outputs.
Reading: Reverse KL on sampled tokens, as a policy gradient. Rewards are recorded and not trained on.
Left out: Other divergences, and mixtures of the teacher's and the student's outputs.
Acts: teacher_kl != 0 with teacher=MODEL
"""

from __future__ import annotations

from strop.recipes.environment_specs import is_answered, measured
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.distillation import Distillation


def distillation(
    setting: Setting = Setting(),
    *,
    teacher: str,  # model folder of the teacher, with the same vocabulary as the student
) -> Run:
    """Reverse KL to `teacher`, a model folder such as runs/NAME/checkpoints/step-100; rewards are only recorded."""
    run = setting.run("distillation", Constant(), (Distillation(named_model("teacher", teacher)),))
    run.rewards = run.rewards if is_answered(run.envs) else (measured(run.envs),)
    return run
