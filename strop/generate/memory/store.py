"""Library of text lessons: admission, merging, scores and retrieval, with size limits.

Changes are proposed while a group is generated, handed over when it is done, and applied between weight versions in a
fixed order. All rollouts of a version therefore read the same lessons whatever the timing, and a killed run proposes
again what was lost. Model output is only ever stored as text.
"""

from __future__ import annotations

import copy
import heapq
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from strop.control.task_generators.support.validation import holds
from strop.errors import ConfigurationError
from strop.text.overlap import Similar
from strop.types import Group, Metrics, Task

_ANY = 1 << 62  # later than every version


@dataclass(frozen=True)
class Lesson:
    """Text of a lesson and its topic."""

    text: str
    about: str  # what it is found by: the task or the observation that it came from
    category: str = ""
    score: float = 0.0  # who stays where a category is full
    name: str = ""  # given by the library, for good
    uses: float = 0.0  # rollouts that read it
    wins: float = 0.0  # of those that were right
    support: int = 1  # how many were merged into it

    @property
    def utility(self) -> float:
        """How often it was read by a rollout that was right: (wins + 1) / (uses + 2)."""
        return (self.wins + 1) / (self.uses + 2)


@dataclass(frozen=True)
class Change:
    """Change to a library: add, replace, remove a lesson, or count uses."""

    do: Literal["add", "rewrite", "remove", "used"]
    lesson: Lesson  # of a rewritten, removed or used one the name counts, and what changes


