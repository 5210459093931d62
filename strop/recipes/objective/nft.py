"""NFT (2505.18116): supervised learning on right and wrong attempts alike."""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.nft import Nft


def nft(setting: Setting = Setting(), task_weight: str = "linear", negative_weight: float = 1.0) -> Run:
    """No advantage: the group's pass rate is in the loss; negative_weight 0 imitates right attempts only."""
    return setting.run(
        "nft", Constant(), (Nft(task_weight=task_weight, negative_weight=negative_weight),), gates=(ZeroVariance(),)
    )
