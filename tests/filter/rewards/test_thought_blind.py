"""A judge who does not read thoughts: by hand, whatever the thought, waiting judges, and in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.capabilities import learners_in
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.filter.rewards.controls import Flat
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.noisy_rewards.reward import Flipped
from strop.recipes.reward.rlmt.recipe import LikeAnswer, likeness
from strop.recipes.reward.rlmt.reward import ThoughtBlind, response_of
from strop.roles import Reward
from strop.training.learners import teach
from strop.types import Group, Message, Outcome, Rollout
from tests.building import TASK, turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(1)


def saying(*completions: str) -> Group:
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, TASK, [Rollout(str(n), TASK, own, Outcome.FINISHED) for n, own in enumerate(turns)])


@dataclass(frozen=True)
class Length(Reward):
    """How many letters it was shown, in all turns; at once, or after a while."""

    waits: bool = False
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float] | Awaitable[list[float]]:
        told = [float(sum(len(t.message.content) for t in rollout.turns)) for rollout in group.rollouts]
        return self._later(told) if self.waits else told

    async def _later(self, told: list[float]) -> list[float]:
        await asyncio.sleep(0)
        return told


@dataclass(frozen=True)
class AtPlaces(Reward):
    def __call__(self, group: Group) -> list[Paid]:
        others = group.rollouts[1:]
        return [Paid(0.0, (Span(0, 0, 1, 1.0),)), *(Paid(0.0) for _ in others)]


@pytest.mark.parametrize(
    ("completion", "response"),
    [
        ("<think>1+1</think>2", "2"),
        (" <think></think> so 2 ", "so 2"),
        ("<think>1</think>2</think>3", "2</think>3"),  # behind the first
        ("2", None),
        ("<think>1", None),
        ("1</think>2", None),
        ("<think>1</think> ", None),
        ("so <think>1</think>2", None),
        ("", None),
    ],
)
def test_what_the_judge_is_shown(completion: str, response: str | None) -> None:
    assert response_of(completion) == response
    shown = len("[NULL]") if response is None else len(response)
    assert ThoughtBlind(Length())(saying(completion)) == [shown]
    assert ThoughtBlind(Length(), strict=False)(saying(completion)) == [len(completion) if response is None else shown]


def test_a_thought_changes_nothing_and_stays_what_it_is() -> None:
    thoughts = ("", "1+1=2", "x" * 1000, "<think>", "2 2 2")
    group = saying(*(f"<think>{thought}</think>2" for thought in thoughts))
    before = [rollout.completion for rollout in group.rollouts]
    assert ThoughtBlind(LikeAnswer())(group) == [1.0] * 5 and len(set(LikeAnswer()(group))) > 3
    assert [rollout.completion for rollout in group.rollouts] == before


def test_every_turn_is_cut() -> None:
    rollout = saying("<think>a</think>one", "<think>b</think>three").rollouts
    both = Rollout("x", TASK, (*rollout[0].turns, *rollout[1].turns), Outcome.FINISHED)
    assert ThoughtBlind(Length())(Group(0, TASK, [both])) == [8]


@pytest.mark.parametrize("waits", [False, True])
def test_a_judge_may_wait(waits: bool) -> None:
    group = saying("<think>a</think>one")
    asyncio.run(Scorer([ThoughtBlind(Length(waits))])(group))
    assert group.rollouts[0].reward == 3


def test_places_of_a_text_that_nobody_wrote_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="ThoughtBlind needs one number per rollout, and AtPlaces pays spans"):
        ThoughtBlind(AtPlaces())(saying("<think>a</think>one", "<think>b</think>two"))


def test_likeness_by_hand() -> None:
    """191 and 193 share 1 and 9: 2 * 2 / 6; with "1+2=" before it, 2 * 3 / 10."""
    assert [likeness(text, "193") for text in ("193", "191", "1+2=193", "", " 193 ")] == pytest.approx(
        [1, 2 / 3, 0.6, 0, 1]
    )
    assert likeness("", "") == 0.0


def test_what_it_tells() -> None:
    """9 + 8 + 1 tags and letters before 2, of 20; one of two is not laid out. Judges inside are heard, too."""
    group = saying("<think>1</think>2", "123")
    told = ThoughtBlind(Flat()).learn([group])
    assert told == pytest.approx({"malformed_share": 0.5, "hidden_share": 16 / 20})
    assert ThoughtBlind(Flat()).learn([saying("1")]) == {"malformed_share": 1.0, "hidden_share": 0.0}
    assert "flipped_share" in teach(learners_in(ThoughtBlind(Flipped(Flat(), (ENV,)))), [group])


def test_in_a_run_the_response_alone_is_judged(tmp_path: Path) -> None:
    """Half of the rollouts think longer; all say 7, so none is better than its sibling, and the ledger has it all."""
    engine = Scripted(lambda prompt, key: f"<think>{'1 ' * (key % 2 * 9)}</think>7")
    run = make_run(steps=1, envs=(ENV,), engine=engine, rewards=(ThoughtBlind(LikeAnswer()),))
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        groups = flow.ledger.trained_groups(1)
    assert recorder.rows[0]["hidden_share"] > 0.9 and recorder.rows[0]["malformed_share"] == 0
    for group in groups:
        assert {rollout.reward for rollout in group.rollouts} == {likeness("7", group.task.answer)}
        assert {rollout.completion for rollout in group.rollouts} <= {"<think></think>7", f"<think>{'1 ' * 9}</think>7"}
