"""Task generators of tests: a flow to play in, and LLM clients whose answers are written down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strop.capabilities import Observes
from strop.roles import LLMClient, TaskGenerator
from strop.run_state import Flow
from strop.text.llm_prompt import parts_of
from strop.types import Group, Message, Sampling, Task
from tests.building import make_group
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass
class Told(LLMClient):
    """Answers each kind of request with its next text, the last one for ever, and keeps what it was asked."""

    answers: dict[str, list[str]]
    asked: list[dict[str, str]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        parts = parts_of(messages[-1].content)
        self.asked.append(parts)
        await asyncio.sleep(0)
        left = self.answers[parts["wanted"]]
        return left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def a_flow(folder: Path, **parts: Any) -> Iterator[Flow]:
    with opened(make_run(**parts), save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, _):
        yield flow


def group_of(task: Task, rewards: Sequence[float], number: int = 0, version: int = 0) -> Group:
    group = replace(make_group(rewards, number=number), task=task, version=version)
    for rollout in group.rollouts:
        rollout.task = task
    return group


def written(flow: Flow, task_generator: TaskGenerator, group: Group) -> list[Task]:
    """What a task generator makes of a group, which it is shown afterwards as in a run."""
    made = asyncio.run(task_generator(group, flow.player(group)))
    if isinstance(task_generator, Observes):
        task_generator.observe(group)
    return made
