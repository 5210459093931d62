"""SLEA-RL's library (2603.18079): strategies and warnings extracted from rollouts, a limited number per version.

The `top` best successes and worst failures of a version are used, until the limit of new lessons is reached. Readings:
merged lessons do not count towards the limit; experiences are extracted by rules, as in the release without an LLM. The
agent (`ExperienceAgent`) reads the library; this strategy only fills it. With lag, late groups are learned from with
the next version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.generate.memory.store import Change, Lesson, Library
from strop.recipes.replay.slea_rl.experiences import strategies_of, warnings_of
from strop.roles import Strategy
from strop.success import success
from strop.types import Group, Metrics, Rollout, Start

if TYPE_CHECKING:
    from strop.roles import Player

_SUCCESS = 0.5  # above it a rollout succeeded
# version, group, score, and the lessons of a rollout
_Lessons = tuple[int, int, float, list[Lesson]]


@dataclass
class ExperienceCollector(Strategy):
    """Rollouts of `inner`; from version `start` on, the libraries hold lessons of earlier versions."""

    inner: Strategy
    strategies: Library
    pitfalls: Library
    golden: int = 10  # strategies that one version may add
    warnings: int = 5  # warnings that one version may add
    top: int = 5  # successes, and as many failures, that a version learns from
    start: int = 5  # first version with lessons in the libraries

    _good: list[_Lessons] = field(default_factory=list, init=False, repr=False, compare=False)
    _bad: list[_Lessons] = field(default_factory=list, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __post_init__(self) -> None:
        if self.golden < 0 or self.warnings < 0 or self.top < 1:
            raise ConfigurationError(
                f"ExperienceCollector needs golden and warnings >= 0 and top >= 1, got {self.golden}, {self.warnings} "
                f"and {self.top}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if group.version >= self.start:
            self._good = _learned(self._good, group.version, self.top, self.strategies, self.golden)
            self._bad = _learned(self._bad, group.version, self.top, self.pitfalls, self.warnings)
        return await self.inner(group, starts, play)

    def observe(self, group: Group) -> None:
        for rollout in group.scored:
            score = success(rollout)
            if score > _SUCCESS:
                self._good.append((group.version, group.number, -score, strategies_of(rollout)))
            else:
                self._bad.append((group.version, group.number, score, warnings_of(rollout)))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Reports the sizes of the libraries; learning happens in `observe`."""
        return {"strategies": float(len(self.strategies)), "warnings": float(len(self.pitfalls))}

    def state(self) -> dict[str, Any]:
        return {name: [_plain(each) for each in kept] for name, kept in (("good", self._good), ("bad", self._bad))}

    def restore(self, state: dict[str, Any]) -> None:
        self._good, self._bad = ([_unplain(each) for each in state[name]] for name in ("good", "bad"))


def _learned(taught: list[_Lessons], version: int, top: int, library: Library, most: int) -> list[_Lessons]:
    """Add the lessons of earlier versions to the library, `most` per version; return the remaining ones."""
    for each in sorted({row[0] for row in taught if row[0] < version}):
        best = sorted((row for row in taught if row[0] == each), key=lambda row: (row[2], row[1]))[:top]
        added = 0
        for lesson in (lesson for row in best for lesson in row[3]):
            if added < most:
                added += library.carry_out(Change("add", lesson)) in ("added", "replaced")
    return [row for row in taught if row[0] >= version]


def _plain(taught: _Lessons) -> list[Any]:
    return [*taught[:3], [asdict(lesson) for lesson in taught[3]]]


def _unplain(row: list[Any]) -> _Lessons:
    return int(row[0]), int(row[1]), float(row[2]), [Lesson(**lesson) for lesson in row[3]]
