"""Passages to quote from, few of them first and many later; paid for the answer and for what is cited.

Title: RAG-RL: Advancing Retrieval-Augmented Generation via RL and Curriculum Learning
Paper: arXiv 2503.12759 (2025)
Claim: Joint F1 on MuSiQue of 61.4 with easy tasks first, 56.4 with a linear order and 53.8 with hard ones alone.
Reading: 5 for the answer, 5 times the recall of gold passages, less 2 for each other one, and 1 for the form. Passages
    are steps of workings, cited by quoting them. By the paper's own control the order matters less than that easy tasks
    are mixed in. Its sizes were not found; GRPO's defaults stand in for them. The bundled model has never chosen among
    passages, so a short supervised run comes before; the paper's model needs none.
Acts: uneven > 0 and reward/citations != 0 with warmup_steps=1
"""

from __future__ import annotations

from strop.control.samplers.scheduled import Scheduled, Shape
from strop.filter.rewards.citations import Citations
from strop.filter.rewards.env_reward import Earned
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def rag_rl(
    setting: Setting = Setting(world="passages:1+passages:3+passages:5+passages:8"),
    shape: Shape = "min-max",  # or linear, or max: the hardest alone
    is_shuffled: bool = False,  # the control: the same levels in an order left to chance
    kl: float = 0.04,  # weight of the penalty to the reference
    warmup_steps: int = 6,  # of supervised training first
) -> Run:
    """Worlds from easy to hard; the schedule ends with the last draw of the last step."""
    run = setting.run("rag_rl", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean())
    draws = setting.steps * setting.groups_per_step
    run.sampler = Scheduled(run.worlds, draws, shape, is_shuffled, setting.seed)
    run.rewards = (Earned(weight=5.0), Citations())
    run.warmup = shown(setting, "rag_rl", warmup_steps)
    return run
