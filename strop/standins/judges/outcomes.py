"""Stand-ins for LLM judges of outcomes: effort, success on web pages, next states, specifications, rubrics."""

from __future__ import annotations

import re
from itertools import pairwise

from strop.environments.format.think_tags import sum_steps
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.standins.solution_styles import terms_in
from strop.text.llm_prompt import parts_of

# A judge of effort that is a rule: how many different calculations a completion tries; to be asked by `Procedural`.

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")  # from where a word begins
_PLENTY = 5  # different calculations that are all the effort one could wish for


def effort(text: str) -> str:
    """From 0 to 100; the same calculation again is no effort, and whether it holds is not asked."""
    tried = set(_STEP.findall(parts_of(text)["completion"]))
    return f"{100 * min(len(tried) / _PLENTY, 1):g}"


# LLM clients that are rules, for sums: the brief that a sum is, and the one that a worked solution seems to answer.
#
# They stand for the language models of inverse specification. To be asked by `Procedural`, for example as
# `strop.standins.judges.outcomes:guessed`.

_NUMBER = re.compile(r"\d+")
_INVERSE_SPEC_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")


def told(text: str) -> str:
    """The topic is the first number, the themes are the others, the size how many steps they take."""
    return _brief(_NUMBER.findall(parts_of(text)["task"]))


def guessed(text: str) -> str:
    """The numbers that a working adds: both of its first step, then one of each; what does not hold is not read."""
    steps = [step for step in _INVERSE_SPEC_STEP.findall(parts_of(text)["completion"])[:MOST_STEPS] if holds(step)]
    sums = [_NUMBER.findall(step.partition("=")[0]) for step in steps]
    numbers = [number for place, each in enumerate(sums) for number in (each if not place else each[1:])]
    return _brief(numbers) if numbers else "audience: nobody"


def _brief(numbers: list[str]) -> str:
    first, others = numbers[:1], numbers[1:]
    return f"topic: {' '.join(first)}\naudience: pupils\nsize: {len(others)}\nthemes: {', '.join(others)}"


# What follows a completion, judged by rules: a language model's place in runs that need none (OpenClaw-RL, 2603.10165).
#
# To be asked by `Procedural` as `strop.standins.judges.outcomes:judged_next_state`. The rules know no task's answer,
# but they can add up.

_BAD = ("error", "that is wrong", "say a number")
_GOOD = re.compile(r"thanks|ok|[0-9]{1,9}")
_SUM = re.compile(r"([0-9]{1,9}(?:\+[0-9]{1,9}){1,9})=\?")


def judged_next_state(text: str) -> str:
    """`score: -1`, 0 or 1 for a completion by what was said after it; or a hint that would have helped, behind its
    score.
    """
    parts = parts_of(text)
    state = parts.get("other", "").strip()
    is_bad = state.startswith(_BAD)
    if parts.get("wanted") == "hint":
        hint = _hint(parts.get("task", "")) if is_bad else ""
        return f"score: {1 if hint else -1}\n{hint}"
    return f"score: {-1 if is_bad else int(_GOOD.fullmatch(state) is not None)}"


def _hint(task: str) -> str:
    """The working of a sum; of another task, how a store is asked."""
    found = _SUM.search(task)
    if found:
        return "hint: " + " ".join(sum_steps([int(each) for each in found.group(1).split("+")])[0])
    return "hint: <call>get KEY</call> for one key at a time" if "sum " in task else ""


# LLM clients that are rules, for chain sums: a rubric of the right steps, and a judge who looks for each of them.
#
# They stand for the larger model of RuscaRL. To be asked by `Procedural`, as
# `strop.standins.judges.outcomes:judged_rubric`.

_RUBRIC_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")
_POINTS = 5  # of each step


def written_rubric(text: str) -> str:
    """The rubric for a task: a line for each step."""
    steps, _ = sum_steps(terms_in(parts_of(text)["task"]))
    return "\n".join(f"{_POINTS}: {step}" for step in steps)


def judged_rubric(text: str) -> str:
    """Whether a completion has a step."""
    parts = parts_of(text)
    return "yes" if parts["requirement"] in _RUBRIC_STEP.findall(parts["completion"]) else "no"


# A judge of visits to a site that is a rule: the answer stands behind what was looked for, on a page that was seen.


def judged_pages(text: str) -> str:
    """SUCCESS or NOT SUCCESS."""
    parts = parts_of(text)
    wanted = parts["task"].removeprefix("find ").partition(":")[0]
    words = parts["other"].split()
    found = [after for word, after in pairwise(words) if word == wanted]
    return "SUCCESS" if parts["completion"] in found else "NOT SUCCESS"
