"""Semi-online DPO: the engines' weights are synchronized once every few training steps.

Title: Bridging Offline and Online Reinforcement Learning for LLMs
Paper: arXiv 2506.21495 (2025)
Claim: Synchronizing the generator now and then is as good as online, and both are far above offline.
Reading: period 1 is online DPO; a period as long as the run is offline DPO.
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
    period: int = 5,  # training steps between two weight synchronizations
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """DPO on the best and the worst rollout of each group, sampled with weights up to `period` steps old."""
    return setting.run(
        "semi_online",
        Constant(),
        (Dpo(beta),),
        gates=(BestAndWorst(),),
        reduction=SequenceMean(),
        admission=Periodic(period, setting.steps),
    )
