"""Rule-based stand-ins for RLCF's LLMs on bundled tasks: checklist generator, judge of its items, exact verifier.

They do not know a task's answer. For example `Procedural(judged_items)`.
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
def steps_in(completion: str) -> tuple[str, ...]:
    """All calculations of a completion; several requirements ask about the same ones."""
    return tuple(STEP.findall(completion))


def _holding(task: str, completion: str) -> float:
    steps = steps_in(completion)
    return sum(map(holds, steps[:MOST_STEPS])) / len(steps) if steps else 0.0


def _concluding(task: str, completion: str) -> float:
    steps, answer = steps_in(completion), final_answer(completion)
    return float(bool(steps) and answer != "" and steps[-1].rpartition("=")[2] == answer)


def _using(task: str, completion: str) -> float:
    asked, used = re.findall(r"\d+", task), set(re.findall(r"\d+", " ".join(steps_in(completion))))
    return sum(number in used for number in asked) / len(asked) if asked else 1.0


def _working(task: str, completion: str) -> float:
    return float(completion.startswith(OPEN) and completion.count(CLOSE) == 1)


def _answering(task: str, completion: str) -> float:
    return float(final_answer(completion) != "")


_RULES: Mapping[Item, Callable[[str, str], float]] = {
    Item(100, "Every calculation holds."): _holding,
    Item(80, "The answer is the result of the last calculation."): _concluding,
    Item(80, "All numbers of the task are used."): _using,
    Item(40, f"The working stands between {OPEN} and {CLOSE}."): _working,
    EVERYWHERE: _answering,
}
_BY_TEXT = {item.text: rule for item, rule in _RULES.items()}
_EXACT = (_holding, _concluding)


def met(requirement: str, task: str, completion: str) -> float:
    """The share of a requirement that a completion meets."""
    return _BY_TEXT[requirement](task, completion)


def written_checklist(text: str) -> str:
    """The checklist for a task."""
    return "\n".join(f"{item.weight:g}: {item.text}" for item in _RULES if item is not EVERYWHERE)


def judged_items(text: str) -> str:
    """How well a completion meets an item, from 0 to 100."""
    parts = parts_of(text)
    return f"{100 * met(parts['requirement'], parts['task'], parts['completion']):.0f}"


def verified_items(text: str) -> str:
    """100 where an item is met fully, else 0; of items that are no matter of fact, nothing."""
    parts = parts_of(text)
    rule = _BY_TEXT[parts["requirement"]]
    return f"{100 * (rule(parts['task'], parts['completion']) == 1.0)}" if rule in _EXACT else ""
