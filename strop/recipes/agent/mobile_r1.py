"""Mobile-R1: format SFT, then GRPO on single actions after expert prefixes, then GRPO on whole multi-turn rollouts.

Title: Mobile-R1: Towards Interactive Reinforcement Learning for VLM-Based Mobile Agent via Task-Level Rewards
Paper: arXiv 2506.20332 (2025)
Claim: Three stages, the last with rewards for whole tasks, beat two of them on 500 recorded trajectories.
Reading: No formula was found. An action earns 1 for its format, 1 for its kind and 1 for its arguments. A rollout
    earns its outcome and the share of well-formed completions, with one advantage for all its tokens. Stages two and
    three are version ranges of one run. In the action stage the expert's turns are a prefix without loss.
Left out: Screens, and a judge of the outcome: the environment decides.
Acts: warmup/nll > 0 and share/branched > 0 and reward/step_format > 0 and turns > 1 with shown=2, until=1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.format.actions import action_in
from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.single_action import OneAction
from strop.generate.tree_search.branch import branch_of
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.roles import Agent, Player, Reward, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Rollout, Start

# Mobile-R1's format reward (2506.20332): the share of completions that parse as an action.


@dataclass(frozen=True)
class StepFormat(Reward):
    """Share of the sampled completions that are one well-formed tool call or an answer; prefixes do not count."""

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [_share(rollout) for rollout in group.rollouts]


def _share(rollout: Rollout) -> float:
    formed = [action_in(turn.message).is_formed for turn in rollout.turns if len(turn.tokens)]
    return sum(formed) / len(formed) if formed else 0.0


# Mobile-R1's stages (2506.20332): single actions after an expert prefix first, whole rollouts later.


@dataclass(frozen=True)
class ActionsFirst(Strategy):
    """Curriculum over versions: before `until`, a group's rollouts take one action after the same expert prefix.

    The number of prefix turns, from 0 to all but the last, is sampled from the group's first key. The prefix has no
    loss, and the demonstration is not a rollout of the group. If the demonstration fails, the rollouts are whole ones.
    """

    expert: Agent
    actor: Agent  # takes one action
    until: int = 20  # number of versions of the action stage

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __post_init__(self) -> None:
        if self.until < 0:
            raise ConfigurationError(f"ActionsFirst needs until >= 0 versions, got {self.until}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if group.version >= self.until:
            return await together(play(start) for start in starts)
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or not shown.turns:
            return await together(play(start) for start in starts)
        before = int(np.random.default_rng(starts[0].key).integers(len(shown.turns)))
        at = sum(len(turn.tokens) for turn in shown.turns[:before])
        chosen = [branch_of(shown, at, start) if at else start for start in starts]
        return await together(play(start, self.actor) for start in chosen)


def mobile_r1(
    setting: Setting = Setting(env="keyvalue:5"),
    episodes: str = "",  # JSONL file of recorded expert episodes; empty: the environment's demonstrations
    shown: int = 4,  # supervised steps on demonstrations before RL
    until: int = 20,  # number of versions of the action stage
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per training batch
) -> Run:
    """GRPO, first on single actions, then on whole rollouts."""
    run = setting.run(
        "mobile_r1",
        GroupStandard(),
        (Clip(clip, clip),),
        strategy=ActionsFirst(Demonstrate(), OneAction(), until),
        reduction=SequenceMean(),
        minibatches=minibatches,
        warmup=taught(setting, "mobile_r1", shown, episodes),
    )
    run.rewards = (*run.rewards, StepFormat())
    return run
