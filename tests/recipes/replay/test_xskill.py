"""XSkill by hand: counts after adds, merges and modifications, a full category, and the document of skills."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.memory.store import Library, add
from strop.recipes.replay.xskill import EXPERIENCES, FRAGMENTS, SKILL, SkillsAndExperiences
from strop.text.overlap import overlap
from strop.types import Group, Message, Origin, Task
from tests.generate.asking import Speaking, player_of
from tests.generate.critic import Critic

ENV = Arithmetic(3)
TASK = Task((Message("user", "12+34=?"),), "46", "arithmetic", 3)


def begun(folder: Path, strategy: SkillsAndExperiences, version: int, number: int) -> tuple[Group, Speaking]:
    """A group of a wrong and a right rollout."""
    play, engine = player_of(folder, ENV, TASK, lambda prompt, call: "46" if call % 2 else "0")
    play.group = Group(number, TASK, [], version=version)
    play.group.rollouts = asyncio.run(strategy(play.group, [play.another(), play.another()], play))
    asyncio.run(play.scorer(play.group))
    return play.group, engine


def played(folder: Path, strategy: SkillsAndExperiences, version: int = 0) -> Speaking:
    group, engine = begun(folder, strategy, version, version)
    strategy.observe(group)
    strategy.library.catch_up()
    return engine


def texts(strategy: SkillsAndExperiences, category: str = EXPERIENCES) -> list[str]:
    return [lesson.text for lesson in strategy.library.on(category)]


OLD, NEAR, FAR = "add the tens first", "add the tens at first", "look twice at carries"


def filled(critic: Critic, *known: str, most: int = 9, **more: int) -> SkillsAndExperiences:
    strategy = SkillsAndExperiences(Library(most, 0.7), critic, **more)
    for text in known:
        assert strategy.library.carry_out(add(text, "arithmetic: 12+34=?", EXPERIENCES)) == "added"
    return strategy


@pytest.mark.parametrize(("text", "count"), [(FAR, 2), (NEAR, 1)])
def test_what_is_new_adds_one_and_what_overlaps_adds_none(tmp_path: Path, text: str, count: int) -> None:
    assert overlap(OLD, NEAR) >= 0.7 > overlap(OLD, FAR)
    critic = Critic({"experience": f"add: {text}", "merged": "tens first, always"})
    strategy = filled(critic, OLD)
    played(tmp_path, strategy)
    assert len(texts(strategy)) == count and len(critic.read("merged")) == (count == 1)
    first = strategy.library.on(EXPERIENCES)[0]
    assert first.name == "experiences/1" and first.text == (OLD if count == 2 else "tens first, always")
    assert first.support == (1 if count == 2 else 2)
    (asked,) = critic.read("experience")
    assert asked["completion"] == "(wrong) 0\n(right) 46" and asked["ideas"] == f"experiences/1: {OLD}"


def test_modifications_keep_the_name_and_unknown_names_do_nothing(tmp_path: Path) -> None:
    said = "- modify experiences/2: ones first\nmodify experiences/7: no\nadd: a third is one too many"
    strategy = filled(Critic({"experience": said}), OLD, FAR)
    played(tmp_path, strategy)
    assert {each.name: each.text for each in strategy.library.on(EXPERIENCES)} == {
        "experiences/1": OLD,
        "experiences/2": "ones first",
    }


def test_answers_and_what_is_no_operation_are_left_out(tmp_path: Path) -> None:
    strategy = filled(Critic({"experience": "add: the sum is 46\nI would add more", "skill": "say 46"}))
    played(tmp_path, strategy)
    assert len(strategy.library) == 0


def test_a_full_shelf_merges_its_closest_pairs_at_most_three_times_and_no_distant_ones(tmp_path: Path) -> None:
    known = [f"{word} {number}" for number in ("one", "two") for word in ("aaaa bbbb", "cccc dddd", "eeee", "ffff")]
    assert overlap(known[0], known[4]) == pytest.approx(12 / 15) and overlap(known[0], known[1]) < 0.6
    strategy = SkillsAndExperiences(Library(8, 0.99), Critic({}))
    for text in known:
        strategy.library.carry_out(add(text, "", EXPERIENCES))
    play, _ = player_of(tmp_path, ENV, TASK, lambda prompt, call: "")
    changes = asyncio.run(strategy.consolidated(play))
    assert [change.do for change in changes] == ["rewrite", "remove"] * 3, "of four pairs three"
    assert len(strategy.library) == 8, "nothing is done before the group is finished"
    assert [change.lesson.name[-1] for change in changes[:4]] == ["1", "5", "2", "6"]
    for change in changes:
        strategy.library.carry_out(change)
    assert sorted(texts(strategy)) == ["aaaa bbbb one", "cccc dddd one", "eeee one", "ffff one", "ffff two"]
    assert asyncio.run(strategy.consolidated(play)) == [], "there is room"
    full = SkillsAndExperiences(Library(3, 0.99), Critic({}))
    for text in (known[0], known[1], FAR):
        full.library.carry_out(add(text, "", EXPERIENCES))
    assert asyncio.run(full.consolidated(play)) == [], "none overlaps by 0.6"


def test_skills_of_a_batch_become_one_document_of_so_many_words(tmp_path: Path) -> None:
    critic = Critic({"skill": "add from the left", "skills": "one two three four five six", "shortened": "1 2 3 4 5 6"})
    strategy = filled(critic, words=5)
    played(tmp_path, strategy)
    played(tmp_path, strategy)
    assert texts(strategy, FRAGMENTS) == ["add from the left"] and texts(strategy, SKILL) == []
    engine = played(tmp_path, strategy, version=1)
    assert texts(strategy, SKILL) == ["1 2 3 4 5"], "shortened, and cut where that was not enough"
    assert texts(strategy, FRAGMENTS) == [] or len(texts(strategy, FRAGMENTS)) == 1
    assert len(critic.read("skills")) == 1 and critic.read("skills")[0]["other"] == "add from the left"
    assert "1 2 3" not in engine.prompts[0], "it is read from the next version on"
    assert "1 2 3 4 5 12+34=?" in played(tmp_path, strategy, version=2).prompts[0]


def test_parts_of_a_task_find_experiences_that_are_adapted(tmp_path: Path) -> None:
    critic = Critic({"subtasks": "1. 12+3\n2. 99", "adapted": "* do this\n* and that\n* not this"})
    strategy = filled(critic, "say one", "be two", shown=1)
    engine = played(tmp_path, strategy)
    assert all("do this 12+34=?" in prompt for prompt in engine.prompts), "both parts find the same one"
    assert critic.read("adapted")[0]["ideas"] == "say one"
    (first, _) = strategy.library.on(EXPERIENCES)
    assert (first.uses, first.wins) == (2, 1.0)
    plain = played(tmp_path, filled(Critic({}), "say one", "be two"))
    assert all("say one be two 12+34=?" in prompt for prompt in plain.prompts), "where nobody answers, as they are"


def test_measuring_reads_and_learns_nothing(tmp_path: Path) -> None:
    critic = Critic({"experience": "add: new", "skill": "new"})
    strategy = SkillsAndExperiences(filled(critic, OLD).library, critic, learns=False)
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "46")
    (rollout,) = asyncio.run(strategy(play.group, [play.another()], play))
    assert OLD in engine.prompts[0] and rollout.origin is Origin.GUIDED and rollout.facts == {}
    assert critic.read("experience") == [] and strategy.learn([]) == {}


def test_whoever_measures_sees_what_waits_and_groups_in_flight_do_not(tmp_path: Path) -> None:
    """A group of version 0 has proposed FAR while others of its version are not done: they read OLD alone."""
    strategy = filled(Critic({}), OLD)
    strategy.library.propose(Group(0, TASK, []), [add(FAR, "arithmetic: 12+34=?", EXPERIENCES)])
    measuring = SkillsAndExperiences(strategy.library, strategy.llm_client, learns=False)
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: "46")
    asyncio.run(measuring(play.group, [play.another()], play))
    assert OLD in engine.prompts[0] and FAR in engine.prompts[0]
    _, engine = begun(tmp_path, strategy, version=0, number=1)
    assert OLD in engine.prompts[0] and FAR not in engine.prompts[0]
    _, engine = begun(tmp_path, strategy, version=1, number=2)
    assert FAR in engine.prompts[0]


def test_what_was_killed_before_it_had_merged_merges_again_and_nobody_else_does(tmp_path: Path) -> None:
    """A checkpoint is made while the group that merges is in flight: what it made is lost, and that it was the one not.

    Two waves of one group merge once.
    """
    critic = Critic({"skills": "one two"})
    strategy = filled(critic)
    strategy.library.carry_out(add("add from the left", "", FRAGMENTS))
    begun(tmp_path, strategy, version=1, number=4)
    begun(tmp_path, strategy, version=1, number=4)
    assert len(critic.read("skills")) == 1
    again = SkillsAndExperiences(Library(9, 0.7), critic)
    again.restore(json.loads(json.dumps(strategy.state())))
    again.library.restore(json.loads(json.dumps(strategy.library.state())))
    again.observe(begun(tmp_path, again, version=1, number=5)[0])
    assert len(critic.read("skills")) == 1 and texts(again, SKILL) == []
    again.observe(begun(tmp_path, again, version=1, number=4)[0])
    again.library.catch_up()
    assert len(critic.read("skills")) == 2 and texts(again, SKILL) == ["one two"]


def test_two_merges_never_meet(tmp_path: Path) -> None:
    """The group that merges is still at work when the next version begins: another of that one merges what is left."""
    critic = Critic({"skills": lambda read: f"{read['ideas']} {read['other']}"})
    strategy = filled(critic)
    strategy.library.carry_out(add("add from the left", "", FRAGMENTS))
    slow, _ = begun(tmp_path, strategy, version=1, number=4)
    strategy.library.carry_out(add("mind 10 and more", "", FRAGMENTS))
    strategy.observe(begun(tmp_path, strategy, version=2, number=5)[0])
    strategy.observe(slow)
    strategy.observe(begun(tmp_path, strategy, version=2, number=6)[0])
    strategy.library.catch_up()
    assert texts(strategy, SKILL) == ["add from the left mind 10 and more"] and texts(strategy, FRAGMENTS) == []


def test_bad_numbers_are_refused() -> None:
    for bad in ({"shown": 0}, {"operations": 0}, {"words": 0}):
        with pytest.raises(ConfigurationError, match="SkillsAndExperiences needs"):
            SkillsAndExperiences(Library(), **bad)
