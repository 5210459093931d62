"""Sentences of a reply, how a judge is asked about each, and how its verdicts are read (TRM).

A line of an answer says first whether the sentence keeps to what was given, then why, then whether it is right:
`2: faithful; it adds both numbers; incorrect`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from strop.filter.judges.batch_ask import Lines

ASKED = (
    "Judge each numbered sentence of the reply: does it keep to what the task gives (faithful or unfaithful), why, and "
    "is it right (correct or incorrect)? One line each, as in 2: faithful; it adds both numbers; incorrect"
)
_MOST = 999  # that are judged one by one: what stands behind them is one more, or a long reply keeps everybody waiting
# after a full stop, at a new line, at the end of a working, and between two calculations
_BETWEEN = re.compile(r"(?<=[.!?])\s+|\n+|</?think>|(?<==)\s+|(?<=\d)\s+(?=[\d(-])")
_LINE = re.compile(
    r"[ \t*-]*(\d{1,4})[ \t]*[:.)][ \t]*(faithful|unfaithful)\b(.*)\b(correct|incorrect)[ \t.]*", re.IGNORECASE
)
VERDICTS = Lines(_LINE)  # an answer that is nothing else


@dataclass(frozen=True)
class SentenceVerdict:
    """What is said of a sentence."""

    is_faithful: bool
    is_correct: bool


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each one begins and ends; all who speak of sentences cut here."""
    found, begin = list[tuple[int, int]](), 0
    for cut in _BETWEEN.finditer(text):
        if len(found) == _MOST:
            break
        found += [(begin, cut.start())] if text[begin : cut.start()].strip() else []
        begin = cut.end()
    return [*found, (begin, len(text))] if text[begin:].strip() else found


def numbered(text: str) -> str:
    """The sentences of a reply, one per line with its number."""
    shown = [" ".join(text[start:end].split()) for start, end in sentences(text)]
    return "\n".join(f"{number}: {each}" for number, each in enumerate(shown, start=1))


def verdicts_in(text: str) -> dict[int, SentenceVerdict]:
    """By a sentence's number; one that is judged twice is not judged."""
    found = [_LINE.fullmatch(line.rstrip()) for line in text.splitlines()]
    read = [(int(each.group(1)), each.group(2).lower(), each.group(4).lower()) for each in found if each]
    times = Counter(number for number, _, _ in read)
    return {
        number: SentenceVerdict(kept == "faithful", right == "correct")
        for number, kept, right in read
        if times[number] == 1
    }
