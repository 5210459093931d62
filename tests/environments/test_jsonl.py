"""Tasks from a file: endless, split by content, and every malformed line named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from strop.environments.jsonl import Jsonl
from strop.errors import ConfigurationError, DataError
from strop.types import Message
from tests.environments.playing import demonstrated, replied


def saved(folder: Path, *lines: Any, name: str = "tasks.jsonl") -> str:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def rows(count: int) -> list[dict[str, str]]:
    return [{"prompt": f"{n}+1=?", "answer": str(n + 1)} for n in range(count)]


def test_every_task_comes_once_per_epoch_in_a_new_order(tmp_path: Path) -> None:
    world = Jsonl(saved(tmp_path, *rows(50)), heldout_share=0.2)
    sizes = {}
    for heldout in (False, True):
        tasks = [world.task(index, heldout) for index in range(50)]
        size = sizes[heldout] = len(set(tasks))
        epochs = [[world.task(index, heldout) for index in range(k * size, (k + 1) * size)] for k in (0, 1)]
        assert set(epochs[0]) == set(epochs[1]) and (heldout or epochs[0] != epochs[1])
    assert sizes[False] + sizes[True] == 50 and 3 <= sizes[True] <= 20


def test_duplicates_never_straddle_the_split(tmp_path: Path) -> None:
    doubled = [row for row in rows(40) for _ in range(3)]
    doubled += [{"prompt": f" {row['prompt']} ", "answer": "other"} for row in rows(40)]
    world = Jsonl(saved(tmp_path, *doubled), heldout_share=0.3)
    sides = [{world.task(i, side).messages[0].content.strip() for i in range(200)} for side in (False, True)]
    assert len(sides[0]) + len(sides[1]) == 40 and not sides[0] & sides[1]


def test_a_new_line_moves_no_old_task_to_the_other_side(tmp_path: Path) -> None:
    few, many = (Jsonl(saved(tmp_path, *rows(n), name=f"{n}.jsonl"), 0.3) for n in (40, 80))
    before, after = ({w.task(i, True).messages for i in range(80)} for w in (few, many))
    assert before < after


def test_two_tasks_are_enough_for_both_sides(tmp_path: Path) -> None:
    world = Jsonl(saved(tmp_path, *rows(2)), heldout_share=0.0001)
    assert world.task(0) != world.task(0, heldout=True)


def test_messages_level_and_unicode(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "kurz"}, {"role": "user", "content": "größer?\u2028ja"}]
    line = json.dumps({"messages": messages, "answer": "ja", "level": 3}, ensure_ascii=False)
    task = Jsonl(saved(tmp_path, line, "", name="größe.jsonl"), heldout_share=0.0).task(0)
    assert task.messages == (Message("system", "kurz"), Message("user", "größer?\u2028ja"))
    assert (task.level, task.source, task.answer) == (3, "größe", "ja")


def test_the_final_answer_is_compared_and_can_be_shown(tmp_path: Path) -> None:
    world = Jsonl(saved(tmp_path, *rows(2)), heldout_share=0.0)
    task = world.task(0)
    assert [replied(world, task, [r])[0].reward for r in (task.answer, f"<think>hm</think> {task.answer}", "7")] == [
        1,
        1,
        0,
    ]
    said, paid = demonstrated(world, task)
    assert said[0].content == task.answer and paid == [1.0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "x", "answer": "y"', "Expecting"),
        ('["x"]', "need an object like .* got list"),
        ('{"answer": "y"}', "need either `prompt` or `messages`"),
        ('{"prompt": "x", "messages": [], "answer": "y"}', "not both"),
        ('{"prompt": "x"}', "`answer` is missing"),
        ('{"prompt": "x", "answer": 4}', "`answer` must be text, got 4"),
        ('{"prompt": null, "answer": "4"}', "`prompt` must be text, got None"),
        ('{"promt": "x", "answer": "4"}', "unknown field 'promt'; did you mean prompt"),
        ('{"prompt": "x", "answer": "4", "level": "hard"}', "`level` must be a whole number, got 'hard'"),
        ('{"messages": [], "answer": "y"}', "at least one"),
        ('{"messages": [{"role": "robot", "content": "x"}], "answer": "y"}', "`role` of system, user.*robot"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = saved(tmp_path, *rows(2), line, *rows(1))
    with pytest.raises(DataError, match=rf"tasks\.jsonl:3: .*{said}"):
        Jsonl(path).task(0)


def test_files_that_cannot_serve_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        Jsonl(str(tmp_path / "none.jsonl")).task(0)
    with pytest.raises(DataError, match=r"tasks\.jsonl holds no tasks"):
        Jsonl(saved(tmp_path, "", "  ")).task(0)
    with pytest.raises(DataError, match="leaves no held-out tasks out of 2"):
        Jsonl(saved(tmp_path, *rows(2)), heldout_share=0.0).task(0, heldout=True)
    with pytest.raises(ConfigurationError, match=r"heldout_share must be .* got 1.5"):
        Jsonl(saved(tmp_path, *rows(2)), heldout_share=1.5).task(0)
    (tmp_path / "latin.jsonl").write_bytes('{"prompt": "gr\xf6ße"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.jsonl:1: .*utf-8"):
        Jsonl(str(tmp_path / "latin.jsonl")).task(0)


def test_it_is_picklable_after_use_and_its_text_makes_it_again(tmp_path: Path) -> None:
    world = Jsonl(saved(tmp_path, *rows(2000)))
    world.task(0)
    assert len(pickle.dumps(world)) < 500 and pickle.loads(pickle.dumps(world)) == world == eval(repr(world))
