"""sapo: what is shared and read, which groups are drawn, and what foreign text becomes, by hand and with two nodes."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.setting import Setting
from strop.recipes.system.sapo_sharing import (
    FOREIGN,
    SharedGroup,
    SharedTasks,
    Swarm,
    publish,
    published,
    read,
    sapo_sharing,
)
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Origin, Outcome, Rollout, Task
from tests.building import make_batch, say, turn, written
from tests.generate.talking import END, Recording, policy_of, save_folder
from tests.recipes.going_on import SIZES, acts_and_goes_on
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(2)
ESTIMATOR = Counts()


def sum_of(index: int) -> Task:
    return ENV.task(index)


def share(folder: Path, index: int, *completions: str, node: str = "a") -> Task:
    task = sum_of(index)
    publish(folder, node, index, SharedGroup(task, tuple((completion,) for completion in completions)))
    return task


def sampler(folder: Path, **fields: Any) -> SharedTasks:
    return SharedTasks(Uniform((ENV,)), (ENV,), str(folder), **{"node": "b", "own": 1, "foreign": 1, **fields})


def drawn(chooser: SharedTasks, count: int) -> list[str]:
    return [chooser.next(0, ESTIMATOR).id for _ in range(count)]


# ---- the folder


def test_what_is_shared_is_read_as_it_was(tmp_path: Path) -> None:
    task = sum_of(0)
    group = SharedGroup(task, (("1", "2"), ("3",)))
    publish(tmp_path, "a", 12, group)
    publish(tmp_path, "a", 2, group)
    publish(tmp_path, "b", 1, group)
    assert published(tmp_path) == ["a/2", "a/12", "b/1"] and published(tmp_path, without="a") == ["b/1"]
    assert read(tmp_path, "a/12") == group
    assert published(tmp_path / "nowhere") == [] and not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"task": 1, "completions": []}',
        '{"completions": [["1"]]}',
        '{"task": {}, "completions": 4}',
        "\udcff",
    ],
)
def test_what_cannot_be_read_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read(tmp_path, "a/1") is None and read(tmp_path, "a/2") is None
    assert drawn(sampler(tmp_path), 2) == drawn(sampler(tmp_path / "nowhere"), 2)


def test_what_would_block_or_break_a_reader_is_passed_over(tmp_path: Path) -> None:
    """A pipe that nobody writes to, brackets without end, and a task whose words are numbers."""
    publish(tmp_path, "a", 1, SharedGroup(sum_of(0), (("1",),)))
    whole = json.loads((tmp_path / "a" / "1.json").read_text())
    assert read(tmp_path, "a/1") is not None
    os.mkfifo(tmp_path / "a" / "2.json")
    (tmp_path / "a" / "3.json").write_text("[" * 200_000)
    whole["task"]["messages"][0]["content"] = 7
    (tmp_path / "a" / "4.json").write_text(json.dumps(whole))
    assert [read(tmp_path, f"a/{number}") for number in (2, 3, 4)] == [None] * 3


def test_a_file_of_a_megabyte_is_not_opened(tmp_path: Path) -> None:
    share(tmp_path, 0, "1" * 999_000, "2" * 2_000)
    assert read(tmp_path, "a/0") is None
    share(tmp_path, 0, "1" * 900_000, "2")
    assert read(tmp_path, "a/0") is not None


# ---- the batch


def test_own_and_foreign_groups_take_turns(tmp_path: Path) -> None:
    for index in range(3):
        share(tmp_path, index, sum_of(index).answer, "wrong")
    found = drawn(sampler(tmp_path, own=2, foreign=3), 10)
    assert [name.startswith(FOREIGN) for name in found] == [False, False, True, True, True] * 2
    assert sorted(found[2:5]) == sorted(found[7:]) == ["@a/0", "@a/1", "@a/2"], "each once, then again"
    plain = Uniform((ENV,))
    assert found[:2] + found[5:7] == [plain.next(0, ESTIMATOR).id for _ in range(4)]
    orders = {tuple(drawn(sampler(tmp_path, own=0, foreign=1, seed=seed), 3)) for seed in range(20)}
    assert len(orders) > 3, "the seed decides"


def test_groups_without_contrast_held_out_or_of_other_envs_are_never_drawn(tmp_path: Path) -> None:
    share(tmp_path, 0, "wrong", "also wrong")
    share(tmp_path, 1, sum_of(1).answer, sum_of(1).answer)
    share(tmp_path, 2, sum_of(2).answer, "wrong", node="b")
    hidden = ENV.task(0, heldout=True)
    publish(tmp_path, "a", 3, SharedGroup(hidden, ((hidden.answer,), ("wrong",))))
    other = KeyValue(2).task(0)
    publish(tmp_path, "a", 4, SharedGroup(other, (("1",), (str(json.loads(other.answer)["total"]),))))
    publish(tmp_path, "a", 5, SharedGroup(sum_of(5), ()))
    assert not any(name.startswith(FOREIGN) for name in drawn(sampler(tmp_path, own=0), 4)), "nobody is waited for"
    share(tmp_path, 6, sum_of(6).answer, "wrong")
    chooser = sampler(tmp_path, own=0)
    task = chooser.next(0, ESTIMATOR)
    assert task == replace(sum_of(6), id="@a/6") and drawn(chooser, 2) == ["@a/6", "@a/6"]


def test_only_what_will_be_said_again_makes_a_group_uneven(tmp_path: Path) -> None:
    """The right completion of eight is the third: a node of two rollouts would learn nothing from the first two."""
    share(tmp_path, 0, "wrong", "also wrong", sum_of(0).answer, *["wrong"] * 5)
    for size, names in ((2, []), (3, ["@a/0"])):
        setting = Setting(env="arithmetic:2", group_size=size)
        chooser = sapo_sharing(setting, folder=str(tmp_path), node="b", own=1, foreign=1).sampler
        found = [chooser.next(0, ESTIMATOR).id for _ in range(2)]
        assert [name for name in found if name.startswith(FOREIGN)] == names


def test_it_goes_on_as_it_would_have(tmp_path: Path) -> None:
    for index in range(6):
        share(tmp_path, index, sum_of(index).answer, "wrong")
        share(tmp_path, index + 10, "wrong", "wrong")
    first, second = sampler(tmp_path), sampler(tmp_path)
    drawn(first, 5)
    second.restore(json.loads(json.dumps(first.state())))
    later, again = drawn(first, 7), drawn(second, 7)
    assert [name for name in later if FOREIGN in name] == [name for name in again if FOREIGN in name] != []
    assert len([name for name in later if FOREIGN in name]) == 4
    for own, foreign in ((-1, 2), (2, -1), (0, 0)):
        with pytest.raises(ConfigurationError, match="own and foreign >= 0, and one of them"):
            sampler(tmp_path, own=own, foreign=foreign)


# ---- what is said


def player(folder: Path, task: Task, completions: list[str]) -> GroupPlayer:
    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder / "model"), Recording([f"{completion}|" for completion in completions]))
    return GroupPlayer(Group(7, task, []), policy, (ENV,), Chat(), 0, score)


def played(folder: Path, swarm: Swarm, task: Task, completions: list[str], count: int = 2) -> Group:
    play = player(folder, task, completions)
    play.group.rollouts = asyncio.run(swarm(play.group, [play.another() for _ in range(count)], play))
    swarm.observe(play.group)
    return play.group


def test_one_node_tries_and_the_other_says_it_again(tmp_path: Path) -> None:
    """The text of a, tokenized by b with an end behind it, judged by b's environment, sampled and counted by nobody."""
    task, folder = sum_of(0), tmp_path / "shared"
    made = played(tmp_path, Swarm(str(folder), "a"), task, [task.answer, "ab"])
    assert published(folder) == ["a/7"] and read(folder, "a/7") == SharedGroup(task, ((task.answer,), ("ab",)))
    chooser = SharedTasks(Uniform((ENV,)), (ENV,), str(folder), "b", 0, 1)
    group = played(tmp_path, Swarm(str(folder), "b"), chooser.next(0, ESTIMATOR), [], count=3)
    assert [rollout.completion for rollout in group.rollouts] == [task.answer, "ab"]
    assert [rollout.turn_rewards for rollout in group.rollouts] == [(1.0,), (0.0,)]
    assert [rollout.turn_rewards for rollout in made.rollouts] == [(1.0,), (0.0,)]
    assert all(rollout.origin is Origin.GUIDED and rollout.num_sampled == 0 for rollout in group.rollouts)
    assert all(rollout.turns[0].tokens[-1] == END for rollout in group.rollouts)
    assert len(group.rollouts[1].turns[0].tokens) == 2, "ab is one token of its own text, and the end"
    assert published(folder) == ["a/7"], "what others made is not shared again"
    told = Swarm(str(folder), "b").learn([group, made, made])
    assert told == {"foreign_share": pytest.approx(1 / 3), "shared_groups": 2.0}
    assert Swarm(str(folder)).learn([made])["shared_groups"] == 0.0


