"""ContextEvolve by hand: priorities, what the next candidate reads, and that prompts do not grow."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes import build, recipe_named
from strop.recipes.replay.contextevolve import EvolvedContext, picked, priorities
from strop.types import Group, Message, Origin, Outcome, Rollout, Task
from tests.generate.asking import Speaking, asked_of, player_of
from tests.generate.critic import Critic

ENV = Arithmetic(3)
TASK = Task((Message("user", "12+34=?"),), "46", "arithmetic", 3)


def test_priorities_are_a_softmax_over_ranks() -> None:
    total = 1 + math.exp(-1) + math.exp(-2)
    expected = [math.exp(-1) / total, 1 / total, math.exp(-2) / total]
    assert priorities([0.5, 0.9, 0.1]).tolist() == pytest.approx(expected)
    assert priorities([1.0, 1.0]).tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)]), (
        "the older first"
    )
    assert len(priorities([])) == 0
    many = priorities([0.2, 0.5] * 100)
    assert many[1] > many[3] > many[5] > many[7], "of many as of few"


def test_exemplars_are_different_and_one_of_them_is_any() -> None:
    scores = [0.9, 0.5, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0]
    draws = [picked(scores, 3, (key, 0)) for key in range(2000)]
    assert all(len(set(each)) == 3 for each in draws) and picked([0.1, 0.2], 3, (0,)) == [0, 1]
    firsts, lasts = Counter(each[0] for each in draws), Counter(each[-1] for each in draws)
    assert firsts[0] / 2000 == pytest.approx(priorities(scores)[0], abs=0.04)
    assert (
        max(lasts[place] for place in range(4, 8)) < 1.4 * min(lasts[place] for place in range(4, 8)) and lasts[7] > 250
    )
    assert picked(scores, 1, (3,)) == picked(scores, 1, (3,))


def searched(
    folder: Path, completions: list[str], critic: Critic, **fields: int
) -> tuple[Rollout, GroupPlayer, Speaking]:
    play, engine = player_of(folder, ENV, TASK, lambda prompt, call: completions[call])
    (best,) = asyncio.run(EvolvedContext(critic, **fields)(play.group, [play.another()], play))
    return best, play, engine


def test_the_recipe_has_something_to_choose_from() -> None:
    """The last candidate's parent apart, more are archived than are read: priorities decide."""
    search = build(recipe_named("contextevolve"), {}).strategy
    assert isinstance(search, EvolvedContext) and search.iterations - 2 > search.exemplars


def test_a_candidate_reads_direction_parent_and_summaries(tmp_path: Path) -> None:
    critic = Critic({"summary": lambda read: f"sum of {read['completion'][:2]}", "direction": "go up"})
    best, play, engine = searched(tmp_path, ["41", "42", "46", "99"], critic)
    assert best.completion == "46" and best.origin is Origin.GUIDED, "after a right one nothing is better"
    assert best.facts == {"candidates": 3.0, "gained": 1.0} and len(play.made) == 3 == len(engine.prompts)
    assert "user\n12+34=?" in engine.prompts[0] and "user\ngo up 41 12+34=?" in engine.prompts[1]
    assert "user\ngo up 41 sum of 42 12+34=?" in engine.prompts[2], "the parent as it is, others as summaries"
    assert [read["ideas"] for read in critic.read("direction")] == ["0.00 sum of 41", "0.00 sum of 41\n0.00 sum of 42"]
    assert [read.get("other") for read in critic.read("summary")] == [None, "sum of 41", "sum of 41"], "failures, too"


def test_prompts_do_not_grow_with_iterations_and_the_best_stays(tmp_path: Path) -> None:
    critic = Critic({"summary": lambda read: read["completion"] * 9, "direction": "d" * 30})
    best, _, engine = searched(tmp_path, [str(100 + n) for n in range(30)], critic, iterations=30, longest=90)
    lengths = [len(prompt) for prompt in engine.prompts]
    assert len(lengths) == 30 and max(lengths) - lengths[0] <= 91 and best.facts["candidates"] == 30.0
    assert best.id == "0/0", "all are equally wrong: the first"
    asked = [len(read["ideas"]) for read in critic.read("direction")]
    assert max(asked) == asked[-1] == asked[8], "a direction is said of the last eight"


class Gone(Arithmetic):
    def episode(self):  # type: ignore[no-untyped-def]
        raise ConnectionError("gone")


def test_without_an_answer_it_goes_on_plainly_and_what_the_env_failed_is_no_candidate(tmp_path: Path) -> None:
    best, _, engine = searched(tmp_path, ["41", "46"], Critic({}), iterations=2)
    assert "user\n41 12+34=?" in engine.prompts[1] and best.completion == "46"
    play, _ = player_of(tmp_path, Gone(3), TASK, lambda prompt, call: "46")
    (failed,) = asyncio.run(EvolvedContext(Critic({}))(Group(0, TASK, []), [play.another()], play))
    assert failed.outcome is Outcome.FAILED and failed.facts == {"candidates": 6.0, "gained": 0.0}
    for bad in ({"iterations": 0}, {"exemplars": 0}):
        with pytest.raises(ConfigurationError, match="EvolvedContext needs"):
            EvolvedContext(None, **bad)


def test_what_searches_side_by_side_ask_does_not_depend_on_who_is_done_first(tmp_path: Path) -> None:
    search = EvolvedContext(None, iterations=3)
    first = asked_of(tmp_path, ENV, TASK, search, lambda key: 0)
    for late in (lambda key: key % 7, lambda key: 50 - key % 50):
        assert asked_of(tmp_path, ENV, TASK, search, late) == first
