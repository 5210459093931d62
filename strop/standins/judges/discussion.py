"""A scorer of discussions that is a rule, for sums and other scratchpads: it knows no task's answer.

It stands for the language model that scores in CoMAS. To be asked by `Procedural`, as
`strop.standins.judges.discussion:scored_discussion`.
"""

from __future__ import annotations

import re

from strop.environments.format.think_tags import final_answer
from strop.filter.judges.arithmetic_steps import MOST_STEPS, holds
from strop.text.llm_prompt import parts_of

_STEP = re.compile(r"(?<![^\s<>])[^\s<>=]*=[^\s<>]*")


def scored_discussion(text: str) -> str:
    """1 where a calculation is wrong or there is no answer; else 3 where the evaluation agrees, else 2."""
    parts = parts_of(text)
    solution, evaluation = parts["completion"], parts["other"]
    steps, answer = _STEP.findall(solution), final_answer(solution)
    if not answer or len(steps) > MOST_STEPS or not all(map(holds, steps)):
        return "1"
    return "3" if final_answer(evaluation) == answer else "2"
