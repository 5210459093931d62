"""Prompts with retrieved lessons before the question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from strop.environments.data.heldout_split import prompt_of
from strop.generate.memory.store import Lesson, Library
from strop.types import Message, Origin, Start, Task

_LOOKED_AT = 32  # of the most similar lessons, among which usefulness chooses


def topic(task: Task) -> str:
    """What lessons about a task are found by: its environment and its question, so that tasks of one environment are
    alike.
    """
    return f"{task.source}: {prompt_of(task)}"


def useful(library: Library, task: Task, category: str, count: int, explore: float = 0.0) -> list[Lesson]:
    """The `count` lessons of most overlap with the task times utility; `explore` prefers those that were seldom read.

    Then utility has explore * sqrt(ln(uses of all) / (1 + its uses)) added to it.
    """
    found = library.about(topic(task), category, _LOOKED_AT)
    all_uses = math.log(max(sum(lesson.uses for _, lesson in found), 1.0))
    ranked = [
        (overlap * (lesson.utility + explore * math.sqrt(all_uses / (1 + lesson.uses))), lesson)
        for overlap, lesson in found
        if overlap > 0
    ]
    return [lesson for _, lesson in sorted(ranked, key=lambda each: -each[0])[:count]]


def fitting(texts: Iterable[str], longest: int) -> list[str]:
    """The first texts that are no longer than this together, each once; one that does not fit is left out."""
    kept: list[str] = []
    for text in dict.fromkeys(texts):
        if text and sum(map(len, kept)) + len(kept) + len(text) <= longest:
            kept.append(text)
    return kept


def reminded(task: Task, texts: Sequence[str]) -> tuple[Message, ...]:
    """The task's messages, the last of them with these texts before its own."""
    *before, last = task.messages
    return (*before, replace(last, content=" ".join([*texts, last.content])))


def with_help(start: Start, task: Task, texts: Sequence[str]) -> Start:
    """A rollout that reads them; such rollouts say nothing of how hard a task is for the policy alone."""
    return replace(start, messages=reminded(task, texts), origin=Origin.GUIDED) if texts else start
