"""Judge prompt for the first wrong step of a solution, and the parser of its answer (FAPO, 2510.22543).

Papers: fapo
"""

from __future__ import annotations

import re
from collections.abc import Callable

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.text.llm_prompt import compact, parts_of
from strop.text.steps import steps_of as pieces_of

WANTED = "Which step is the first wrong one? Answer with its number, -1 if none is."
CLEAN = -1  # what is said of a solution without a wrong step
_NUMBER = re.compile(r"-?[0-9]{1,6}")
_STEP = re.compile(r"^([0-9]+): (.*)$", re.MULTILINE)


def steps_of(completion: str) -> list[str]:
    """The paragraphs of a completion; of a single one its sentences and lines, or the calculations that it consists of.

    Each is one line, so that none can pass for two.
    """
    text = completion.replace(OPEN, " ").replace(CLOSE, " ")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    found = [part for part in paragraphs if part]
    if len(found) > 1:
        return found
    words = text.split()
    if all("=" in word for word in words[:-1]):
        return words
    return [" ".join(text[piece.start : piece.end].split()) for piece in pieces_of(text)]


def question_about(
    task: str, answer: str, completion: str, form: Callable[..., str] = compact, wanted: str = WANTED
) -> str:
    """What the judge reads: the task, its answer, and the completion in numbered steps, the first of which is 0."""
    steps = [f"{number}: {step}" for number, step in enumerate(steps_of(completion))]
    return form(wanted, task=task, answer=answer, completion="\n".join(steps))


def numbered_in(text: str) -> list[str]:
    """The steps of a question again, for judges that are rules."""
    return [step for _, step in _STEP.findall(parts_of(text)["completion"])]


def located(said: str, count: int) -> int | None:
    """The last number of an answer to a question about `count` steps; None: there is none, or no step has it."""
    found = _NUMBER.findall(final_answer(said))
    place = int(found[-1]) if found else None
    return place if place is not None and CLEAN <= place < count else None
