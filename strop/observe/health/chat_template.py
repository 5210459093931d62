"""Replies that do not look like replies of this model's template: other roles' marks in them, or nothing at all."""

from __future__ import annotations

import numpy as np

from strop.observe.health import HealthRule, RunVerdict
from strop.observe.run_files.run_history import History
from strop.types import IntArray, Trajectory

_MANY = 0.3  # of the attempts that are read
_LEAST = 8  # attempts
_CUT = 0.95  # of the attempts
_REMEDY = "compare a prompt (`strop show`) with the model's own template, and its eos tokens with what ends a reply"


class TemplateDoubt(HealthRule):
    """Marks of prompts within replies, empty replies, a prompt that begins twice, or replies that never end."""

    def judge(self, history: History) -> RunVerdict | None:
        read = [attempt for attempt in history.attempts if attempt.turns and attempt.num_sampled]
        if len(read) < _LEAST:
            return None
        marks, limit, told = dict(history.specials), _MANY * len(read), list[str]()
        inside = [token for attempt in read if (token := _mark_within(attempt, marks)) is not None]
        empty = sum(_is_empty(attempt) for attempt in read)
        twice = [attempt.turns[0].prompt[0] for attempt in read if _begins_twice(attempt, marks)]
        if len(inside) >= limit:
            told.append(f"{len(inside)} of {len(read)} replies hold marks of the template such as {marks[inside[0]]!r}")
        if empty >= limit:
            told.append(f"{empty} of {len(read)} replies are empty")
        if twice:
            told.append(f"prompts begin with {marks[int(twice[0])]!r} twice")
        never = min(history.early("truncated_share"), history.late("truncated_share")) >= _CUT
        if never and not any(history.is_ended(turn) for attempt in read for turn in attempt.turns):
            told.append("from the first step to the last nearly no reply came to an end")
        return RunVerdict("tokenizer or template doubts", "; ".join(told), _REMEDY, is_grave=True) if told else None


def _mark_within(attempt: Trajectory, marks: dict[int, str]) -> int | None:
    """A special token of the prompt that the policy wrote itself, before the end of a reply, which may be repeated."""
    known = marks.keys() & set(attempt.turns[0].prompt.tolist())
    inner = (turn.tokens[: len(turn.tokens) - _repeated(turn.tokens)] for turn in attempt.turns)
    return next((token for tokens in inner for token in tokens.tolist() if token in known), None)


def _repeated(tokens: IntArray) -> int:
    """How often the last token stands at the end, one behind the other."""
    differs = np.flatnonzero(tokens != tokens[-1]) if len(tokens) else np.zeros(0)
    return len(tokens) - (int(differs[-1]) + 1 if len(differs) else 0)


def _is_empty(attempt: Trajectory) -> bool:
    last = attempt.turns[-1].message
    return not last.content.strip() and not last.tool_calls


def _begins_twice(attempt: Trajectory, marks: dict[int, str]) -> bool:
    first = attempt.turns[0].prompt[:2].tolist()
    return len(first) == 2 and first[0] == first[1] and first[0] in marks
