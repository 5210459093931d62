"""Completions that do not look like completions of this model's template: other roles' marks in them, or nothing at
all.
"""

from __future__ import annotations

import numpy as np

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History
from strop.types import IntArray, Rollout

_MANY = 0.3  # of the rollouts that are read
_LEAST = 8  # rollouts
_CUT = 0.95  # of the rollouts
_REMEDY = (
    "compare a prompt (`strop show`) with the model's own template, and its eos tokens with what ends a completion"
)


class TemplateWarning(HealthRule):
    """Marks of prompts within completions, empty completions, a prompt that begins twice, or completions that never
    end.
    """

    def judge(self, history: History) -> HealthFinding | None:
        read = [rollout for rollout in history.rollouts if rollout.turns and rollout.num_sampled]
        if len(read) < _LEAST:
            return None
        marks, limit, told = dict(history.specials), _MANY * len(read), list[str]()
        inside = [token for rollout in read if (token := _mark_within(rollout, marks)) is not None]
        empty = sum(_is_empty(rollout) for rollout in read)
        twice = [rollout.turns[0].prompt[0] for rollout in read if _begins_twice(rollout, marks)]
        if len(inside) >= limit:
            told.append(
                f"{len(inside)} of {len(read)} completions hold marks of the template such as {marks[inside[0]]!r}"
            )
        if empty >= limit:
            told.append(f"{empty} of {len(read)} completions are empty")
        if twice:
            told.append(f"prompts begin with {marks[int(twice[0])]!r} twice")
        never = min(history.early("truncated_share"), history.late("truncated_share")) >= _CUT
        if never and not any(history.is_ended(turn) for rollout in read for turn in rollout.turns):
            told.append("from the first step to the last nearly no completion came to an end")
        return (
            HealthFinding("tokenizer or template warnings", "; ".join(told), _REMEDY, is_grave=True) if told else None
        )


def _mark_within(rollout: Rollout, marks: dict[int, str]) -> int | None:
    """A special token of the prompt that the policy wrote itself, before the end of a completion, which may be
    repeated.
    """
    known = marks.keys() & set(rollout.turns[0].prompt.tolist())
    inner = (turn.tokens[: len(turn.tokens) - _repeated(turn.tokens)] for turn in rollout.turns)
    return next((token for tokens in inner for token in tokens.tolist() if token in known), None)


def _repeated(tokens: IntArray) -> int:
    """How often the last token stands at the end, one behind the other."""
    differs = np.flatnonzero(tokens != tokens[-1]) if len(tokens) else np.zeros(0)
    return len(tokens) - (int(differs[-1]) + 1 if len(differs) else 0)


def _is_empty(rollout: Rollout) -> bool:
    last = rollout.turns[-1].message
    return not last.content.strip() and not last.tool_calls


def _begins_twice(rollout: Rollout, marks: dict[int, str]) -> bool:
    first = rollout.turns[0].prompt[:2].tolist()
    return len(first) == 2 and first[0] == first[1] and first[0] in marks
