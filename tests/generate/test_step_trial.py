"""A completion that exhausts its environment counts as wrong; an environment that hangs by itself punishes nobody."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from strop.environments.isolation.pool import Pooled
from strop.environments.isolation.subprocess import Apart
from strop.environments.wrappers.around import Around
from strop.filter.overruns import is_overrun
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group, Outcome
from tests.environments.playing import played
from tests.environments.tiring import Tiring
from tests.filter.test_scoring import worker_processes

SECONDS = 1.0


@pytest.mark.parametrize("word", ["hang", "fill", "sink"])
def test_what_exhausts_a_step_counts_as_wrong(model: Path, word: str) -> None:
    """And is punished beside those that are right."""
    right, wrong = rollouts = played(model, Apart(Tiring(), SECONDS), ["right", word])
    assert [each.outcome for each in rollouts] == [Outcome.FINISHED] * 2
    assert wrong.turn_rewards == (0.0, 0.0) and is_overrun(wrong) and not is_overrun(right)
    assert wrong.error.startswith("environment tiring: ") and "counts as wrong" in wrong.error
    group = Group(0, right.task, rollouts)
    scores = asyncio.run(Scorer([Earned()])(group))
    assert [each.reward for each in rollouts] == [1.0, 0.0] and (scores.overruns, scores.failed) == (1, 0)
    GroupMean()([group])
    assert wrong.advantages is not None and wrong.advantages[0] < 0
    assert worker_processes() == []


def test_so_does_what_lays_the_ground_for_it(model: Path) -> None:
    """A completion that was answered, and made the environment hang with any other."""
    (trapped,) = played(model, Apart(Tiring(), SECONDS), ["trap"])
    assert trapped.outcome is Outcome.FINISHED and trapped.turn_rewards == (0.0, 0.0) and is_overrun(trapped)


def test_nobody_escapes_a_loss_by_hanging(model: Path) -> None:
    (lost,) = played(model, Apart(Tiring(wrong=-1.0), SECONDS), ["hang"])
    assert sum(lost.turn_rewards) == -1.0


def test_an_environment_that_pays_nothing_pays_nothing_then(model: Path) -> None:
    (hung,) = played(model, Apart(Tiring(wrong=None), SECONDS), ["hang"])
    assert hung.outcome is Outcome.FINISHED and hung.turn_rewards == () and is_overrun(hung)


@pytest.mark.parametrize("tired_from", [1, 2])
def test_an_environment_that_hangs_with_all_punishes_nobody(model: Path, tired_from: int) -> None:
    rollouts = played(model, Apart(Tiring(tired_from=tired_from), SECONDS), ["hang", "right"])
    assert [each.outcome for each in rollouts] == [Outcome.FAILED] * 2
    assert all(each.error == "environment tiring: no answer within 1 s" for each in rollouts)
    assert worker_processes() == []


def test_a_bug_that_a_completion_finds_stays_the_environments_fault(model: Path) -> None:
    (broken,) = played(model, Apart(Tiring(), SECONDS), ["break"])
    assert broken.outcome is Outcome.FAILED and broken.error == "environment tiring: ValueError: a bug"


def test_a_pause_of_the_machine_costs_nobody_its_reward(model: Path, tmp_path: Path) -> None:
    """An environment that answers the same completions when it is asked again."""
    env = Tiring(wrong=0.5, pauses=str(tmp_path / "paused"))
    (paused,) = played(model, Apart(env, SECONDS), ["pause"])
    assert (paused.outcome, paused.error) == (Outcome.FAILED, "environment tiring: no answer within 1 s")  # it goes on
    (tmp_path / "paused").unlink()
    once = Apart(Tiring(wrong=0.5, first=1, pauses=str(tmp_path / "paused")), SECONDS)
    (paused,) = played(model, once, ["pause"])
    assert (paused.outcome, paused.error, paused.turn_rewards) == (Outcome.FINISHED, "", (0.5,))


@pytest.mark.parametrize("word", ["hang", "compute", "catch", "wait", "late", "fill", "sink"])
def test_an_environment_in_the_run_itself_is_ended_as_well(model: Path, word: str) -> None:
    """Where it blocks the event loop, also after an await and where it catches all errors; the run goes on."""
    began = time.monotonic()
    right, wrong = rollouts = played(model, Tiring(), ["right", word], 0.3)
    assert time.monotonic() - began < 10
    assert [each.outcome for each in rollouts] == [Outcome.FINISHED] * 2
    assert right.turn_rewards == (0.0, 1.0) and wrong.turn_rewards == (0.0, 0.0) and is_overrun(wrong)
    assert "twice" in wrong.error and ("Apart" in wrong.error) == (word in ("hang", "compute", "catch", "late"))


def test_one_that_hangs_with_all_in_the_run_itself_punishes_nobody(model: Path) -> None:
    rollouts = played(model, Tiring(tired_from=2), ["hang", "right"], 0.3)
    assert [each.outcome for each in rollouts] == [Outcome.FAILED] * 2
    assert all("no answer within 0.3 s, and the run was blocked" in each.error for each in rollouts)


def test_a_deadline_of_the_run_is_as_good(model: Path) -> None:
    """It holds for the start of a process too."""
    (hung,) = played(model, Apart(Tiring()), ["hang"], seconds=6.0)
    assert hung.outcome is Outcome.FINISHED and is_overrun(hung)


def test_wrappers_and_pools_change_nothing(model: Path) -> None:
    (wrapped,) = played(model, Around(Apart(Tiring(), SECONDS)), ["hang"])
    (pooled,) = played(model, Pooled(Tiring(), processes=1, batch=1, seconds=SECONDS), ["hang"])
    assert is_overrun(wrapped) and is_overrun(pooled)
    assert worker_processes() == []
