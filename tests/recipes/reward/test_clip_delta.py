"""Process rewards refined by clipping and differences: the card's numbers, every short solution, tokens, a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import Calculations, holds
from strop.filter.paid_text import Span
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes.reward.clip_delta import ClipDelta, differences
from strop.training.advantages.token_returns import TokenReturns
from strop.types import Group, Message, Outcome, Rollout
from tests.building import TASK, turn
from tests.clock import run_virtually
from tests.filter.test_span_rewards import one_letter_each
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

LEVELS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Told:
    """Steps of one letter each, whose values are known."""

    values: dict[str, Sequence[float]]

    def steps(self, rollout: Rollout) -> list[Span]:
        return [Span(0, k, k + 1, value) for k, value in enumerate(self.values[rollout.id])]


def told(form: str, **values: Sequence[float]) -> tuple[Group, ClipDelta]:
    rollouts = [
        Rollout(name, TASK, (replace(turn(len(own)), message=Message("assistant", "x" * len(own))),), Outcome.FINISHED)
        for name, own in values.items()
    ]
    return Group(0, TASK, rollouts), ClipDelta(Told(dict(values)), form)


def paid(form: str, *values: float) -> list[float]:
    group, reward = told(form, a=values)
    return [span.value for span in reward(group)[0].spans]


def test_the_numbers_of_the_card() -> None:
    assert paid("delta", 0.9, 0.2, 0.6, 0.8) == pytest.approx([0.7, -0.4, 0.6, 0.0])
    assert paid("raw", 0.9, 0.2, 0.6, 0.8) == [0.9, 0.2, 0.6, 0.8]
    # the mean is 0.625
    assert paid("clip", 0.9, 0.2, 0.6, 0.8) == pytest.approx([0.0, -0.425, -0.025, 0.0])
    assert paid("clip-delta", 0.9, 0.2, 0.6, 0.8) == pytest.approx([0.425, -0.4, -0.025, 0.0])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_what_is_paid_from_a_step_on_is_what_was_said_of_it(size: int) -> None:
    """For all solutions of up to four steps; the last step is left to the task's own reward."""
    for values in product(LEVELS, repeat=size):
        eta = sum(values) / size
        said = {"delta": values, "clip-delta": [min(value - eta, 0.0) for value in values]}
        for form, judged in said.items():
            due = paid(form, *values)
            for k in range(size):
                assert sum(due[k:]) == pytest.approx(judged[k] if k < size - 1 else 0.0)


def test_no_step_that_is_added_raises_what_is_clipped() -> None:
    for values in product(LEVELS, repeat=4):
        whole = [min(value - 0.6, 0.0) for value in values]
        assert sum(whole) <= sum(whole[:-1]) <= 0.0
        assert sum(differences(whole)) == pytest.approx(whole[0]), "bounded, however many steps there are"
    assert sum(paid("raw", 1, 1, 1, 1)) > sum(paid("raw", 1, 1)), "and raw ones are exploited"
    assert sum(paid("clip-delta", 1, 1, 1, 1)) == sum(paid("clip-delta", 1, 1)) == 0.0


def test_the_threshold_is_the_mean_over_all_steps_of_the_rollouts_that_count() -> None:
    """Uneven rollouts: (1 + 0 + 1 + 1 + 1) / 5 = 0.8; what failed or was given up says nothing."""
    group, reward = told("clip", a=[1, 0], b=[1, 1, 1], c=[0, 0, 0, 0], d=[0])
    group.rollouts[2].outcome, group.rollouts[3].outcome = Outcome.FAILED, Outcome.PRUNED
    scorer = Scorer([reward])
    scorer.places = one_letter_each
    asyncio.run(scorer(group))
    assert [rollout.reward for rollout in group.scored] == pytest.approx([-0.8, 0.0])
    assert group.rollouts[2].rewards == {}


def test_a_later_wave_moves_the_threshold_of_all() -> None:
    """The mean is 1/2 for the first rollout alone and 3/4 beside the second; what was paid before is not kept."""
    group, reward = told("clip", a=[1, 0], b=[1, 1])
    scorer, (first, second) = Scorer([reward]), group.rollouts
    scorer.places = one_letter_each
    for together, due in (([first], [-0.5]), ([first, second], [-0.75, 0.0])):
        group.rollouts = together
        asyncio.run(scorer(group))
        assert [rollout.reward for rollout in together] == pytest.approx(due)
        assert first.turns[0].aux["paid/clip_delta"].tolist() == pytest.approx([0.0, 0.0, due[0]])


