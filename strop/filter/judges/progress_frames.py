"""Progress scoring of a rollout's turns by an LLM that sees them in shuffled order (GVL)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from strop.text.llm_prompt import judgement
from strop.text.sanitize import quoted
from strop.types import Message, Rollout

PROGRESS = "progress/"  # before a turn's number: how far it was, from 0 to 1, among a rollout's facts
ORDER = "progress_order"  # the fact of how well that rises with time, from -1 to 1
ASKED = (
    "The steps above belong to one try at the task, in no particular order; its first step is 0 % of the way to "
    "the end. Say for each numbered step how far it is, one line each, as in 2: 40"
)
_FRAME = re.compile(r"^(\d{1,4}): (.*)$", re.MULTILINE)


def frames(rollout: Rollout, told: tuple[Message, ...] = ()) -> list[str]:
    """What was said in each turn and what the environment answered; one line each, so that none can pass for two.

    What it answered to the last one stands in no turn: `told`, where it is known.
    """
    answers = [*(turn.told for turn in rollout.turns[1:]), told]
    texts = [
        " ".join([turn.message.content, "->", *(message.content for message in answer)])
        for turn, answer in zip(rollout.turns, answers, strict=False)
    ]
    return [" ".join(quoted(each).split()) for each in texts]


def question(task: str, first: str, shown: Sequence[str], asked: str = ASKED) -> str:
    """What an LLM client reads."""
    lines = [f"{number}: {frame}" for number, frame in enumerate(shown, start=1)]
    told = [f"task: {' '.join(task.split())}", f"first step: {first}", *lines]
    return judgement(asked, steps="\n".join(told))


def shown_in(text: str) -> list[str]:
    """The frames of a question again, for LLM clients that are rules."""
    return [frame for _, frame in _FRAME.findall(text)]


def order_correlation(values: Sequence[float]) -> float | None:
    """Spearman's correlation of values with their order; equal ones share their mean rank; None: all are equal."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2 or float(np.ptp(array)) == 0:
        return None
    ranks = np.array([(array < each).sum() + ((array == each).sum() - 1) / 2 for each in array])
    return float(np.corrcoef(ranks, np.arange(len(array)))[0, 1])
