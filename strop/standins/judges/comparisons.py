"""Rule-based stand-ins for LLM judges that compare completions: pairs, lists, discussions."""

from __future__ import annotations

import re

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.environments.judging.listwise import completions_in
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.text.llm_prompt import parts_of

# A scorer of discussions that is a rule, for sums and other scratchpads: it knows no task's answer.
#
# It stands for the language model that scores in CoMAS. To be asked by `Procedural`, as
# `strop.standins.judges.comparisons:scored_discussion`.

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")


def scored_discussion(text: str) -> str:
    """1 where a calculation is wrong or there is no answer; else 3 where the evaluation agrees, else 2."""
    parts = parts_of(text)
    solution, evaluation = parts["completion"], parts["other"]
    steps, answer = _STEP.findall(solution), final_answer(solution)
    if not answer or len(steps) > MOST_STEPS or not all(map(holds, steps)):
        return "1"
    return "3" if final_answer(evaluation) == answer else "2"


# A judge of several completions that is a rule: which share of their calculations hold; to be asked by `Procedural`.


def scored_list(text: str) -> str:
    """A number from 0 to 10 for each completion."""
    return " ".join(str(_score(completion)) for completion in completions_in(text))


def _score(completion: str) -> int:
    steps = [word for word in completion.split() if "=" in word]
    return round(10 * sum(map(holds, steps[:MOST_STEPS])) / len(steps)) if steps else 0


# Who compares two completions where there is no language model: a rule that checks calculations, asked by `Procedural`.
#
# It knows no answers: a working whose calculations hold and lead to what is answered is better than one that does not.

_PAIRWISE_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")  # from where a word begins


def compared(text: str) -> str:
    """A verdict from -3 to 3 behind a word about each completion; never 0."""
    parts = parts_of(text)
    first, second = (_worth(parts[name]) for name in ("completion", "other"))
    lead = first - second
    strength = 3 if abs(lead) >= 2 else 2 if lead else 1
    return f"first: {first} of 3, second: {second} of 3\nverdict: {-strength if lead < 0 else strength}"


def _worth(completion: str) -> int:
    """A point each for shown working, for calculations that all hold, and for answering what the last one says."""
    steps: list[str] = _PAIRWISE_STEP.findall(completion.replace(OPEN, " ").replace(CLOSE, " "))
    if not steps:
        return 0
    hold = len(steps) <= MOST_STEPS and all(map(holds, steps))
    return 1 + hold + (final_answer(completion) == steps[-1].rpartition("=")[2])
