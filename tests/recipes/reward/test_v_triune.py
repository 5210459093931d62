"""Nearness, thresholds that tighten, tags and verifiers by source: the card's numbers, by hand, and in a run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import AnyThreshold, Flat
from strop.filter.rewards.from_environment import LastCompletion
from strop.filter.scoring import is_inline
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.v_triune.recipe import PerSource, TagShare, Verifier, v_triune
from strop.recipes.reward.v_triune.reward import Overlap, Tightening, number_in
from strop.recipes.setting import Setting
from strop.types import ZERO_TO_ONE, Group, Message, Outcome, Rollout, ScoreRange, Task
from tests.building import turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(4)
RIGHT = int(ENV.task(0).answer)
NEAR = Overlap((ENV,))


def saying(*completions: str, version: int = 0) -> Group:
    task = ENV.task(0)
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    rollouts = [Rollout(str(n), task, own, Outcome.FINISHED) for n, own in enumerate(turns)]
    return Group(0, task, rollouts, version)


def off_by(*distances: int, version: int = 0) -> Group:
    return saying(*(str(RIGHT + distance) for distance in distances), version=version)


def test_overlap_of_intervals_by_counting() -> None:
    """Intervals of 40 on a grid of tenths: tenths in both by tenths in either; 39/41 for a distance of 1."""
    for distance in (0, 1, 2, 10, 39, 40, 50):
        one, other = set(range(400)), set(range(10 * distance, 400 + 10 * distance))
        assert NEAR(off_by(distance, -distance)) == pytest.approx([len(one & other) / len(one | other)] * 2)
    assert NEAR(off_by(1, 2, 10)) == pytest.approx([39 / 41, 38 / 42, 0.6])
    assert NEAR(saying(f"<think>1+1=2</think>{RIGHT}", "so?", "", "9" * 400, f"<think>{RIGHT}")) == [1, 0, 0, 0, 0]
    cut = saying(str(RIGHT))
    cut.rollouts[0].outcome = Outcome.TRUNCATED
    assert NEAR(cut) == [0]
    assert [number_in(text) for text in ("12", "-3", "", "-", "1.5", "٣")] == [12, -3, None, None, None, None]


@dataclass(frozen=True)
class Particular(Arithmetic):
    """Knows its own tasks alone, as a dataset does."""

    def check(self, task: Task, completion: str) -> float:
        if task.level != self.level:
            raise ValueError(f"a task of level {task.level} is not of level {self.level}")
        return super().check(task, completion)


def test_the_env_of_a_task_s_level_is_asked() -> None:
    envs = (Particular(2), Particular(4))
    for env in envs:
        task = env.task(0)
        rollouts = [replace(rollout, task=task) for rollout in saying(task.answer, "0").rollouts]
        assert LastCompletion(envs)(Group(0, task, rollouts)) == [1, 0]
    with pytest.raises(
        ConfigurationError, match="is of test:4, and the environments here are arithmetic:2, arithmetic:4"
    ):
        LastCompletion(envs)(Group(0, replace(envs[1].task(0), source="test"), []))


def test_what_has_no_number_or_no_width_is_refused() -> None:
    task = Countdown(3).task(0)
    with pytest.raises(ConfigurationError, match="whose answers are numbers"):
        Overlap((Countdown(3),))(Group(0, task, []))
    with pytest.raises(ConfigurationError, match="width > 0, got 0"):
        Overlap((ENV,), 0)
    assert is_inline(NEAR) and not is_inline(Overlap((ReasoningGym("gcd"),)))


class Graded(Flat):
    """A constant that says how right a rollout is."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE


def test_thresholds_of_the_card() -> None:
    """0.9 counts after a twentieth of the run and no more after a fifth; a tenth and a quarter still belong before."""
    reward = Tightening(Graded(0.9), 100)
    assert [reward(off_by(0, version=version)) for version in (5, 20)] == [[0.9], [0.0]]
    found = [reward.threshold(version) for version in (0, 10, 11, 25, 26, 100, 1000)]
    assert found == [0.85, 0.85, 0.95, 0.95, 0.99, 0.99, 0.99]
    near = Tightening(NEAR, 100)
    counted = {version: [score > 0 for score in near(off_by(0, 1, 2, 10, version=version))] for version in (0, 20, 50)}
    assert counted == {0: [True, True, True, False], 20: [True, True, False, False], 50: [True, False, False, False]}
    assert Tightening(Graded(0.85), 100)(off_by(0)) == [0.85], "who reaches it passes"


def test_the_asked_threshold_is_told() -> None:
    reward = Tightening(NEAR, 100)
    assert reward.learn([off_by(0, version=0), off_by(0, version=50)]) == pytest.approx({"threshold": 0.92})
    assert reward.learn([]) == {}


