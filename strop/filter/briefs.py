"""Briefs: what a work was asked to be, told from the task or guessed from the work alone, and how well both agree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strop.errors import AdviserError
from strop.filter.judges.batch_ask import Lines, verdict
from strop.roles import Adviser
from strop.text.llm_prompt import judgement

_FORM = "Answer in four lines, as in\ntopic: trade by sea\naudience: students\nsize: 5\nthemes: ports, winds, insurance"
TOLD = f"What does this task ask for? {_FORM}"
GUESSED = f"You see a work and not what it was asked to be. What was it? {_FORM}"
_LINE = re.compile(r"[ \t*-]*(topic|audience|size|themes)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TOPIC, _AUDIENCE, _SIZE, _THEMES = 0.40, 0.25, 0.15, 0.20
_CONTAINED, _OVERLAP = 0.7, 0.4  # for an audience that is part of the other, and for words in common
_EASE = 1.5  # two thirds of the themes are enough


@dataclass(frozen=True)
class Commission:
    """What is asked for; empty, or 0, where it is not said."""

    topic: str = ""
    audience: str = ""
    size: int = 0
    themes: str = ""


def brief_in(text: str) -> Commission | None:
    """The brief of an answer; None: it says nothing of one."""
    found = [_LINE.fullmatch(line.rstrip()) for line in text.splitlines()]
    said = {each.group(1).lower(): each.group(2).strip() for each in found if each}
    if not any(said.values()):
        return None
    size = re.fullmatch(r"(\d{1,6})\b.*", said.get("size", ""))
    return Commission(
        said.get("topic", ""), said.get("audience", ""), int(size[1]) if size else 0, said.get("themes", "")
    )


async def brief_of(adviser: Adviser, wanted: str, **shown: str) -> Commission:
    """What an adviser says of the task, or of the reply; nothing that can be read is no brief."""
    said = await verdict(adviser, judgement(wanted, **shown), Lines(_LINE))
    if (found := brief_in(said)) is None:
        raise AdviserError(f"need a brief with topic, audience, size and themes, got {said[:80]!r}")
    return found


def agreement(true: Commission, guess: Commission) -> float:
    """From 0 to 1: words of the topic found again, the audience, the size, and two thirds of the themes' words."""
    return (
        _TOPIC * _recall(true.topic, guess.topic)
        + _AUDIENCE * _same_audience(true.audience, guess.audience)
        + _SIZE * (min(true.size, guess.size) / max(true.size, guess.size, 1))
        + _THEMES * min(1.0, _EASE * _recall(true.themes, guess.themes))
    )


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _recall(true: str, guess: str) -> float:
    wanted = _words(true)
    return len(wanted & _words(guess)) / len(wanted) if wanted else 0.0


def _same_audience(true: str, guess: str) -> float:
    """An audience that nobody named is contained in every other, and still no match."""
    one, other = true.lower().strip(), guess.lower().strip()
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    both = _words(one) | _words(other)
    shared = len(_words(one) & _words(other)) / max(len(both), 1)
    return _CONTAINED if one in other or other in one else _OVERLAP * shared
