"""Agents fork where they doubt after a tool's answer; what attempts share is credited with all of theirs.

Title: Agentic Reinforced Policy Optimization
Paper: arXiv 2507.19849 (2025)
Claim: Better than trajectory-level RL on 13 benchmarks of reasoning and search, with half of its tool calls.
Reading: See the mechanism for the rule of forks, whose constants are the release's: 16 attempts, 8 of them whole, at
    most 5 calls of tools. Credit is soft, plain GRPO over whole attempts, where a token that several share counts as
    often; `rule=mean` is the paper's hard credit. No KL, no bonus on entropy. Of the release's eight optimizer steps
    per draw four fit. Tools are those of a store, looked up and written to.
Left out: The penalty of -1 for a wrong format and the bonus of 0.1 for the use of two tools, which the world's pay does
    not know.
Acts: share/branched > 0 and fact/doubt_rise != 0 and shared_token_share > 0 and clipped_share > 0
"""

from __future__ import annotations

from strop.generate.agents.chat import Chat
from strop.generate.strategies.trees.tool_forks import ToolForks
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip

_CALLS = 5  # of tools; a last reply may follow


def arpo_agentic(
    setting: Setting = Setting(world="keyvalue:4", group_size=16),
    chance: float = 0.5,  # of a fork where doubt is as it was at first
    weight: float = 0.2,  # of doubt that rose
    tokens: int = 20,  # of each reply, over which doubt is summed
    rule: str = "sum",  # soft credit of shared tokens; mean: hard
    minibatches: int = 4,  # optimizer steps per draw
) -> Run:
    """group_size attempts, of which up to a half branch off from others."""
    return setting.run(
        "arpo_agentic",
        AlongTree(GroupStandard(), rule),
        (Clip(),),
        agent=Chat(_CALLS + 1),
        strategy=ToolForks(max(setting.group_size // 2, 1), chance, weight, tokens),
        minibatches=minibatches,
    )