def test_credit_reaches_the_tokens_of_a_step() -> None:
    """One letter is one token: the return at step k is weight * c_k plus what follows at the end, here nothing."""
    group, reward = told("clip-delta", a=[1, 0, 1, 1], b=[1, 1, 1, 1])
    scorer = Scorer([replace(reward, weight=2.0)])
    scorer.places = one_letter_each
    asyncio.run(scorer(group))
    TokenReturns(kl=0.0)([group])
    first, second = (rollout.returns for rollout in group.rollouts)
    assert first is not None and first.tolist() == pytest.approx([0.0, -1.75, 0.0, 0.0])
    assert second is not None and second.tolist() == [0.0] * 4


def saying(*completions: str) -> Rollout:
    turns = tuple(
        replace(turn(max(len(completion), 1)), message=Message("assistant", completion)) for completion in completions
    )
    return Rollout("a", TASK, turns, Outcome.FINISHED)


def read(*completions: str) -> list[tuple[str, float]]:
    rollout = saying(*completions)
    spans = Calculations().steps(rollout)
    return [(rollout.turns[s.turn].message.content[s.start : s.end], s.value) for s in spans]


def test_calculations_of_a_scratchpad() -> None:
    assert read("<think>47+12=59 59+30=89</think>89") == [("47+12=59", 1), ("59+30=89", 1), ("</think>89", 1)]
    assert read("<think>47+12=60 60+30=90</think>90") == [("47+12=60", 0), ("60+30=90", 0), ("</think>90", 0)]
    assert read("<think>3*7=21 no 7/2=7/2</think>3*7") == [("3*7=21", 1), ("7/2=7/2", 1), ("</think>3*7", 1)]
    assert read("12") == [("12", 1)] and read("") == [] and read() == [] and read("  ") == []
    assert read("<think>1+1=2 2+") == [("1+1=2", 1), (" 2+", 1)]
    assert read("1+1=3", "2+2=4 so 4") == [("1+1=3", 0), ("2+2=4", 0), (" so 4", 0)], "over several turns"


@pytest.mark.parametrize(
    ("step", "is_right"),
    [
        *[(right, True) for right in ("1+1=2", "3-7=-4", "(1+2)*3=9", "7/2=7/2")],
        *[(wrong, False) for wrong in ("1+1=3", "=", "1=", "1/0=1", "2=1+1=2", "a=a", "__import__('os')=1")],
        *[(hostile, False) for hostile in ("(" * 5000 + "=1", "9" * 99 + "=1", "9*" * 49 + "9=1")],
    ],
)
def test_a_step_holds_or_not_whatever_is_written(step: str, is_right: bool) -> None:
    assert holds(step) == is_right


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown form of process rewards 'clipdelta': did you mean"):
        ClipDelta(form="clipdelta")


def test_in_a_run_steps_are_paid_and_written_down(tmp_path: Path) -> None:
    """Every second completion begins with a wrong calculation."""
    engine = Scripted(lambda prompt, key: f"<think>1+1={2 + key % 2} 2+1=3</think>{key % 5}")
    run = make_run(steps=1, envs=(Arithmetic(1),), engine=engine, rewards=(ClipDelta(weight=0.5),))
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        flow.scorer.places = flow.policy.template.places
        run_virtually(train(flow))
        groups = flow.ledger.trained_groups(1)
    assert recorder.rows[0]["reward/clip_delta"] < 0
    for group in groups:
        is_right = ["1+1=2" in rollout.completion for rollout in group.rollouts]
        eta = sum(is_right) / len(is_right)  # three steps each, all alike
        for rollout, right in zip(group.rollouts, is_right, strict=True):
            rows = rollout.turns[0].aux["paid/clip_delta"]
            due = 0.0 if right else -0.5 * eta
            assert rollout.reward == pytest.approx(due) and float(rows.sum()) == pytest.approx(due, abs=1e-6)
            assert np.count_nonzero(rows) == (0 if right or not eta else 1), "at the last token of the second step"
