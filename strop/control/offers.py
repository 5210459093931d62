"""Tasks that were written during a run: checked in this one place before a sampler may have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strop.abilities import TakesOffers, outermost
from strop.environments.of_task import world_of
from strop.environments.split import is_heldout, prompt_of
from strop.types import Task

if TYPE_CHECKING:
    from strop.run import Run


def offered(run: Run, tasks: Sequence[Task]) -> None:
    """Hand the sampler those that may be trained on."""
    for _, sampler in outermost(run.sampler, TakesOffers):
        for task in tasks:
            if not refusal(run, task):
                sampler.offer(task)


def refusal(run: Run, task: Task) -> str:
    """Why a written task may not be trained on; empty where it may."""
    asked, world = prompt_of(task), world_of(run.worlds, task)
    kept = (prompt_of(world.task(index, heldout=True)) for index in range(world.num_tasks(heldout=True) or 0))
    if is_heldout(asked) or asked in kept:
        return "it is on the held-out side"
    if task.answer and any(task.answer in message.content for message in task.messages):
        return "its text holds the answer"
    return ""
