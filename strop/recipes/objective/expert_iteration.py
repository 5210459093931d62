"""Imitate the attempts that were right, each way to the answer once, and nothing else.

Title: Teaching Large Language Models to Reason with Reinforcement Learning
Paper: arXiv 2403.04642 (2024)
Claim: Expert iteration does best in most settings and needs about as many samples as PPO, of the order of a million.
Reading: Two attempts are the same way to an answer if they make the same calculations in the same order. The paper fits
    all successes of all rounds at once; here a round is a step, and half of what it fits are new successes.
Left out: Rounds that start again from the first weights.
Acts: kept_share < 1 and replayed_share > 0
"""

from __future__ import annotations

from strop.filter.gates.distinct import Distinct
from strop.filter.gates.successes_only import Successes
from strop.recipes.setting import Setting
from strop.replay.mostly_recent import MostlyRecent
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.sequence_mean import SequenceMean


def expert_iteration(
    setting: Setting = Setting(),
    distinct: bool = True,  # each way to an answer once
    recent: float = 0.5,  # share of new successes in what a step fits
) -> Run:
    """Keep what succeeded and raise its likelihood; every kept attempt counts the same. `distinct` drops duplicates.

    Of what a step fits, a share `recent` is new, and the rest are successes of earlier steps.
    """
    gates = (Successes(), Distinct()) if distinct else (Successes(),)
    parts = {"gates": gates, "reduction": SequenceMean(), "buffer": MostlyRecent(recent, seed=setting.seed)}
    return setting.run("expert_iteration", Constant(), (Likelihood(),), **parts)
