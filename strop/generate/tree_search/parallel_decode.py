"""Parallel decoding of several paths, a few tokens at a time, with branches at alternative tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strop.generate.templates.chat_template import Template
from strop.generate.turn_ops import as_prefix, cut, said
from strop.roles import Player
from strop.types import IntArray, Message, Origin, Outcome, Rollout, Sampling, Start, Turn

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(eq=False)
class LivePath:
    """Path that is still being decoded."""

    start: Start
    turns: tuple[Turn, ...] = ()
    rollout: Rollout | None = None  # as far as it was played; None: not yet
    above: LivePath | None = None  # from which it branched off
    born: int = 0  # tokens of its completions before it did

    @property
    def is_open(self) -> bool:
        return self.rollout is None or self.rollout.outcome is Outcome.PRUNED

    @property
    def tokens(self) -> IntArray:
        """Of its completions, given and written: [L]."""
        return np.concatenate([_NOTHING, *(turn.whole for turn in self.turns)])

    @property
    def num_given(self) -> int:
        return sum(turn.num_prefix for turn in self.turns)

    async def extend(self, size: int, play: Player, sampling: Sampling | None = None) -> None:
        """Go on until its completions have so many tokens; it may end before."""
        if self.is_open and (left := size - len(self.tokens)) > 0:
            await self._play(replace(self.start, turns=self.turns, pause=left, sampling=sampling), play)

    async def finish(self, play: Player, sampling: Sampling) -> Rollout:
        """Go on to the end, from here on sampled in this way."""
        if self.is_open:
            turns = self.turns
            if turns:  # a turn knows one way of sampling: that of its rest
                turns = (*turns[:-1], replace(turns[-1], sampling=sampling))
            await self._play(replace(self.start, turns=turns), play)
        assert self.rollout is not None
        return self.rollout

    async def _play(self, start: Start, play: Player) -> None:
        self.rollout = await play(start)
        self.turns = self.rollout.turns

    def offshoot(self, at: int, token: int, start: Start, template: Template) -> LivePath:
        """Another path that has this token in place of the one after `at` written tokens; nobody sampled it."""
        turns = instead(self.turns, at, token, template)
        begun = replace(start, turns=turns, origin=Origin.BRANCHED, parent=self.start.id)
        return LivePath(begun, turns, above=self, born=self.num_before(at))

    def num_before(self, at: int) -> int:
        """Tokens of the completions before the written token number `at`."""
        return int(self.places[at])

    @property
    def places(self) -> IntArray:
        """Where in the completions each written token stands: [N]."""
        is_written = [np.arange(len(turn.whole)) >= turn.num_prefix for turn in self.turns]
        return np.flatnonzero(np.concatenate([_NOTHING.astype(bool), *is_written]))


def instead(turns: tuple[Turn, ...], at: int, token: int, template: Template) -> tuple[Turn, ...]:
    """The first `at` written tokens as given, and behind them, said by nobody, another one than stands there."""
    *before, last = as_prefix(cut(turns, at + 1))
    begun = replace(last, prompt=last.prompt[:-1], num_prefix=last.num_prefix - 1)
    aux = {name: array if len(array) == 1 else array[:-1] for name, array in begun.aux.items()}
    turn = said(replace(begun, aux=aux), np.array([token]))
    return (*before, replace(turn, message=Message("assistant", template.text(turn.whole))))
