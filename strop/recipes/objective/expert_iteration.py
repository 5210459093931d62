"""Expert iteration: imitate the attempts that were right, and nothing else."""

from __future__ import annotations

from strop.filter.gates.successes import Successes
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.likelihood import Likelihood


def expert_iteration(setting: Setting = Setting()) -> Run:
    """Keep what succeeded, raise its likelihood."""
    return setting.run("expert_iteration", Constant(), (Likelihood(),), gates=(Successes(),))
