"""Labels for lines of sampled programs (2410.17621): good as long as some completion of the lines so far passes.

Once no completion passes, none of longer beginnings does, so the first bad line is found by halving: a program of n
lines is completed `samples` times at no more than log2(n) places, rounded up. Readings: no line at all is good, and a
program that failed is bad as a whole. Completions are made and not brought: their tokens count, nobody learns them.
Papers: prm-code
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.filter.judges.code_lines import LABEL, label_row, last_tokens, lines_in
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut, given, noted
from strop.roles import Strategy
from strop.success import is_right
from strop.types import Group, Origin, Start, Trajectory

_PLACES, _GOOD = "completed_places", "good_lines"


@dataclass
class FirstBadLine(Strategy):
    """Plain attempts of one reply, each with labels of its lines in `Turn.aux`."""

    samples: int = 4  # completions of a beginning; too few call what can be mended bad
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"FirstBadLine needs samples >= 1, got {self.samples}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        made = await together(play(start) for start in starts)
        return [await self._labelled(attempt, play) for attempt in made]

    async def _labelled(self, attempt: Trajectory, play: Player) -> Trajectory:
        if self._policy is None:
            raise ConfigurationError("FirstBadLine does not know where tokens end: call meet(policy) first")
        lines = lines_in(attempt.reply)
        if not attempt.is_scored or not lines:
            return attempt
        ends = self._policy.template.places(attempt.turns[-1].whole)
        tokens = last_tokens(lines, ends)
        bad, places = len(lines), 0  # lines before number `bad` are good
        if not _has_passed(attempt):
            good, bad = 0, len(lines) - 1
            while good < bad:
                middle = (good + bad) // 2
                places += 1
                if await self._can_pass(attempt, tokens[middle] + 1, play):
                    good = middle + 1
                else:
                    bad = middle
        labels = {line.number: 1.0 if place < bad else -1.0 for place, line in enumerate(lines)}
        row = label_row(labels, attempt.reply, ends, attempt.turns[-1].given)
        facts = {_PLACES: float(places), _GOOD: bad / len(lines)}
        return replace(attempt, turns=noted(attempt.turns, LABEL, row), facts=attempt.facts | facts)

    async def _can_pass(self, attempt: Trajectory, size: int, play: Player) -> bool:
        """Whether any completion of so many tokens passes; what the world failed says nothing."""
        begun = given(cut(attempt.turns, size))
        starts = [play.another(turns=begun, origin=Origin.BRANCHED, parent=attempt.id) for _ in range(self.samples)]
        return any(_has_passed(each) for each in await together(play(start) for start in starts))


def _has_passed(attempt: Trajectory) -> bool:
    return attempt.is_scored and is_right(sum(attempt.turn_rewards))
