"""Imitate the attempts that were right, each way to the answer once, and nothing else.

Title: Teaching Large Language Models to Reason with Reinforcement Learning
Paper: arXiv 2403.04642 (2024)
Claim: Expert iteration does best in most settings and needs about as many samples as PPO, of the order of a million.
Reading: Two attempts are the same way to an answer if they make the same calculations in the same order.
Left out: Successes carried over from earlier rounds, and rounds that start again from the first weights.
"""

from __future__ import annotations

from strop.filter.gates.distinct import Distinct
from strop.filter.gates.successes import Successes
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.likelihood import Likelihood
from strop.train.reductions.sequence_mean import SequenceMean


def expert_iteration(setting: Setting = Setting(), distinct: bool = True) -> Run:
    """Keep what succeeded and raise its likelihood; every kept attempt counts the same. `distinct` drops duplicates."""
    gates = (Successes(), Distinct()) if distinct else (Successes(),)
    return setting.run("expert_iteration", Constant(), (Likelihood(),), gates=gates, reduction=SequenceMean())
