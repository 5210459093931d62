"""Rule-based stand-ins for LLM judges of bundled tasks: generators of criteria and rubrics with vetoes, and a grader.

They do not know a task's answer. For example `Procedural(scored_by_criteria)`.
"""

from __future__ import annotations

import re

from strop.standins.judges.checklist import met, steps_in
from strop.text.llm_prompt import parts_of

_HOLD, _LAST, _USED = (
    "Every calculation holds.",
    "The answer is the result of the last calculation.",
    "All numbers of the task are used.",
)
_ANSWERS, _ONCE = "It answers what was asked, in a fitting manner.", "No calculation stands there twice."
_LINE = re.compile(r"\d+: (.*)")


def written_criteria(text: str) -> str:
    """What fits the task: of more than two numbers, that none is forgotten."""
    numbers = re.findall(r"\d+", parts_of(text)["task"])
    found = [_HOLD, _LAST, *([_USED] if len(numbers) > 2 else [])]
    return "\n".join(f"- {each}" for each in found)


def anchored(text: str) -> str:
    """A rubric with two vetoes: there has to be an answer, and of the calculations half must hold at least."""
    return f"5: {_HOLD}\n3: {_LAST}\n2: {_USED}\nveto: {_ANSWERS}\nveto: {_HOLD}"


def guarded(text: str) -> str:
    """The same, with a veto against steps that are written only to be counted."""
    return f"{anchored(text)}\nveto: {_ONCE}"


def scored_by_criteria(text: str) -> str:
    """How well a completion meets each of several requirements."""
    parts = parts_of(text)
    asked = _LINE.findall(parts["requirements"])
    shares = [_met(requirement, parts["task"], parts["completion"]) for requirement in asked]
    return "\n".join(f"{number}: {100 * share:.2f}" for number, share in enumerate(shares, start=1))


def _met(requirement: str, task: str, completion: str) -> float:
    steps = steps_in(completion)
    return float(len(set(steps)) == len(steps)) if requirement == _ONCE else met(requirement, task, completion)


def compared_by_criteria(text: str) -> str:
    """On which criteria two completions differ, and by how much; for OpenRS's question."""
    parts = parts_of(text)
    kinds = {"fatal": _ANSWERS, "core": _HOLD, "important": _LAST, "highlight": _USED}
    lines = []
    for kind, requirement in kinds.items():
        gap = 5 * (_met(requirement, parts["task"], parts["first"]) - _met(requirement, parts["task"], parts["second"]))
        lines.append(f"{kind}, {'first' if gap > 0 else 'second'}, {abs(gap):.2f}: {requirement}")
    return "\n".join(lines)
