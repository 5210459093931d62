"""Recorded episodes: read, replayed, checked before the run, and imitated by the recipes that take them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from strop.environments.data.recorded_episodes import Recorded
from strop.errors import ConfigurationError, DataError
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.types import Message, ToolCall
from tests.environments.playing import demonstrated

SIZES = {"steps": 1, "groups_per_step": 2, "group_size": 4, "max_tokens": 16, "heldout_tasks": 1, "heldout_every": 0}


def episode(number: int, **columns: Any) -> dict[str, Any]:
    call = {"function": {"name": "tap", "arguments": {"x": number, "y": 2}}}
    messages = [
        {"role": "user", "content": f"Open page {number}."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "page opened"},
        {"role": "assistant", "content": "I am done with it.\nAction: finish(ok)"},
    ]
    return {"messages": messages, **columns}


def save(folder: Path, rows: list[dict[str, Any]]) -> str:
    path = folder / "seen.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_a_recording_goes_on_while_completions_act_as_it_did(tmp_path: Path) -> None:
    env = Recorded(save(tmp_path, [episode(n) for n in range(20)]))
    task = env.task(0)
    number = int(task.messages[0].content.split()[-1].rstrip("."))
    assert [message.role for message in task.messages] == ["user"] and env.num_tasks() + env.num_tasks(True) == 20
    said, paid = demonstrated(env, task)
    assert [message.role for message in said] == ["assistant", "tool", "assistant"] and paid == [0.0, 1.0]
    spelled = Message("assistant", "now", (ToolCall("tap", f'{{"y":2,  "x":{number}}}'),))
    other = Message("assistant", "", (ToolCall("tap", '{"x": 99, "y": 2}'),))
    for first, is_same in ((spelled, True), (other, False)):
        (answer,) = _answers(env, task, [first])
        assert answer.done is not is_same and [m.content for m in answer.messages] == ["page opened"] * is_same
    last = _answers(env, task, [spelled, Message("assistant", "So.\nAction: finish( ok )")])[-1]
    assert last.done and last.reward == 1.0
    assert _answers(env, task, [spelled, Message("assistant", "Action: finish(no)")])[-1].reward == 0.0


def _answers(env: Recorded, task: Any, completions: list[Message]) -> list[Any]:
    import asyncio

    async def talk() -> list[Any]:
        played = env.episode()
        await played.reset(task)
        return [await played.step(each) for each in completions]

    return asyncio.run(talk())


def test_only_successes_are_replayed(tmp_path: Path) -> None:
    rows = [episode(n, reward=(-1.0, 0.2, 1.0)[n % 3]) for n in range(30)]
    env = Recorded(save(tmp_path, rows))
    kept = {env.task(n).messages[0].content for n in range(30)} | {
        env.task(n, True).messages[0].content for n in range(9)
    }
    assert kept == {f"Open page {n}." for n in range(30) if n % 3}, "the middle of -1 to 1 is 0"
    assert Recorded(save(tmp_path, [episode(n, reward=1.0) for n in range(30)])).num_tasks() > 20
    with pytest.raises(DataError, match=r"every `reward` in .* is 0: no episode is a success"):
        Recorded(save(tmp_path, [episode(n, reward=0.0) for n in range(30)])).num_tasks()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "a"}, r"seen.jsonl:1: there are no `messages`; need a row for each episode"),
        ({"messages": [{"role": "user", "content": "a"}]}, "the first message is of the user, the last of the user"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "a message needs a `role` of"),
        (episode(1, reward="good"), "`reward` must be a finite number, got 'good'"),
        (episode(1, reward=math.nan), "`reward` must be a finite number, got nan"),
    ],
)
def test_a_file_in_another_format_is_refused_before_the_run(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = save(tmp_path, [row])
    with pytest.raises(DataError, match=message):
        check(build(recipe_named("ui_s1"), {"episodes": path}))
    with pytest.raises(DataError, match=message):
        check(build(recipe_named("digirl"), {"episodes": path}))
    with pytest.raises(ConfigurationError, match=r"there is no file gone\.jsonl with recorded episodes"):
        check(build(recipe_named("webrl"), {"episodes": "gone.jsonl"}))


def test_ui_s1_mends_steps_from_a_recording(tmp_path: Path) -> None:
    path = save(tmp_path, [episode(n) for n in range(20)])
    launch(build(recipe_named("ui_s1"), {"episodes": path, **SIZES}), tmp_path, "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum(row.get("steps_mended", 0.0) for row in rows) > 0


@pytest.mark.parametrize("recipe", ["digirl", "webrl", "openwebvoyager", "mobile_r1"])
def test_recordings_are_imitated_first(recipe: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path, [episode(n) for n in range(20)])
    run = build(recipe_named(recipe), {"episodes": path, **SIZES})
    assert run.warmup is not None and [type(env) for env in run.warmup.envs] == [Recorded]
    assert Recorded not in map(type, run.envs)
    if recipe == "digirl":
        run.warmup.steps = 1
        launch(run, tmp_path, "run")
        rows = (tmp_path / "run" / "warmup" / "metrics.jsonl").read_text().splitlines()
        assert json.loads(rows[-1])["nll"] > 0 and "was never reported" not in capfd.readouterr().err
