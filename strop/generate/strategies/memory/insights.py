"""CORE's learning in words (2605.28742): what tells a failure from a success is said in a sentence, proved, and kept.

Attempts read the insights that are nearest to the task and were most useful. Where one fails, it is shown beside a
right attempt at the same task, or at the most similar one that was solved; what is said of the two is tried at the same
task at once, and proposed only if it then does better. Readings: usefulness is (wins + 1) / (uses + 2), in training
with a bonus for what was seldom read; similar is what shares short pieces of text. An insight that says the answer is
refused.
Papers: core
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, topic, useful, with_help
from strop.generate.memory.reflect import reflected, trace
from strop.generate.memory.store import Change, Lesson, Library, add, tells, used
from strop.roles import Adviser, Strategy
from strop.success import ROUNDING, is_right, success
from strop.types import Group, Metrics, Start, Trajectory

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

INSIGHTS = "insights"
_SOLVED = "solved"  # the shelf of right attempts


@dataclass
class Insights(Strategy):
    """Every attempt reads `shown` insights; from each group with a failure one more may follow."""

    library: Library
    adviser: Adviser | None = None  # who says what to learn; None: the policy itself
    shown: int = 2  # insights before a task
    trials: int = 4  # attempts that prove a new one
    explore: float = 0.2  # weight of the bonus for what was seldom read
    longest: int = 200  # characters of all that stands before a task
    right: float = 1.0  # reward of a right attempt

    _made: dict[int, list[Change]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group
    _read: dict[int, list[Lesson]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shown < 1 or self.trials < 1 or self.explore < 0:
            raise ConfigurationError(
                f"Insights needs shown >= 1, trials >= 1 and explore >= 0, got {self.shown}, {self.trials} and "
                f"{self.explore}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        self.library.catch_up(group.version)
        read = useful(self.library, group.task, INSIGHTS, self.shown, self.explore)
        texts = fitting([lesson.text for lesson in read], self.longest)
        self._read.setdefault(group.number, []).extend(lesson for lesson in read if lesson.text in texts)
        attempts = await together(play(with_help(start, group.task, texts)) for start in starts)
        scores = await play.score(attempts)
        known = [(attempt, score) for attempt, score in zip(attempts, scores, strict=True) if score is not None]
        gain = await self._learned(group, known, texts, play)
        facts = {"insights": float(len(texts)), "insights_tried": float(gain is not None), "insight_gain": gain or 0.0}
        return [replace(attempt, facts=attempt.facts | facts) for attempt in attempts]

    async def _learned(
        self, group: Group, known: Sequence[tuple[Trajectory, float]], texts: list[str], play: Player
    ) -> float | None:
        """How much better the task goes with what is said of a failure and a success; None: nothing was tried."""
        made, about = self._made.setdefault(group.number, []), topic(group.task)
        right = [attempt for attempt, score in known if is_right(score, self.right)]
        failed = [attempt for attempt, score in known if not is_right(score, self.right)]
        made += [add(trace(attempt, self.library.longest), about, _SOLVED) for attempt in right[:1]]
        if not failed or not (beside := self._beside(about, right)):
            return None
        shown = {"task": prompt_of(group.task), "reply": trace(failed[0]), "other": beside}
        said = await reflected(self.adviser, "insight", play, **shown)
        text = " ".join(said.split())
        tried = fitting([text, *texts], self.longest)  # it comes first: one that is too long would prove the others
        answers = [final_answer(each.reply) for each in right[:1]]
        if text not in tried or text in texts or tells(text, group.task, *answers):
            return None
        before = sum(score for _, score in known) / len(known)
        gain = await self._tried(group, tried, play) - before
        if gain > ROUNDING:
            made.append(add(text, about, INSIGHTS, gain))
        return gain

    async def _tried(self, group: Group, texts: list[str], play: Player) -> float:
        """The mean reward of attempts that read these first."""
        made = await together(play(with_help(play.another(), group.task, texts)) for _ in range(self.trials))
        scores = [score for score in await play.score(made) if score is not None]
        return sum(scores) / len(scores) if scores else 0.0

    def _beside(self, about: str, right: Sequence[Trajectory]) -> str:
        """A right attempt at the same task; else one at the most similar task that was solved."""
        if right:
            return trace(right[0])
        near = self.library.about(about, _SOLVED, 1)
        return near[0][1].text if near and near[0][0] > 0 else ""

    def observe(self, group: Group) -> None:
        made, read = self._made.pop(group.number, []), self._read.pop(group.number, [])
        wins = sum(success(attempt) for attempt in group.scored)
        self.library.propose(group, [*(used(lesson, len(group.scored), wins) for lesson in read), *made])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing: `observe` does; says what the library holds."""
        return self.library.figures()
