"""S-GRPO's serial group (2505.07686): one whole thought, and answers forced after some of its first tokens.

Readings: an early exit is given the thought as far as its cut and what induces the answer, so that it is trained on its
answer alone, and the thought once, in the whole attempt. Cuts are uniform over the tokens of the thought.
Papers: s-grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strop.concurrency import together
from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut, given
from strop.roles import Strategy
from strop.success import EXIT
from strop.types import Group, Origin, Start, Trajectory


@dataclass
class SerialExits(Strategy):
    """The first start thinks to the end; the others answer after 1 to n of the n tokens that it thought."""

    inducer: str = CLOSE  # said after a cut; the next token begins the answer

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.inducer:
            raise ConfigurationError("SerialExits needs a text that induces the answer, got an empty one")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        first, *others = starts
        whole = await play(first)
        size = self._thought(whole)
        if not size or not whole.is_scored:
            return [whole]
        places = np.random.default_rng(first.key).integers(1, size + 1, len(others))
        exits = zip(others, sorted(places.tolist()), strict=True)
        return [whole, *await together(self._exit(whole, start, at, play) for start, at in exits)]

    async def _exit(self, whole: Trajectory, start: Start, at: int, play: Player) -> Trajectory:
        begun = given(cut(whole.turns[:1], at))
        begin = replace(start, turns=begun, begins=self.inducer, origin=Origin.BRANCHED, parent=whole.id)
        attempt = await play(begin)
        return replace(attempt, facts=attempt.facts | {EXIT: float(at)})

    def _thought(self, attempt: Trajectory) -> int:
        """Tokens of the first reply before the end of its thought; without one it is all thought."""
        if self._policy is None:
            raise ConfigurationError("SerialExits does not know how replies are written: call meet(policy) first")
        if not attempt.turns:
            return 0
        reply = attempt.turns[0]
        text, tokens = self._policy.template.text(reply.tokens), self._policy.template.places(reply.tokens)
        end = text.find(CLOSE)
        return int((tokens <= end).sum()) if end >= 0 else max(len(tokens) - 1, 0)
