"""DPO on pairs made by weights that are renewed once in several steps.

Title: Bridging Offline and Online Reinforcement Learning for LLMs
Paper: arXiv 2506.21495 (2025)
Claim: Renewing the generator now and then is as good as being online, and both are far above offline.
Reading: period 1 is online DPO, one as long as the run is offline.
Left out: Mixtures of verifiable and judged rewards.
Acts: kept_share < 1 and margin != 0 and lag > 0
"""

from __future__ import annotations

from strop.control.admission.periodic import Periodic
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean


def semi_online(
    setting: Setting = Setting(),
    period: int = 5,  # steps on what one version wrote
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """period 1 is online DPO, one as long as the run is offline."""
    return setting.run(
        "semi_online",
        Constant(),
        (Dpo(beta),),
        gates=(BestAndWorst(),),
        reduction=SequenceMean(),
        admission=Periodic(period, setting.steps),
    )