def test_only_own_rollouts_that_count_are_shared_and_only_under_a_name(tmp_path: Path) -> None:
    task = sum_of(0)
    lost = Rollout("1", task, (turn(1),), Outcome.FAILED)
    guided = Rollout("2", task, (turn(1),), Outcome.FINISHED, Origin.GUIDED)
    Swarm(str(tmp_path), "a").observe(Group(0, task, [lost, guided]))
    Swarm(str(tmp_path)).observe(Group(1, task, [Rollout("3", task, (turn(1),), Outcome.FINISHED)]))
    assert published(tmp_path) == []
    gone = played(tmp_path, Swarm(str(tmp_path)), replace(task, id="@a/99"), [])
    assert gone.rollouts == [], "a group that was taken away"


def test_foreign_text_is_trained_as_if_it_were_ones_own() -> None:
    """What b learns from a text does not depend on who wrote it, nor on the logprobs it was written with."""
    found = []
    for behavior in ([[-0.7, -0.2]], [[0.0, 0.0]]):
        batch, output = make_batch(behavior, advantages=[1.5]), say([[-0.7, -0.2]])
        loss, _ = Reinforce()(output, batch)
        loss.sum().backward()
        found.append(written(batch, output.logprobs.grad))
    assert found[0] == found[1] == [-1.5, -1.5]


