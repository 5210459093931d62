from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.recipes.select.clpo import Reworded
from strop.roles import LLMClient
from strop.run_state import Flow
from strop.stats.task_lineage import ancestor, is_written
from strop.text.llm_prompt import parts_of
from strop.types import Group, Message, Origin, Sampling, Task
from tests.building import make_group
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

PARENT = Arithmetic(4).task(0)


@dataclass(frozen=True)
class Echo(LLMClient):
    """The identity as a rewriter, with the request in front where it is asked to tell."""

    tells: bool = False

    async def ask(self, messages: list[Message], sampling: Sampling, key: int) -> str:  # type: ignore[override]
        parts = parts_of(messages[-1].content)
        said = f"{parts['wanted']} {parts['answer']}" if self.tells else parts["task"]
        return f"[task]\n{said}"


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    folder = tmp_path_factory.mktemp("flow")
    run = make_run(engine=Scripted({"the same answer": "[task]\n59+30=?"}))
    with opened(run, save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, _):
        flow.policy = replace(flow.policy, context=1000)
        yield flow


def written(flow: Flow, rewards: list[float], task_generator: Reworded, task: Task = PARENT) -> list[Task]:
    group = replace(make_group(rewards), task=task)
    return asyncio.run(task_generator(group, flow.player(group)))


@pytest.mark.parametrize(
    ("right", "of", "expected"),
    [
        (0, 4, "simpler"),
        (1, 4, "simpler"),
        (2, 4, "reworded"),
        (3, 4, ""),
        (4, 4, ""),
        (3, 10, "simpler"),
        (4, 10, "reworded"),
        (7, 10, "reworded"),
        (8, 10, ""),
    ],
)
def test_the_pass_rate_decides_the_rewrite(flow: Flow, right: int, of: int, expected: str) -> None:
    tasks = written(flow, [1.0] * right + [0.0] * (of - right), Reworded(Echo(tells=True)))
    assert [prompt_of(task) for task in tasks] == ([f"{expected} {PARENT.answer}"] if expected else [])
    assert all(task.answer == PARENT.answer and is_written(task) and ancestor(task) == PARENT.id for task in tasks)


def test_with_the_identity_hard_tasks_come_a_second_time_and_never_a_third(flow: Flow) -> None:
    (again,) = written(flow, [0.0, 0.0, 0.0, 1.0], Reworded(Echo()))
    assert prompt_of(again) == prompt_of(PARENT) and again.id != PARENT.id
    assert written(flow, [0.0, 0.0, 0.0, 1.0], Reworded(Echo()), again) == []


def test_only_the_policys_own_rollouts_count(flow: Flow) -> None:
    group = make_group([1.0, 0.0, 1.0, 1.0], failed=[3])
    group.rollouts[2].origin = Origin.GUIDED
    group = Group(0, PARENT, group.rollouts)  # 1 of 2
    (made,) = asyncio.run(Reworded(Echo(tells=True))(group, flow.player(group)))
    assert prompt_of(made).startswith("reworded")
    assert written(flow, [], Reworded(Echo())) == [], "of nothing nothing is known"


def test_the_policy_itself_can_rewrite(flow: Flow) -> None:
    (made,) = written(flow, [0.0, 0.0], Reworded())
    assert prompt_of(made) == "59+30=?" and made.answer == PARENT.answer


def test_bounds_are_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"0 <= hard <= medium <= 1, got 0\.8 and 0\.7"):
        Reworded(hard=0.8)
