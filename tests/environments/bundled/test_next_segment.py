"""Plain text as a task: the prefix rule, both objectives, texts from a file, and who is paid."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.next_segment import NextSegment, continues, sentences
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError, DataError
from strop.filter.judges.arithmetic_steps import holds
from strop.filter.scoring import Scorer
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.recipes.reward.rlpt import Continued, rlpt
from strop.recipes.setting import Setting
from strop.standins.judges.steps import continued
from strop.types import Group, Message, Outcome, Rollout, Task
from tests.building import turn

TEXT = "It rained. The road was wet. A car slid. No. Nobody was hurt."


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("The road was wet.", True),
        ("the road  was wet", True),
        ("The road was wet. A car slid.", True),
        ("The road was wet. A car", True),  # it need not end where a sentence does
        ("The road was wet. A car slid. Nobody was hurt. The end", False),
        ("The road", False),  # less than the next sentence
        ("The", False),
        ("A car slid.", False),
        ("", False),
        (" . ", False),
    ],
)
def test_the_prefix_rule_by_hand(said: str, right: bool) -> None:
    assert continues(said, "The road was wet.", "A car slid. Nobody was hurt.") == right


def test_sentences_that_are_too_short_are_dropped() -> None:
    assert sentences(TEXT) == ["It rained.", "The road was wet.", "A car slid.", "Nobody was hurt."]


def test_both_objectives_on_a_file(tmp_path: Path) -> None:
    """Four sentences: three have something before them, and two of those something after."""
    path = tmp_path / "texts.txt"
    others = [f"Number {n} came. It stayed. It left." for n in range(40)]
    path.write_text("\n\n".join([TEXT, *others, TEXT, "Too short."]))
    for level, each, shown in ((1, 3, "It rained. next?"), (2, 2, "It rained. ... A car slid. between?")):
        env = NextSegment(level, path=str(path))
        tasks = [env.task(index) for index in range(env.num_tasks() or 0)]
        kept = [env.task(index, heldout=True) for index in range(env.num_tasks(heldout=True) or 0)]
        mine = [task for task in (*tasks, *kept) if prompt_of(task).startswith("It rained.")]
        assert len(mine) == each, "the text that stands there twice counts once"
        assert prompt_of(mine[0]) == shown and json.loads(mine[0].answer)["next"] == "The road was wet."
        assert len(tasks) + len(kept) == each + 40 * (each - 1) and kept
        told = [{prompt_of(task).partition(" came")[0] for task in side} for side in (tasks, kept)]
        assert not told[0] & told[1], "all of a text is on one side"
        assert (mine[0] in kept) == is_heldout(TEXT), "the side that a text is on wherever it occurs"
        assert all(env.solution(task) == json.loads(task.answer)["next"] for task in tasks), "and no working"
        assert all(env.check(task, env.solution(task)) == 1 for task in tasks)


def test_sums_are_told_to_their_end() -> None:
    first, between = NextSegment(1), NextSegment(2)
    places = set()
    for index in range(100):
        task, other = first.task(index), between.task(index)
        secret = json.loads(task.answer)
        assert holds(secret["next"].rstrip(".")), "what comes next is a step that holds"
        assert first.solution(task) == f"<think>{secret['next'].rstrip('.')}</think>{secret['next']}"
        whole = f"{prompt_of(task).removesuffix(' next?')} {secret['next']} {secret['after']}".strip()
        assert not is_heldout(whole) and whole.count(".") == whole.partition(".")[0].count("+") + 1
        places.add(whole.index(secret["next"]))
        after = json.loads(other.answer)["after"]
        assert f"... {after.split()[0]} between?" in prompt_of(other)
    assert len(places) > 3 and first.task(0) == NextSegment(1).task(0) != NextSegment(1, seed=1).task(0)


def saying(task: Task, *completions: str) -> Group:
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, task, [Rollout(str(n), task, each, Outcome.FINISHED) for n, each in enumerate(turns)])


def test_the_judge_pays_and_its_silence_does_not() -> None:
    env = NextSegment(1)
    task = next(task for task in map(env.task, range(99)) if json.loads(task.answer)["after"])
    secret = json.loads(task.answer)
    right, longer = secret["next"], f"{secret['next']} {secret['after']}"
    rules = Continued(Procedural(continued))
    group = saying(
        task, right, longer, "1+1=3", "", "<think>never ends", f"so</think>{right}", "[answer]\n1\n[completion]\n1"
    )
    assert asyncio.run(rules(group)) == [1, 1, 0, 0, 0, 1, 0]
    group = saying(task, "a", "b", "c", "")
    asyncio.run(Scorer([Continued(Canned({"\na\n[/completion": "Yes.", "\nb\n[/completion": "who knows"}))])(group))
    assert [rollout.outcome for rollout in group.rollouts][1:3] == [Outcome.FAILED] * 2
    assert [rollout.reward for rollout in group.scored] == [1, 0], "the empty one is not asked about"


def test_the_recipe(tmp_path: Path) -> None:
    run = rlpt(Setting(env="next_segment:1+next_segment:2"), share=0.25)
    assert isinstance(run.sampler, Mixture) and run.sampler.weights == (1, 0.25)
    assert run.warmup is not None and rlpt(warmup_steps=0).warmup is None
    with_text = rlpt(text=str(tmp_path / "a.txt"), judge="itself", warmup_steps=1)
    assert with_text.warmup is not None
    envs = [env for each in (with_text, with_text.warmup) for env in each.envs]
    assert {env.path for env in envs if isinstance(env, NextSegment)} == {str(tmp_path / "a.txt")}


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="levels 1 to 2, got 3"):
        NextSegment(3)
    with pytest.raises(DataError, match="does not exist"):
        NextSegment(1, path=str(tmp_path / "none.txt")).task(0)
    (tmp_path / "short.txt").write_text("Only this.")
    with pytest.raises(DataError, match="no train text"):
        NextSegment(1, path=str(tmp_path / "short.txt")).num_tasks()
