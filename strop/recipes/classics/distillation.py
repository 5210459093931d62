"""On-policy distillation: the student writes, a teacher grades every token.

Title: On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes
Paper: arXiv 2306.13649 (2023)
Claim: A student that learns from a teacher's opinion of its own answers is better than one that imitates the
    teacher's.
Reading: The reverse KL on sampled tokens, as a policy gradient; rewards are only watched.
Left out: Other divergences and mixtures of the teacher's and the student's own texts.
Acts: teacher_kl != 0 with teacher=MODEL
"""

from __future__ import annotations

from strop.models.loading.model_names import model_folder
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.distillation import Distillation


def distillation(
    setting: Setting = Setting(),
    *,
    teacher: str,  # folder of a better model with the same vocabulary
) -> Run:
    """`teacher` is a folder with a better model of the same vocabulary, as runs/NAME/checkpoints/step-100.

    Rewards are only watched.
    """
    return setting.run("distillation", Constant(), (Distillation(str(model_folder(teacher))),))