@pytest.mark.parametrize(("total", "thresholds"), [(0, ((1.0, 0.5),)), (9, ()), (9, ((0.5, 0.9), (0.1, 0.8)))])
def test_schedules_that_cannot_be_are_refused(total: int, thresholds: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ConfigurationError, match=f"ascending shares, got {total}"):
        Tightening(NEAR, total, thresholds)


def test_a_threshold_left_to_probability_is_one_of_the_task() -> None:
    """The same for all rollouts and every time; over many tasks a score of 0.3 passes three times of ten."""
    group, passed = off_by(0), 0
    for number in range(1000):
        one = replace(group, task=replace(group.task, id=f"task {number}"))
        scores = AnyThreshold(Flat(0.3))(one)
        assert scores in ([0.3], [0.0]) and scores == AnyThreshold(Flat(0.3))(one)
        passed += scores == [0.3]
    assert 250 < passed < 350


def test_tags_count_one_by_one() -> None:
    completions = ("<think>1</think>2", "<think>1", "2", "<think><think>1</think>2")
    assert TagShare()(saying(*completions)) == [1.0, 0.5, 0.0, 0.5]
    four = TagShare(("<think>", "</think>", "<answer>", "</answer>"))
    assert four(saying("<think>1</think><answer>2")) == [0.75]
    with pytest.raises(ConfigurationError, match="needs tags"):
        TagShare(())


def test_each_source_has_its_verifier_and_its_weights() -> None:
    """0.8 * 1/2 + 0.2 * 1/4 for one source, 0.5 * 1 + 0.5 * 1/4 for the other; an unknown one is refused."""
    reward = PerSource((Verifier("arithmetic", Flat(0.5), 0.8), Verifier("test", Flat(1.0), 0.5)), Flat(0.25))
    group = off_by(0)
    other = replace(group, task=replace(group.task, source="test"))
    assert reward(group) == pytest.approx([0.45]) and reward(other) == pytest.approx([0.625])
    with pytest.raises(ConfigurationError, match="no verifier for 'guess', only for arithmetic, test"):
        reward(replace(group, task=replace(group.task, source="guess")))
    with pytest.raises(ConfigurationError, match=r"0 <= accuracy <= 1, got 1\.5"):
        PerSource((Verifier("test", Flat(), 1.5),), Flat())
    group.rollouts[0].reward = 0.75
    assert reward.learn([group, replace(other, rollouts=[])]) == {"reward_by/arithmetic": 0.75}
    tight = PerSource((Verifier("arithmetic", Tightening(NEAR, 100)), Verifier("test", Flat())), Flat())
    assert tight.learn([group, replace(other, version=99)]) == {
        "reward_by/arithmetic": 0.75,
        "threshold": 0.85,
        "reward_by/test": 0.75,
    }, "a verifier hears of its own groups alone"


def test_in_a_run_the_threshold_follows_the_version(tmp_path: Path) -> None:
    """All are off by 1: paid in the first two of four steps, while 0.85 and 0.95 are asked for."""

    def completion(prompt: str, key: int) -> str:
        return str(sum(map(int, re.findall(r"\d+", prompt))) + 1)

    run = make_run(steps=4, envs=(ENV,), engine=Scripted(completion), rewards=(Tightening(NEAR, 4),))
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
    assert [row["threshold"] for row in recorder.rows] == pytest.approx([0.85, 0.95, 0.99, 0.99])
    assert [row["reward/tightening"] for row in recorder.rows] == pytest.approx([39 / 41, 39 / 41, 0, 0])


def test_the_recipe_s_verifiers() -> None:
    run = v_triune(Setting(env="arithmetic:1+arithmetic:5+countdown:3", steps=70), accuracy=0.7, width=20.0)
    paid, truth = run.rewards
    assert isinstance(paid, PerSource) and truth.weight == 0
    sums, expressions = paid.verifiers
    assert (sums.source, expressions.source) == ("arithmetic", "countdown") and sums.accuracy == 0.7
    assert sums.check == Tightening(Overlap(run.envs[:2], 20.0), 70)
    assert type(expressions.check).__name__ == "LastCompletion"


def test_a_table_is_of_numbers_where_all_its_rows_are(tmp_path: Path) -> None:
    """Two files of one name are two sources, each with the verifier of its own rows."""
    for folder, answers in (("a", ["7"]), ("b", ["7", "seven"])):
        (tmp_path / folder).mkdir()
        rows = [json.dumps({"prompt": f"{n}?", "answer": answers[n % len(answers)]}) for n in range(20)]
        (tmp_path / folder / "sums.jsonl").write_text("\n".join(rows))
    run = v_triune(Setting(env="+".join(str(tmp_path / folder / "sums.jsonl") for folder in "ab")))
    assert isinstance(run.rewards[0], PerSource)
    numbers, texts = run.rewards[0].verifiers
    assert (numbers.source, texts.source) == ("a-sums", "b-sums")
    assert isinstance(numbers.check, Tightening) and isinstance(texts.check, LastCompletion)
