"""Worlds are arms: drawn by how unevenly their latest attempts ended, and by how few there were; the rest is GRPO.

Title: DUMP: Automated Distribution-Level Curriculum Learning for RL-based LLM Post-training
Paper: arXiv 2504.09710 (2025)
Claim: Faster and better than uniform sampling on logic puzzles of many difficulties and on mathematics.
Reading: As released: the last 300 attempts of a world, the bonus of UCB1, temperature 0.1, groups of 16, a KL of
    0.001, four minibatches per draw. One mean per attempt, as in GRPO. At that temperature it is nearly greedy, and the
    bonus of a world that was not drawn soon outweighs all.
Left out: Rewards of held-out tasks as advantages, which the release lets in.
Acts: preference > 0 and chance/arithmetic:8 != 0.5 with world=arithmetic:4+arithmetic:8
"""

from __future__ import annotations

from strop.control.samplers.upper_confidence import UpperConfidence
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def dump(
    setting: Setting = Setting(world="arithmetic:1+countdown:4+compose:3+arithmetic:8+countdown:5", group_size=16),
    window: int = 300,  # attempts of each world whose advantages count
    softness: float = 0.1,  # temperature of the choice: the lower, the more the best world is preferred
) -> Run:
    """GRPO on tasks of the world that teaches most now, or was tried least."""
    run = setting.run("dump", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", 0.001)), reduction=SequenceMean())
    run.minibatches = min(4, setting.groups_per_step)
    run.sampler = UpperConfidence(run.worlds, window, softness, setting.seed)
    return run
