"""GHPO: GRPO in which failed groups are resampled with a growing prefix of the solution in the prompt.

Title: GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning
Paper: arXiv 2507.10628 (2025)
Claim: About 5 % better on average than GRPO and curricula, over six mathematics benchmarks.
Reading: A group without a right rollout is resampled with the first 25 % of the solution's characters in the prompt,
    then 50 %, then 75 %; the last one is trained on in any case. Only correctness decides, not the format. Rollouts
    are trained with the prompt that they were sampled with; the release uses another prompt for groups that were solved
    at an earlier hint share. One optimizer step per batch and the mean over tokens, as in the release. The solution is
    the environment's own, or that of the table's row, without its answer, after the word "hint". If all rollouts were
    truncated at the token limit, there is no resampling: truncation says nothing about difficulty.
Left out: The cold start, a fixed hint of 50 % in every prompt of the first steps (disabled in the release).
Acts: hint_share > 0 and share/guided > 0 with env=arithmetic:6
Break: strategy.shares=0,0,0: later waves read no hint
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.concurrency import together
from strop.control.budgets.waves import InWaves
from strop.environments.format.hints import with_hint, working
from strop.environments.needs import SOLUTIONS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.rewards.format import Formatted
from strop.recipes.setting import Setting
from strop.roles import Environment, Gate, Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import GateResult, Group, Message, Metrics, Origin, Rollout, Start

# Only the last wave of a group is trained on: the resampled rollouts replace the failed ones (GHPO).


@dataclass(frozen=True)
class LastComparisonGroup(Gate):
    """Keeps the rollouts in the comparison group of the last rollout."""

    def __call__(self, group: Group) -> GateResult:
        last = group.rollouts[-1].comparison_group
        kept = [rollout for rollout in group.rollouts if rollout.comparison_group == last]
        return GateResult(replace(group, rollouts=kept) if len(kept) < len(group.rollouts) else group)


# GHPO's hints (2507.10628): after a failed wave, the next wave reads more of the solution and is trained with it.
#
# Reading: shares are of the characters of the environment's worked solution, cut anywhere. Hinted rollouts keep their
# prompt; each wave is a comparison group of its own.

HINT = "hint"  # the fact that holds the share of the solution in a rollout's prompt


@dataclass(frozen=True)
class HintLadder(Strategy):
    """A first wave without hints, then waves with the first 25, 50 and 75 % of the worked solution in the prompt."""

    envs: tuple[Environment, ...]
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)  # of the worked solution, in the order of waves

    def __post_init__(self) -> None:
        if (
            not self.shares
            or list(self.shares) != sorted(self.shares)
            or not 0 <= self.shares[0] <= self.shares[-1] < 1
        ):
            raise ConfigurationError(f"HintLadder needs rising shares from 0 to 1, got {self.shares}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.rollouts:
            return await together(play(start) for start in starts)
        rung = len({rollout.comparison_group for rollout in group.rollouts}) - 1
        share = self.shares[min(rung, len(self.shares) - 1)]
        solution = working(self.envs, group.task)
        hint = solution[: round(share * len(solution))]
        messages = with_hint(group.task, hint) if hint else group.task.messages
        return await together(_guided(start, messages, share, play) for start in starts)

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (SOLUTIONS,)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The mean share of the solution in the prompts of trained rollouts."""
        shown = [rollout.facts.get(HINT, 0.0) for group in groups for rollout in group.scored]
        return {"hint_share": sum(shown) / max(len(shown), 1)}


async def _guided(start: Start, messages: tuple[Message, ...], share: float, play: Player) -> Rollout:
    rollout = await play(replace(start, messages=messages, origin=Origin.GUIDED, comparison_group=f"hint {share:g}"))
    return replace(rollout, facts=rollout.facts | {HINT: share})


_SHARES = (0.25, 0.5, 0.75)  # of the solution, in the order of waves
_EPSILON = 1e-4  # added to the standard deviation of rewards


def ghpo(
    setting: Setting = Setting(),
    form: float = 0.5,  # weight of the format reward; correctness has weight 1
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """Up to three more waves, with hints of 25, 50 and 75 % of the solution, until one rollout is right."""
    run = setting.run(
        "ghpo",
        GroupStandard(_EPSILON),
        (Clip(clip, clip),),
        budget=InWaves(setting.group_size, 1 + len(_SHARES), only_when_lost=True),
        gates=(LastComparisonGroup(),),
    )
    run.rewards = (*run.rewards, Formatted(weight=form))
    run.strategy = HintLadder(run.envs, _SHARES)
    return run
