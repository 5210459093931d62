"""Sequence state of a masked diffusion completion: a prompt, then positions that are unmasked in any order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strop.backends import ORDER, Completion, Stop
from strop.types import FloatArray, IntArray, Sampling


@dataclass(eq=False)
class Canvas:
    """Canvas of masked positions; blocks are filled one after the other, each in any order.

    A completion ends once an end token has no other token on its right: all positions behind it become end tokens, as
    in the models' training. Steps are numbered from the prompt's length, so that a continued completion keeps counting.
    """

    prompt: IntArray  # [P]
    sampling: Sampling
    key: int
    future: asyncio.Future[Completion]
    room: int  # places behind the prompt
    block: int  # places that are filled before any behind them
    mask: int
    tokens: IntArray = field(init=False)  # [P + room]
    logprobs: FloatArray = field(init=False)  # [P + room]
    versions: IntArray = field(init=False)  # [P + room]
    order: IntArray = field(init=False)  # [P + room], the step that each token came in
    first: int = field(init=False)  # place of the block that is being filled
    end: int = field(init=False)  # behind the last place of the completion, as far as is known
    is_ended: bool = field(default=False, init=False)
    looks: int = field(default=0, init=False)  # steps, those among them in which nothing was kept
    in_vain: int = field(default=0, init=False)  # of the last looks in a row
    steps: int = field(default=0, init=False)  # in which something was

    def __post_init__(self) -> None:
        size = len(self.prompt) + self.room
        self.tokens = np.append(self.prompt, np.full(self.room, self.mask))
        self.logprobs, self.versions = np.zeros(size, np.float32), np.zeros(size, np.int64)
        self.order = np.zeros(size, np.int64)
        self.first, self.end = len(self.prompt), size

    @property
    def open_places(self) -> IntArray:
        """Those of the block that are still masked."""
        last = min(self.first + self.block, self.end)
        return self.first + np.flatnonzero(self.tokens[self.first : last] == self.mask)

    @property
    def is_full(self) -> bool:
        return self.first >= self.end

    def keep(self, places: IntArray, tokens: IntArray, logprobs: FloatArray, version: int, ends: IntArray) -> None:
        """These tokens stay where they are, from the next look on."""
        self.looks += 1
        self.in_vain = 0 if len(places) else self.in_vain + 1
        if not len(places):
            return
        self.steps += 1
        self.tokens[places], self.logprobs[places], self.versions[places] = tokens, logprobs, version
        self.order[places] = len(self.prompt) + self.steps
        self._look_for_the_end(ends)
        if not len(self.open_places):
            self.first = min(self.first + self.block, self.end)

    def _look_for_the_end(self, ends: IntArray) -> None:
        stop = min(self.first + self.block, self.end)
        last = self.first + int(np.flatnonzero(self.tokens[self.first : stop] != self.mask)[-1])
        if not self.is_ended and self.tokens[last] in ends:
            self.is_ended, self.end = True, last + 1
            self.tokens[self.end :] = self.tokens[last]

    def completion(self, stop: Stop) -> Completion:
        """What stands for good: all of it, or of one that is ended early the blocks that are full."""
        written = slice(len(self.prompt), self.first)
        return Completion(
            self.tokens[written].copy(),
            self.logprobs[written].copy(),
            self.versions[written].copy(),
            stop,
            {ORDER: self._order_rows(written)},
        )

    def _order_rows(self, written: slice) -> NDArray[np.int64]:
        """See `machines.ORDER`: [N, 3]."""
        order = self.order[written]
        behind = len(self.tokens) - self.first
        is_over = self.is_ended and self.is_full
        return np.stack([order, np.full_like(order, behind), np.full_like(order, is_over)], 1)
