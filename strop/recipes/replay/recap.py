"""Reasoning is practised and general tasks are replayed; objectives that stall or waver gain weight.

Title: Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models
Paper: arXiv 2510.21978 (2025)
Claim: General capabilities are kept and reasoning gets better, with weights that adapt without a second model.
Reading: The equations come from a note on the paper. The window was not found: 10 draws. Each world is an objective:
    the first ones are practised with GRPO, the last is replayed by imitation of its worked answers, standing for
    general data. All worlds are drawn equally often and every task counts the same, so that objectives are averaged.
Left out: Objectives of vision (IoU), and several objectives on one data source.
Acts: share/replayed > 0 and objective_weight/arithmetic:4 != 1 with window=1
"""

from __future__ import annotations

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.by_source import BySource
from strop.generate.strategies.independent import Independent
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.advantages.reweighted import Reweighted
from strop.training.losses.clip import Clip
from strop.training.reductions.group_wise import GroupWise


def recap(
    setting: Setting = Setting(world="arithmetic:4+countdown:3", group_size=4, groups_per_step=16),
    window: int = 10,  # draws over which losses are averaged
    temperature: float = 5.0,  # of the weights; large: all weigh the same
) -> Run:
    """The last world is replayed, all before it are practised; no KL penalty."""
    run = setting.run("recap", Reweighted(GroupStandard(), window, temperature), (Clip(),), reduction=GroupWise())
    if len(run.worlds) < 2:
        raise ConfigurationError(
            f"recap practises some worlds and replays the last: need 2, as A+B, got {setting.world}"
        )
    last = run.worlds[-1]
    run.strategy = BySource(Independent(), Demonstrate(least=1.0), (f"{last.name}:{last.level}",))
    return run
