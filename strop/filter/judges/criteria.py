"""Judging of several criteria in one answer: the prompt, and the parser of the scores.

An answer with a wrong number of scores, or with a score that is not a number, is invalid.
"""

from __future__ import annotations

from collections.abc import Sequence

from strop.filter.judges.batch_ask import judged, text_of, transcript, unread
from strop.filter.judges.readers import PerItem, listed
from strop.filter.judges.rubric import answer
from strop.roles import LLMClient
from strop.text.llm_prompt import judgement, question
from strop.types import Rollout, Task

WANTED = "What makes a completion to this task a good one? Name the criteria, one per line, each after a dash."
SCORED = (
    "How well does the completion meet each numbered requirement, from 0 (not at all) to 100 (fully)? One line each, "
    "as in "
    "2: 40"
)


def criteria_in(text: str) -> list[str]:
    """The criteria of an answer, each once; lines without a dash, star or number before them are left out."""
    return listed(text)


async def criteria_of(task: Task, task_generator: LLMClient, prompt: str = WANTED) -> list[str]:
    """From the task alone, so that they are the same for all completions to it."""
    said = await answer(task_generator, question(prompt, task=text_of(task)))
    if not (found := criteria_in(said)):
        raise unread(task_generator, said, f"there is no criterion for task {task.id} in")
    return found


async def scores_of(
    rollout: Rollout, requirements: Sequence[str], judge: LLMClient, prompt: str = SCORED
) -> list[float]:
    """One from 0 to 1 for each requirement."""
    listed = "\n".join(f"{number}: {text}" for number, text in enumerate(requirements, start=1))
    asked = judgement(prompt, task=text_of(rollout.task), completion=transcript(rollout), requirements=listed)
    return await judged(judge, asked, PerItem(len(requirements)))
