"""An agent that also learns to foresee what its world answers.

Title: ECHO: Terminal Agents Learn World Models for Free
Paper: arXiv 2605.24517 (2026)
Claim: Success on TerminalBench 2.0 about doubles: 2.70 to 5.17 % at 8B, 5.17 to 10.79 % at 14B.
Reading: Every attempt teaches this, whatever its reward, so groups without contrast are kept.
Left out: Terminals: the worlds here are the package's own, and none of them marks its warnings and format hints, which
    the paper does not learn (`Turn.aux["hints"]`).
Acts: world_nll > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.echo import Echo


def echo_env(
    setting: Setting = Setting(world="guess:1"),
    foresight: float = 0.05,  # weight of the world's words; above 0.05 learning stalled in the paper
) -> Run:
    """GRPO on what the policy wrote, likelihood on what the world said; made for worlds of several turns."""
    return setting.run("echo_env", GroupStandard(), (Clip(0.2, 0.28), Echo(foresight)))
