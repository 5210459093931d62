"""Optima's readability (2410.08115): how unlikely a talk's least likely turn is under the model training began with.

Reading: the release scores each utterance alone; here it stands where it was said, so that no text is tokenized again.

Papers: optima
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.generate.interfaces import Player
from strop.roles import Strategy
from strop.training.requirements import REFERENCE_LOGPROBS
from strop.types import FloatArray, Group, Start, Trajectory


@dataclass(frozen=True)
class TurnLosses(Strategy):
    """The attempts of `inner`, each with the fact `turn_loss`: the largest mean of -log p over the tokens of a turn."""

    inner: Strategy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        attempts = await self.inner(group, starts, play)
        told = [attempt for attempt in attempts if attempt.is_scored and attempt.num_tokens]
        for attempt, notes in zip(told, await play.look(told, frozenset({REFERENCE_LOGPROBS})), strict=True):
            attempt.facts["turn_loss"] = largest_loss(attempt, notes[REFERENCE_LOGPROBS.name])
        return attempts


def largest_loss(attempt: Trajectory, logprobs: FloatArray) -> float:
    """Of an attempt's turns, the largest mean of -log p; `logprobs` [N] are of all its written tokens."""
    ends = np.cumsum([len(turn.tokens) for turn in attempt.turns])
    turns = np.split(logprobs.astype(np.float64), ends[:-1])
    return max(float(-turn.mean()) for turn in turns if len(turn))
