"""SFT: supervised fine-tuning on environment demonstrations.

Acts: share/teacher > 0 and nll > 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood


def sft(setting: Setting = Setting(group_size=1, groups_per_step=64)) -> Run:
    """One demonstration per task; the loss is its negative log-likelihood."""
    return setting.run("sft", Constant(), (Likelihood(),), agent=Demonstrate())
