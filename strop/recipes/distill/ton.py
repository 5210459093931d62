"""Answers with and without thoughts are shown, then GRPO finds out where thinking pays.

Title: Think or Not? Selective Reasoning via Reinforcement Learning for Vision-Language Models
Paper: arXiv 2505.16854 (2025)
Claim: Completions get up to 90 % shorter than with GRPO, without loss of accuracy or even with a gain.
Reading: The task's answer pays 1 and the format 1, which an empty thought satisfies as well as a long one; there is no
    reward for brevity. A task's thought is left out by the hash of its name. GRPO as in its own recipe.
Left out: Vision, and the rewards for actions on screens.
Acts: warmup/dropped_share > 0 and reward/skipped > 0 and reward/formatted > 0 with shown=3
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.format import Formatted
from strop.filter.rewards.skipped import Skipped
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.thought_dropout import ThoughtDropout
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def ton(
    setting: Setting = Setting(world="arithmetic:2"),
    shown: int = 20,  # steps of demonstrations before
    dropped: float = 0.5,  # share of tasks that are shown without a thought
    kl: float = 0.04,  # weight of the penalty to the reference
) -> Run:
    """Thoughts are dropped in demonstrations; whether to think is left to the rewards."""
    run = setting.run("ton", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), reduction=SequenceMean())
    before = taught(setting, "ton", shown)
    if before is not None:
        before = replace(before, agent=ThoughtDropout(Demonstrate(least=1.0), dropped, setting.seed))
    return replace(run, rewards=(*run.rewards, Formatted(), Skipped()), warmup=before)