def test_a_node_trains_on_what_a_peer_shared_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Half of its groups are the peer's, its own are shared; resumed it takes the same ones, and replay agrees."""
    for index in range(6):
        share(tmp_path, index, sum_of(index).answer, "wrong", "3", sum_of(index).answer)
        share(tmp_path, index + 10, "wrong", "wrong")
    setting = Setting(env="arithmetic:2", model=str(save_pocket_like(tmp_path / "model")), **SIZES)
    run = sapo_sharing(setting, folder=str(tmp_path), node="b", own=1, foreign=1)
    rows = acts_and_goes_on(run, tmp_path / "runs", {"foreign_share": 0.0, "shared_groups": 0.0, "grad_norm": 0.0})
    assert [row["foreign_share"] for row in rows] == [0.5] * 4 and [row["shared_groups"] for row in rows] == [1.0] * 4
    assert [row["reward_of/guided"] for row in rows] == [0.5] * 4, "two of four completions are right"
    assert published(tmp_path, without="a") == [f"b/{number}" for number in (0, 2, 4, 6)]


class Noting(Uniform):
    """A sampler that keeps what it was asked."""

    def next(self, step: int, estimator: Any) -> Task:
        assert (step, estimator) == (3, ESTIMATOR)
        return super().next(step, estimator)


def test_its_memory_is_nobody_elses_business(tmp_path: Path) -> None:
    """Two samplers are equal by their fields; what was drawn belongs in a checkpoint, and in no recipe."""
    share(tmp_path, 0, sum_of(0).answer, "wrong")
    share(tmp_path, 1, "wrong", "wrong")
    chooser = replace(sampler(tmp_path, own=1, foreign=2), inner=Noting((ENV,)))
    assert [chooser.next(3, ESTIMATOR).id.startswith(FOREIGN) for _ in range(6)] == [False, True, True] * 2
    assert chooser.state() == {"num_drawn": 6, "taken": ["a/0"]}
    assert replace(chooser, inner=Uniform((ENV,))) == sampler(tmp_path, own=1, foreign=2)
    assert "taken" not in repr(chooser) and "useless" not in repr(chooser) and "num_drawn" not in repr(chooser)
    with pytest.raises(TypeError):
        SharedTasks(chooser.inner, (ENV,), "f", "b", 1, 1, 8, 0, 5)  # type: ignore[call-arg]
