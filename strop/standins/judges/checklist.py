"""Advisers that are rules, for sums and other scratchpads: the checklist, a judge of its items and an exact verifier.

They stand for the larger model of RLCF and know no task's answer. To be asked by `Procedural`, for example as
`strop.standins.judges.checklist:judged`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.filter.judges.checklist_items import EVERYWHERE, Item
from strop.text.llm_prompt import parts_of

STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")


@lru_cache(maxsize=16)
def steps_in(reply: str) -> tuple[str, ...]:
    """All calculations of a reply; several requirements ask about the same ones."""
    return tuple(STEP.findall(reply))


def _holding(task: str, reply: str) -> float:
    steps = steps_in(reply)
    return sum(map(holds, steps[:MOST_STEPS])) / len(steps) if steps else 0.0


def _concluding(task: str, reply: str) -> float:
    steps, answer = steps_in(reply), final_answer(reply)
    return float(bool(steps) and answer != "" and steps[-1].rpartition("=")[2] == answer)


def _using(task: str, reply: str) -> float:
    asked, used = re.findall(r"\d+", task), set(re.findall(r"\d+", " ".join(steps_in(reply))))
    return sum(number in used for number in asked) / len(asked) if asked else 1.0


def _working(task: str, reply: str) -> float:
    return float(reply.startswith(OPEN) and reply.count(CLOSE) == 1)


def _answering(task: str, reply: str) -> float:
    return float(final_answer(reply) != "")


_RULES: Mapping[Item, Callable[[str, str], float]] = {
    Item(100, "Every calculation holds."): _holding,
    Item(80, "The answer is the result of the last calculation."): _concluding,
    Item(80, "All numbers of the task are used."): _using,
    Item(40, f"The working stands between {OPEN} and {CLOSE}."): _working,
    EVERYWHERE: _answering,
}
_BY_TEXT = {item.text: rule for item, rule in _RULES.items()}
_EXACT = (_holding, _concluding)


def met(requirement: str, task: str, reply: str) -> float:
    """The share of a requirement that a reply meets."""
    return _BY_TEXT[requirement](task, reply)


def written(text: str) -> str:
    """The checklist for a task."""
    return "\n".join(f"{item.weight:g}: {item.text}" for item in _RULES if item is not EVERYWHERE)


def judged(text: str) -> str:
    """How well a reply meets an item, from 0 to 100."""
    parts = parts_of(text)
    return f"{100 * met(parts['requirement'], parts['task'], parts['reply']):.0f}"


def verified(text: str) -> str:
    """100 where an item is met fully, else 0; of items that are no matter of fact, nothing."""
    parts = parts_of(text)
    rule = _BY_TEXT[parts["requirement"]]
    return f"{100 * (rule(parts['task'], parts['reply']) == 1.0)}" if rule in _EXACT else ""
