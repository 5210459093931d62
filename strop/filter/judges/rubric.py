"""Rubric judging: prompts for writing a rubric and for scoring one item, and the parsers of the answers.

An item has points, which may be negative for something that a completion must not do.
"""

from __future__ import annotations

from strop.filter.judges.batch_ask import EXACT, key_of, text_of, unread
from strop.filter.judges.checklist_items import Item, items_of_row
from strop.filter.judges.readers import weighted
from strop.roles import LLMClient
from strop.text.llm_prompt import question
from strop.types import Message, Task

WANTED = (
    "Write a rubric for completions to this task: one criterion per line, each with its points before it, negative for "
    "what a completion must not do, as in 5: It names the author. or -3: It guesses."
)
RUBRIC, _USUAL = "rubric", 1.0  # a table's column, and the points of a criterion that has none
JUDGED = "Does the completion meet the requirement? Answer with yes or no."


def items_in(text: str) -> list[Item]:
    """The items of a rubric, one per line; lines without points are left out."""
    return [Item(weight, said) for weight, said in weighted(text) if weight]


async def rubric_of(task: Task, task_generator: LLMClient, prompt: str = WANTED) -> list[Item]:
    """The row's column `rubric`, or what is written, the same for all who ask.

    One without any positive points cannot be earned and is none.
    """
    given = items_of_row(task, RUBRIC, _USUAL)
    if any(item.weight > 0 for item in given):
        return given
    asked = question(prompt, task=text_of(task))
    said = await answer(task_generator, asked)
    items = items_in(said)
    if not any(item.weight > 0 for item in items):
        raise unread(task_generator, said, f"there is no item with points to earn in the rubric for task {task.id}:")
    return items


async def answer(llm_client: LLMClient, asked: str) -> str:
    """What an LLM client says to a question."""
    return await llm_client.ask([Message("user", asked)], EXACT, key_of(asked))
