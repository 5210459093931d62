"""GSPO: sequence-level importance ratios and clipping in place of GRPO's token-level ones.

Title: Group Sequence Policy Optimization
Paper: arXiv 2507.18071 (2025)
Claim: More stable and efficient than GRPO, also for mixtures of experts without routing replay.
Reading: A training batch is split into four minibatches, as in the paper.
Acts: clipped_share > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.gspo import Gspo
from strop.training.reductions.means import SequenceMean


def gspo(setting: Setting = Setting(), minibatches: int = 4) -> Run:
    """One length-normalized ratio per rollout; several optimizer steps per batch, so that clipping has an effect."""
    return setting.run("gspo", GroupStandard(), (Gspo(),), reduction=SequenceMean(), minibatches=minibatches)
