"""CORE by hand: what is read, what a failure is shown beside, and that only what helps its own task is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.memory.reflect import REFLECTIONS
from strop.generate.memory.store import Library, add
from strop.recipes.replay.core import INSIGHTS, Insights, RecallOnly
from strop.standins.lessons import lesson, word_for
from strop.text.llm_prompt import question
from strop.types import SUCCESS, Group, Message, Origin, Rollout, Task
from tests.building import make_group
from tests.generate.asking import Counsel, Speaking, player_of

ENV = Arithmetic(3)
TASK = Task((Message("user", "12+34=?"),), "46", "arithmetic", 3)


def played(
    folder: Path, strategy: Insights, right: list[bool], helped: float = 1.0, number: int = 0, task: Task = TASK
) -> tuple[list[Rollout], GroupPlayer, Speaking]:
    """Rollouts without `slowly` are right as `right` says; of those with it, the share `helped`."""
    calls = {"plain": 0, "slowly": 0}

    def script(prompt: str, call: int) -> str:
        kind = "slowly" if "slowly" in prompt else "plain"
        calls[kind] += 1
        is_right = (calls[kind] - 1) % 4 < 4 * helped if kind == "slowly" else right[(calls[kind] - 1) % len(right)]
        return task.answer if is_right else "0"

    play, engine = player_of(folder, ENV, task, script)
    play.group = Group(number, task, [], version=number)
    rollouts = asyncio.run(strategy(play.group, [play.another() for _ in right], play))
    play.group.rollouts = rollouts
    asyncio.run(play.scorer(play.group))
    strategy.observe(play.group)
    return rollouts, play, engine


def kept(strategy: Insights) -> list[tuple[str, float]]:
    strategy.library.catch_up()
    return [(each.text, each.score) for each in strategy.library.on(INSIGHTS)]


def test_an_insight_that_helps_its_task_is_kept_with_what_it_gained(tmp_path: Path) -> None:
    llm_client = Counsel(["go slowly\n"])
    strategy = Insights(Library(), llm_client, trials=4)
    rollouts, play, engine = played(tmp_path, strategy, [False, True, False, False], helped=0.75)
    assert kept(strategy) == [("go slowly", 0.5)]  # 3 of 4 beside 1 of 4
    read = {"insights": 0.0, "insights_tried": 1.0, "insight_gain": 0.5}
    assert rollouts[0].facts == read | {SUCCESS: 0.0}
    assert len(play.made) == 8 and len(play.unused(rollouts)) == 4, "what proved it is paid for and not brought"
    assert sum("go slowly 12+34=?" in prompt for prompt in engine.prompts) == 4
    (asked,) = llm_client.asked
    assert "]\n12+34=?\n[/task" in asked and "]\n0\n[/completion" in asked and "]\n46\n[/other" in asked
    assert {rollout.origin for rollout in rollouts} == {Origin.POLICY}


@pytest.mark.parametrize("helped", [0.25, 0.0])
def test_one_that_does_not_is_not(tmp_path: Path, helped: float) -> None:
    """As good as before, or worse."""
    strategy = Insights(Library(), Counsel(["go slowly"]))
    rollouts, *_ = played(tmp_path, strategy, [False, True, False, False], helped)
    assert kept(strategy) == [] and rollouts[0].facts["insights_tried"] == 1.0


@pytest.mark.parametrize("said", ["slowly to 46", "", None])
def test_nothing_is_tried_where_the_answer_is_told_or_nothing_is_said(tmp_path: Path, said: str | None) -> None:
    strategy = Insights(Library(), Counsel([said]))
    rollouts, play, _ = played(tmp_path, strategy, [False, True])
    assert kept(strategy) == [] and len(play.made) == 2 and rollouts[0].facts["insights_tried"] == 0.0


def test_without_a_failure_or_anything_beside_it_nobody_is_asked(tmp_path: Path) -> None:
    llm_client = Counsel(["go slowly"])
    strategy = Insights(Library(), llm_client)
    played(tmp_path, strategy, [False, False])
    assert llm_client.asked == [], "there is no right rollout"
    played(tmp_path, strategy, [True, True], number=1)
    assert llm_client.asked == []
    other = Task((Message("user", "12+35=?"),), "47", "arithmetic", 3)
    played(tmp_path, strategy, [False, False], number=2, task=other)
    assert "]\n46\n[/other" in llm_client.asked[0], "the most similar task that was solved"
    assert kept(strategy) == [("go slowly", 1.0)]


def test_what_is_kept_is_read_later_and_its_use_is_counted(tmp_path: Path) -> None:
    strategy = Insights(Library(), Counsel(["go slowly", "", "very slowly"]))
    played(tmp_path, strategy, [False, True])
    rollouts, _, engine = played(tmp_path, strategy, [False, False], helped=0.25, number=1)
    assert all("go slowly 12+34=?" in prompt for prompt in engine.prompts)
    assert {rollout.origin for rollout in rollouts} == {Origin.GUIDED} and rollouts[0].facts["insights"] == 1.0
    strategy.library.catch_up()
    (first,) = strategy.library.on(INSIGHTS)
    assert (first.uses, first.wins, first.utility) == (2, 1.0, 0.5)
    played(tmp_path, strategy, [False, False], helped=0.0, number=2)
    assert strategy.learn([])["lessons/used"] == 1.0, "the last group waits for the next version"


def test_only_what_is_read_is_proved_and_counted(tmp_path: Path) -> None:
    """Ten characters stand before a task: an insight of eleven is not tried, and a second one of six is not read."""
    llm_client = Counsel(["go slowly!!", "slowly"])
    strategy = Insights(Library(), llm_client, longest=10)
    rollouts, play, _ = played(tmp_path, strategy, [False, True])
    assert kept(strategy) == [] and rollouts[0].facts["insights_tried"] == 0.0 and len(play.made) == 2
    for text in ("slowly", "calmly"):
        strategy.library.carry_out(add(text, "arithmetic: 12+34=?", INSIGHTS))
    rollouts, *_ = played(tmp_path, strategy, [True, True], number=1)
    strategy.library.catch_up()
    assert rollouts[0].facts["insights"] == 1.0
    assert [(each.text, each.uses) for each in strategy.library.on(INSIGHTS)] == [("slowly", 2), ("calmly", 0)]


def test_a_new_one_stands_first_while_it_is_tried_and_takes_a_place_after_uses_are_counted(tmp_path: Path) -> None:
    """Room for one of six characters, and for one on the category: 1 of 2 were right with the old, all with the new."""
    strategy = Insights(Library(most=1), Counsel(["calmly"]), longest=10)
    strategy.library.carry_out(add("slowly", "arithmetic: 12+34=?", INSIGHTS))
    rollouts, _, engine = played(tmp_path, strategy, [True, True], helped=0.25)
    assert [("slowly" in prompt, "calmly 12+34=?" in prompt) for prompt in engine.prompts] == [(True, False)] * 2 + [
        (False, True)
    ] * 4
    assert rollouts[0].facts["insight_gain"] == 0.5 and kept(strategy) == [("calmly", 0.5)]
    found = strategy.learn([])
    assert (found["lessons/used"], found["lessons/replaced"], found.get("lessons/gone")) == (1.0, 1.0, None)


def test_a_group_reads_what_earlier_versions_left_and_not_its_neighbours(tmp_path: Path) -> None:
    strategy = Insights(Library(), Counsel([""]))
    strategy.library.propose(Group(0, TASK, [], version=3), [add("slowly", "arithmetic: 12+34=?", INSIGHTS)])
    _, _, same = played(tmp_path, strategy, [True], number=3)
    _, _, later = played(tmp_path, strategy, [True], number=4)
    assert "slowly" not in same.prompts[0] and "slowly" in later.prompts[0]


def test_measuring_reads_all_and_writes_nothing(tmp_path: Path) -> None:
    library = Library()
    library.propose(replace(make_group([1.0]), version=9), [add("slowly", "arithmetic: 12+34=?", INSIGHTS)])
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "46")
    (rollout,) = asyncio.run(RecallOnly(library, INSIGHTS)(play.group, [play.another()], play))
    assert "slowly 12+34=?" in engine.prompts[0] and rollout.origin is Origin.GUIDED
    assert library.metrics() == {"lessons": 0.0} and len(library.state()["waiting"]) == 1, "groups in flight read on"


def test_rules_find_slips_and_know_no_answer() -> None:
    assert word_for("12+34=?", "<think>12+34=47</think>47") == "careful:" and word_for("12+34=?", "12+34=46") == ""
    assert word_for("guess 1..8 in 4", "1 -> higher") == "half:"
    asked = question(REFLECTIONS["insight"], wanted="insight", task="1+1=?", completion="1+1=3", other="2")
    assert lesson(asked) == "careful:" and lesson(question("", wanted="else", task="1")) == ""


def test_it_needs_something_to_show_and_to_prove_with() -> None:
    for bad in ({"shown": 0}, {"trials": 0}, {"explore": -0.1}):
        with pytest.raises(ConfigurationError, match="Insights needs shown >= 1"):
            Insights(Library(), **bad)
