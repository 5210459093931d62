"""GRPO and a teacher's opinion of every token, in one loss.

Title: KDRL: Post-Training Reasoning LLMs via Unified Knowledge Distillation and Reinforcement Learning
Paper: arXiv 2506.02208 (2025)
Claim: Better than GRPO alone and than distillation alone, with fewer tokens.
Reading: The joint loss with k2, whose gradient is the reverse KL's; tokens that a mask leaves out keep their place in
    the denominator.
Left out: The variant that puts the teacher's log-ratio into the reward.
Acts: teacher_kl != 0 with teacher=MODEL
"""

from __future__ import annotations

from strop.models.names import model_folder
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.imitation.kdrl import Kdrl


def kdrl(
    setting: Setting = Setting(),
    *,
    teacher: str,  # folder of a better model with the same vocabulary
    estimator: str = "k2",  # k2 (reverse KL) or k3 (forward)
    mask: str = "none",  # none, response (only wrong attempts) or group (only where all are wrong)
    start: float = 5e-3,  # weight of the teacher at first
    floor: float = 1e-3,  # its least weight
    fall: float = 5e-5,  # of its weight in each step
) -> Run:
    """`teacher` is a folder with a better model of the same vocabulary, as runs/NAME/checkpoints/step-100.

    Its weight falls; start 0 and floor 0 is GRPO.
    """
    distilled = Kdrl(str(model_folder(teacher)), estimator, start, floor, fall, mask)
    return setting.run("kdrl", GroupStandard(), (Clip(), distilled))
