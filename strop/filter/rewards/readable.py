"""Optima's pay for readable talk (2410.08115): the inverse of the loss of its least likely turn.

The loss is noted by the strategy `TurnLosses`. The release divides by the loss as it is, of some nats per token; here
a loss below that of plain text is as readable as text can be, or a sure model would be paid without limit.

Papers: optima
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group, Trajectory

_LONGEST = 2000  # tokens of a talk, as released


@dataclass(frozen=True)
class Readable(Reward):
    """gain / max(loss / plain, 1); 0 where a voice repeats itself, -1 where nothing was said or more than 2000 tokens.

    The release also pays nothing where one voice says what another said; here that is agreement.
    """

    gain: float = 0.8  # for plain text
    plain: float = 1.0  # loss of plain text, in nats per token
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.plain <= 0:
            raise ConfigurationError(f"Readable needs a loss of plain text > 0, got {self.plain}")

    def __call__(self, group: Group) -> list[float]:
        return [self._term(attempt) for attempt in group.trajectories]

    def _term(self, attempt: Trajectory) -> float:
        if not 0 < attempt.num_tokens <= _LONGEST:
            return -1.0
        if "turn_loss" not in attempt.facts:
            raise ConfigurationError(f"attempt {attempt.id} has no turn_loss: use the strategy TurnLosses")
        return 0.0 if repeats_itself(attempt) else self.gain / max(attempt.facts["turn_loss"] / self.plain, 1.0)


def repeats_itself(attempt: Trajectory) -> bool:
    """Whether some voice says the same twice, blanks and capitals aside."""
    said = [(turn.sampling.voice, turn.message.content.strip().lower()) for turn in attempt.turns]
    return len(set(said)) < len(said)