@dataclass
class Library:
    """Lessons on named categories of at most `most` each; a new one replaces the lowest-scored one if it scores higher.

    A new text that overlaps with one of the same category by `same` or more is merged: the older one stays, with the
    higher of both scores and one more supporter. Texts of more than `longest` characters are refused.
    """

    most: int = 256  # lessons on a category
    same: float = 0.85  # overlap of two texts that are one lesson; above 1: never
    longest: int = 400  # characters of a text

    _lessons: dict[str, Lesson] = field(default_factory=dict, init=False, repr=False, compare=False)
    _texts: dict[str, Similar] = field(default_factory=dict, init=False, repr=False, compare=False)  # by category
    _about: dict[str, Similar] = field(default_factory=dict, init=False, repr=False, compare=False)
    # version and number of a group, and what it proposes
    _waiting: list[tuple[int, int, list[Change]]] = field(default_factory=list, init=False, repr=False, compare=False)
    _counts: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)  # what became of all
    _num_named: int = field(default=0, init=False, repr=False, compare=False)  # so that no name is given twice

    def __post_init__(self) -> None:
        if self.most < 1 or self.longest < 1 or self.same <= 0:
            raise ConfigurationError(
                f"Library needs most >= 1, longest >= 1 and same > 0, got {self.most}, {self.longest} and {self.same}"
            )

    def __len__(self) -> int:
        return len(self._lessons)

    # ---- reading

    def on(self, category: str) -> list[Lesson]:
        """All lessons of a category, in the order in which they were written."""
        return [self._lessons[name] for name in self._texts[category].texts] if category in self._texts else []

    def get(self, name: str) -> Lesson | None:
        return self._lessons.get(name)

    def about(self, question: str, category: str, count: int) -> list[tuple[float, Lesson]]:
        """The lessons of a category that are about what is most like this, with the overlap, best first."""
        return self._near(self._about, question, category, count)

    def like(self, text: str, category: str, count: int = 1) -> list[tuple[float, Lesson]]:
        """The lessons of a category that say what is most like this, with the overlap, best first."""
        return self._near(self._texts, text, category, count)

    def best(self, category: str, count: int) -> list[Lesson]:
        """Of the highest scores, of equals what was written first."""
        return heapq.nlargest(count, self.on(category), key=lambda lesson: lesson.score)

    def closest(self, category: str) -> tuple[float, Lesson, Lesson] | None:
        """The two lessons of a category whose texts are most alike, the older first."""
        pairs = [
            (found, lesson, other)
            for lesson in self.on(category)
            for found, other in self.like(lesson.text, category, 2)
            if _age(other) > _age(lesson)
        ]
        return max(pairs, key=lambda pair: pair[0], default=None)

    def _near(self, categories: dict[str, Similar], text: str, category: str, count: int) -> list[tuple[float, Lesson]]:
        found = categories[category].near(text, count) if category in categories else []
        return [(overlap, self._lessons[name]) for overlap, name in found]

    # ---- learning

    def propose(self, group: Group, changes: Sequence[Change]) -> None:
        """Hand over what a finished group has learned; it shows from the next version on."""
        if changes:
            self._waiting.append((group.version, group.number, list(changes)))

    def catch_up(self, version: int = _ANY) -> None:
        """Carry out what groups of earlier versions proposed; late ones are learned from when they come."""
        ready = sorted((each for each in self._waiting if each[0] < version), key=lambda each: each[:2])
        if ready:
            self._waiting = [each for each in self._waiting if each[0] >= version]
            for change in (change for *_, changes in ready for change in changes):
                self._counts[self.carry_out(change)] += 1

    def predicted(self) -> Library:
        """What it will be when all that waits is carried out; for whoever measures, as groups still read this one."""
        if not self._waiting:
            return self
        later = copy.deepcopy(self)
        later.catch_up()
        return later

    def carry_out(self, change: Change) -> str:
        """What became of it: added, merged, replaced (another one), rewritten, removed, used, or why it was refused."""
        lesson = replace(change.lesson, text=" ".join(change.lesson.text.split()))
        known = self._lessons.get(lesson.name)
        if change.do == "used" and known is not None:
            self._lessons[known.name] = replace(known, uses=known.uses + lesson.uses, wins=known.wins + lesson.wins)
            return "used"
        if change.do == "remove" and known is not None:
            self._remove(known)
            return "removed"
        if change.do in ("used", "remove"):
            return "gone"
        if not lesson.text or len(lesson.text) > self.longest:
            return "empty" if not lesson.text else "too_long"
        if change.do == "rewrite" and known is not None:
            support = known.support + lesson.support - 1
            self._put(replace(known, text=lesson.text, score=max(known.score, lesson.score), support=support))
            return "rewritten"
        return self._add(lesson)

    def _add(self, lesson: Lesson) -> str:
        for found, known in self.like(lesson.text, lesson.category):
            if found >= self.same:
                score, support = max(known.score, lesson.score), known.support + 1
                self._lessons[known.name] = replace(known, score=score, support=support)
                return "merged"
        told = "added"
        if len(self._texts.get(lesson.category, ())) >= self.most:
            lowest = min(self.on(lesson.category), key=lambda known: known.score)
            if lesson.score <= lowest.score:
                return "full"
            self._remove(lowest)
            told = "replaced"
        self._num_named += 1
        self._put(replace(lesson, name=f"{lesson.category}/{self._num_named}"))
        return told

    def _put(self, lesson: Lesson) -> None:
        self._lessons.pop(lesson.name, None)  # what is rewritten goes to the end here as there: a restart keeps order
        self._lessons[lesson.name] = lesson
        self._texts.setdefault(lesson.category, Similar()).add(lesson.name, lesson.text)
        self._about.setdefault(lesson.category, Similar()).add(lesson.name, lesson.about)

    def _remove(self, lesson: Lesson) -> None:
        del self._lessons[lesson.name]
        for categories in (self._texts, self._about):
            categories[lesson.category].remove(lesson.name)

    def metrics(self) -> Metrics:
        """How many lessons there are, and how many changes came to what since the run began."""
        told = {f"lessons/{name}": float(count) for name, count in sorted(self._counts.items())}
        return {"lessons": float(len(self)), **told}

    # ---- memory

    def state(self) -> dict[str, Any]:
        return {
            "lessons": [asdict(lesson) for lesson in self._lessons.values()],
            "waiting": [[*key, [asdict(change) for change in changes]] for *key, changes in self._waiting],
            "counts": dict(self._counts),
            "num_named": self._num_named,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._lessons, self._texts, self._about = {}, {}, {}
        for lesson in state["lessons"]:
            self._put(Lesson(**lesson))
        self._waiting = [
            (int(version), int(number), [Change(change["do"], Lesson(**change["lesson"])) for change in changes])
            for version, number, changes in state["waiting"]
        ]
        self._counts, self._num_named = Counter(state["counts"]), int(state["num_named"])


def add(text: str, about: str, category: str = "", score: float = 0.0) -> Change:
    """A new lesson."""
    return Change("add", Lesson(text, about, category, score))


def used(lesson: Lesson, uses: float, wins: float) -> Change:
    """So many rollouts read it, and so many of them were right."""
    return Change("used", replace(lesson, uses=uses, wins=wins))


def tells(text: str, task: Task, *answers: str) -> bool:
    """Whether a text gives the task's answer away, in one of these spellings, too; no lesson may."""
    return any(holds(text, answer.strip()) for answer in (task.answer, *answers))


def lines(text: str, most: int) -> list[str]:
    """The first lines of what a model wrote that are not empty, without bullets and numbers before them."""
    plain = [re.sub(r"^\s*(?:[-*•]|\d{1,3}[.)])\s*", "", line).strip() for line in text.splitlines()]
    return [line for line in plain if line][:most]


def _age(lesson: Lesson) -> int:
    return int(lesson.name.rpartition("/")[2])
