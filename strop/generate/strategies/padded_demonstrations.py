"""Demonstrations for masked diffusion models: completions padded with end tokens to a whole canvas (LLaDA, 2502.09992).

Papers: d1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.turn_ops import said
from strop.roles import Player, Strategy
from strop.types import Group, Rollout, Start, Turn


@dataclass(frozen=True)
class Padded(Strategy):
    """Repeats the last token of the last completion up to `size` tokens; the padding is trained on like the rest.

    Earlier completions stay as they are: a prompt has no more end tokens than the policy's own completions.
    """

    inner: Strategy
    size: int  # of a canvas

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"Padded needs a size >= 1, got {self.size}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        found = await self.inner(group, starts, play)
        return [replace(each, turns=(*each.turns[:-1], *map(self._padded, each.turns[-1:]))) for each in found]

    def _padded(self, turn: Turn) -> Turn:
        lacking = max(self.size - len(turn.tokens), 0) if len(turn.tokens) else 0
        return said(turn, np.full(lacking, turn.tokens[-1])) if lacking else turn
