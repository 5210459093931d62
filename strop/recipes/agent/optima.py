"""Two policy names debate; the best talk of each task, by success, brevity and readability, is imitated.

Title: Optima: Optimizing Effectiveness and Efficiency for LLM-Based Multi-Agent System
Paper: arXiv 2410.08115 (2024)
Claim: Up to 2.8 times the performance with less than a tenth of the tokens, where two agents exchange information.
Reading: The form that fine-tunes in rounds (iSFT), on debates: of ten talks about a task the best, if it reaches 0.6,
    and of those the best 70 %; a round is a step. price and gain are the release's for mathematics. Readability is the
    loss under the model training began with, where it was said; a loss below plain counts as plain, because the bundled
    model's is far below a nat. A talk of 8 tokens is too short here (40 in the release), and a policy name repeats
    itself only where it says what it said itself. Talks that are not imitated keep their place in the mean over tokens.
Left out: The tree of turns and its preference pairs (iDPO), the pool of formats for a first round, and rounds that
    start again from the first weights.
Acts: turns > 1 and kept_share < 1 and reward/readable > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.agents.debate import Debate
from strop.generate.interfaces import Player
from strop.generate.strategies.independent import Independent
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate, Reward, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import REFERENCE_LOGPROBS
from strop.types import FloatArray, GateResult, Group, Rollout, Start

# Optima's selection (2410.08115): of all rollouts of a task the best one, if it is good enough.


@dataclass(frozen=True)
class Best(Gate):
    """Keep the rollout of the largest reward, the first of equals; drop the group if that is less than `least`."""

    least: float = 0.6  # reward of a rollout that is kept

    def __call__(self, group: Group) -> GateResult:
        best = max(group.scored, key=lambda rollout: rollout.reward)
        if not is_right(best.reward, self.least):
            return GateResult(None, f"no reward reaches {self.least:g}")
        return GateResult(replace(group, rollouts=[best]), f"kept the best of {len(group.scored)} rollouts")


# Optima's pay for readable talk (2410.08115): the inverse of the loss of its least likely turn.
#
# The loss is noted by the strategy `TurnLosses`. The release divides by the loss as it is, of some nats per token; here
# a loss below that of plain text is as readable as text can be, or a sure model would be paid without limit.

_LONGEST = 2000  # tokens of a talk, as released


@dataclass(frozen=True)
class Readable(Reward):
    """gain / max(loss / plain, 1); 0 where a policy name repeats itself, -1 where nothing was said or more than 2000
    tokens.

    The release also pays nothing where one policy name says what another said; here that is agreement.
    """

    gain: float = 0.8  # for plain text
    plain: float = 1.0  # loss of plain text, in nats per token
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.plain <= 0:
            raise ConfigurationError(f"Readable needs a loss of plain text > 0, got {self.plain}")

    def __call__(self, group: Group) -> list[float]:
        return [self._term(rollout) for rollout in group.rollouts]

    def _term(self, rollout: Rollout) -> float:
        if not 0 < rollout.num_tokens <= _LONGEST:
            return -1.0
        if "turn_loss" not in rollout.facts:
            raise ConfigurationError(f"rollout {rollout.id} has no turn_loss: use the strategy TurnLosses")
        return 0.0 if repeats_itself(rollout) else self.gain / max(rollout.facts["turn_loss"] / self.plain, 1.0)


def repeats_itself(rollout: Rollout) -> bool:
    """Whether some policy name says the same twice, blanks and capitals aside."""
    said = [(turn.sampling.policy_name, turn.message.content.strip().lower()) for turn in rollout.turns]
    return len(set(said)) < len(said)


# Optima's price of talking (2410.08115): a rollout's tokens as a share of its longest sibling's.


@dataclass(frozen=True)
class TokenShare(Reward):
    """-price * tokens / most tokens of a sibling, all policy names together; -1 for a talk that is no longer than
    `shortest`.

    Of two rollouts that are equally good the shorter one is better, and the longest one pays exactly the price.
    """

    price: float = 0.4  # of being the longest
    shortest: int = 40  # tokens that are too few to be a talk
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        most = max((rollout.num_tokens for rollout in group.rollouts), default=0)
        return [self._term(rollout, most) for rollout in group.rollouts]

    def _term(self, rollout: Rollout, most: int) -> float:
        return -1.0 if rollout.num_tokens <= self.shortest else -self.price * rollout.num_tokens / most


# Optima's readability (2410.08115): how unlikely a talk's least likely turn is under the model training began with.
#
# Reading: the release scores each utterance alone; here it stands where it was said, so that no text is tokenized
# again.


@dataclass(frozen=True)
class TurnLosses(Strategy):
    """The rollouts of `inner`, each with the fact `turn_loss`: the largest mean of -log p over the tokens of a turn."""

    inner: Strategy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await self.inner(group, starts, play)
        told = [rollout for rollout in rollouts if rollout.is_scored and rollout.num_tokens]
        for rollout, notes in zip(told, await play.look(told, frozenset({REFERENCE_LOGPROBS})), strict=True):
            rollout.facts["turn_loss"] = largest_loss(rollout, notes[REFERENCE_LOGPROBS.name])
        return rollouts


def largest_loss(rollout: Rollout, logprobs: FloatArray) -> float:
    """Of a rollout's turns, the largest mean of -log p; `logprobs` [N] are of all its written tokens."""
    ends = np.cumsum([len(turn.tokens) for turn in rollout.turns])
    turns = np.split(logprobs.astype(np.float64), ends[:-1])
    return max(float(-turn.mean()) for turn in turns if len(turn))


# Optima's second selection (2410.08115): of what a batch holds, only the best share is imitated.


@dataclass(frozen=True)
class TopShare(Advantage):
    """Advantage 1 for the `share` of the batch's rollouts with the largest rewards, at least for one, and 0 for the
    others.

    Earlier ones go first among equals.
    """

    share: float = 0.7  # of the rollouts of a batch

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"TopShare needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        ranked = sorted(rollouts, key=lambda rollout: -rollout.reward)
        count = max(int(self.share * len(rollouts) + 1e-9), 1)
        for place, rollout in enumerate(ranked):
            rollout.set_advantage(float(place < count))


def optima(
    setting: Setting = Setting(group_size=10),
    rounds: int = 2,  # how often the solver may hear of the examiner
    price: float = 0.4,  # of the longest talk
    gain: float = 0.8,  # for a talk that reads like plain text
    plain: float = 0.1,  # loss of plain text, in nats per token
    least: float = 0.6,  # reward of a talk that is imitated
    share: float = 0.7,  # of the best talks of a batch
) -> Run:
    """Imitation of what was selected: a policy gradient whose advantage is 1 or 0."""
    agent = Debate(rounds)
    run = setting.run(
        "optima",
        TopShare(share),
        (Reinforce(),),
        agent=agent,
        strategy=TurnLosses(Independent()),
        gates=(Best(least),),
    )
    run.rewards = (*run.rewards, TokenShare(price, shortest=8), Readable(gain, plain))
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
