"""SFT: supervised fine-tuning on environment demonstrations.

Acts: share/teacher > 0 and nll > 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.environment_specs import is_answered, measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood


def sft(setting: Setting = Setting(group_size=1, groups_per_step=64)) -> Run:
    """One demonstration per task; the loss is its negative log-likelihood."""
    run = setting.run("sft", Constant(), (Likelihood(),), agent=Demonstrate())
    run.rewards = run.rewards if is_answered(run.envs) or setting.reward else (measured(run.envs),)
    return run
