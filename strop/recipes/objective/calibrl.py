"""CalibRL (2602.20197): own attempts, guided by how sure the policy is of an expert's answer."""

from __future__ import annotations

from strop.generate.agents.demonstrate import Demonstrate
from strop.generate.strategies.demonstrated import Demonstrated
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.calibrated import Calibrated


def calibrl(setting: Setting = Setting(), guidance: float = 0.1, slope: float = 0.5) -> Run:
    """One of the group's attempts is the world's demonstration, which is compared with and never trained on."""
    losses = (Calibrated(guidance, slope),)
    return setting.run("calibrl", Constant(), losses, strategy=Demonstrated(Demonstrate()))
