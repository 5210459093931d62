"""Optima (iSFT): imitation of the best debate of each task, ranked by success, token count and readability.

Title: Optima: Optimizing Effectiveness and Efficiency for LLM-Based Multi-Agent System
Paper: arXiv 2410.08115 (2024)
Claim: Up to 2.8 times the performance with less than a tenth of the tokens, where two agents exchange information.
Reading: The form that fine-tunes in rounds (iSFT), on debates between two policy names: of ten rollouts of a task the
    best one, if its reward reaches 0.6, and of those in a training batch the best 70 %; a round is a step. price and
    gain are the release's for mathematics. Readability is the loss under the initial model, in context; a loss
    below `plain` counts as `plain`, because the bundled model's is far below 1 nat. A rollout of at most 8 tokens is
    too short here (40 in the release). A policy name repeats itself only where it repeats its own message. Rollouts
    that are not imitated stay in the denominator of the token mean.
Left out: The tree of turns and its preference pairs (iDPO), the pool of formats for a first round, and rounds that
    start again from the first weights.
Acts: turns > 1 and kept_share < 1 and reward/readable > 0 with least=0.1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.agents.debate import Debate
from strop.generate.agents.support.episode_loop import HINTED, TOLD
from strop.generate.strategies.independent import Independent
from strop.models.loading.model_names import BUNDLED
from strop.recipes.named_parts import named_list
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate, Player, Reward, Strategy
from strop.run import Run
from strop.success import reaches
from strop.training.losses.reinforce import Reinforce
from strop.training.requirements import REFERENCE_LOGPROBS
from strop.types import FloatArray, GateResult, Group, Rollout, Start

# Optima's selection (2410.08115): the best rollout of a task, if its reward is high enough.


@dataclass(frozen=True)
class Best(Gate):
    """Keep the rollout of the largest reward, the first of equals; drop the group if it is below `least`."""

    least: float = 0.6  # least reward of a kept rollout

    def __call__(self, group: Group) -> GateResult:
        best = max(group.scored, key=lambda rollout: rollout.reward)
        if not reaches(best.reward, self.least):
            return GateResult(None, f"no reward reaches {self.least:g}")
        return GateResult(replace(group, rollouts=[best]), f"kept the best of {len(group.scored)} rollouts")


# Optima's readability reward (2410.08115): the inverse of the loss of the least likely turn.
#
# The strategy `TurnLosses` records the loss. The release divides by the loss itself, some nats per token; here the loss
# is at least that of plain text, or the reward would grow without limit as the loss goes to 0.

_LONGEST = 2000  # tokens of a rollout, as released


@dataclass(frozen=True)
class Readable(Reward):
    """gain / max(loss / plain, 1); 0 where a policy name repeats itself, -1 for no tokens or more than 2000.

    The release also gives 0 where one policy name repeats another's message; here that is agreement.
    """

    gain: float = 0.8  # reward of plain text
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
    """Whether a policy name writes the same message twice, ignoring case and outer blanks."""
    messages = [(turn.sampling.policy_name, turn.message.content.strip().lower()) for turn in rollout.turns]
    return len(set(messages)) < len(messages)


# Optima's token penalty (2410.08115): a rollout's tokens as a share of its longest sibling's.


@dataclass(frozen=True)
class TokenShare(Reward):
    """-price * tokens / tokens of the longest sibling, all policy names together; -1 for at most `shortest` tokens."""

    price: float = 0.4  # penalty of the longest rollout
    shortest: int = 40  # tokens up to which a rollout is too short
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    is_relative: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        most = max((rollout.num_tokens for rollout in group.rollouts), default=0)
        return [self._term(rollout, most) for rollout in group.rollouts]

    def _term(self, rollout: Rollout, most: int) -> float:
        return -1.0 if rollout.num_tokens <= self.shortest else -self.price * rollout.num_tokens / most


# Optima's readability (2410.08115): the loss of the least likely turn under the initial model.
#
# Reading: the release scores each utterance alone; here it is scored in its context, without re-tokenization.


@dataclass(frozen=True)
class TurnLosses(Strategy):
    """The rollouts of `inner`, each with the fact `turn_loss`: the largest mean of -log p over the tokens of a turn."""

    inner: Strategy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rollouts = await self.inner(group, starts, play)
        written = [rollout for rollout in rollouts if rollout.is_scored and rollout.num_tokens]
        found = await play.look(written, frozenset({REFERENCE_LOGPROBS}))
        for rollout, statistics in zip(written, found, strict=True):
            rollout.facts["turn_loss"] = largest_loss(rollout, statistics[REFERENCE_LOGPROBS.name])
        return rollouts


def largest_loss(rollout: Rollout, logprobs: FloatArray) -> float:
    """The largest mean of -log p of a turn; `logprobs` [N] cover all sampled tokens of the rollout."""
    ends = np.cumsum([len(turn.tokens) for turn in rollout.turns])
    turns = np.split(logprobs.astype(np.float64), ends[:-1])
    return max(float(-turn.mean()) for turn in turns if len(turn))


# Optima's second selection (2410.08115): only the best share of a training batch is imitated.


@dataclass(frozen=True)
class TopShare(Advantage):
    """Advantage 1 for the `share` of the batch's rollouts with the largest rewards, at least one, and 0 for others.

    Ties are broken by the order in the batch.
    """

    share: float = 0.7  # share of a training batch's rollouts that are imitated

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
    roles: str = "",  # another model as the examiner: examiner=PART (a named part); empty: the policy
    rounds: int = 2,  # maximum number of examiner messages to the solver
    price: float = 0.4,  # token penalty of the longest rollout
    gain: float = 0.8,  # reward of a rollout as likely as plain text
    plain: float = 0.1,  # loss of plain text, in nats per token
    least: float = 0.6,  # least reward of an imitated rollout
    share: float = 0.7,  # share of the best rollouts of a batch that are imitated
) -> Run:
    """Imitation of the selected rollouts: a policy gradient whose advantage is 1 or 0."""
    models = named_list("roles", roles, setting, Debate.policy_names[1:])
    agent = Debate(rounds, HINTED if setting.model in BUNDLED else TOLD, models=models)
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
