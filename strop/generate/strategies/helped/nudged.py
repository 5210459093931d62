"""NudgeRL's attempts (2605.15726): each is nudged by a short context that names a way to go about the task, or by none.

Reading: contexts are words before the question, the same for every task, as the bundled model knows them. The paper has
a larger model write five for each problem, of which its release takes the first two.
Papers: nudgerl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.strategies.support.prompt_word import worded
from strop.generate.strategies.support.rollout_twins import twin
from strop.roles import Strategy
from strop.types import Group, Origin, Start, Task, Trajectory


@dataclass(frozen=True)
class Nudged(Strategy):
    """Starts are dealt to the words in turn; each loses its word with probability `dropout` and is then a plain one.

    The fact `context` is the word's number, from 1, and 0 for none. An attempt with a word is followed by a twin that
    reads the task without it.
    """

    words: tuple[str, ...]  # one before the question
    dropout: float = 0.5  # chance of an attempt to have none

    def __post_init__(self) -> None:
        if not self.words or not all(self.words) or not 0 <= self.dropout <= 1:
            raise ConfigurationError(
                f"Nudged needs words that are not empty and 0 <= dropout <= 1, got {self.words} and {self.dropout}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        contexts = [self._drawn(place, start) for place, start in enumerate(starts)]
        begun = [self._begun(group.task, start, context) for start, context in zip(starts, contexts, strict=True)]
        attempts = await together(play(start) for start in begun)
        for attempt, context in zip(attempts, contexts, strict=True):
            attempt.facts["context"] = float(context)
        nudged = [each for each in attempts if each.origin is Origin.GUIDED and each.is_scored and each.turns]
        return [*attempts, *(twin(each, group.task.messages, play) for each in nudged)]

    def _drawn(self, place: int, start: Start) -> int:
        is_plain = np.random.default_rng(start.key).random() < self.dropout
        return 0 if is_plain else 1 + place % len(self.words)

    def _begun(self, task: Task, start: Start, context: int) -> Start:
        if not context:
            return start
        return replace(start, messages=worded(task, self.words[context - 1]), origin=Origin.GUIDED)
