"""Where all failed, the policy rewrites a solution: who is asked again, what is brought, and what is trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop.control.budgets.waves import AgainWhenLost
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.needs import SOLUTIONS
from strop.pipeline import train
from strop.recipes.select.adcl_egsr import Reformulated
from strop.roles import Reward
from strop.storage.ledger.ledger import Ledger
from strop.types import ZERO_TO_ONE, Group, Origin, ScoreRange
from tests.clock import run_virtually
from tests.recipes.guide.test_guide_hinted_when_lost import Reading, completion
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(3)


@dataclass(frozen=True)
class Nearly(Reward):
    """Right but for rounding, or partly right; whoever read no solution is wrong."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    name: ClassVar[str] = "outcome"
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        guided = [rollout.origin is Origin.GUIDED for rollout in group.rollouts]
        earned = [sum(rollout.turn_rewards) > 0 for rollout in group.rollouts]
        return [
            float(is_read) * (1 - 1e-7 if is_right else 0.4) for is_read, is_right in zip(guided, earned, strict=True)
        ]


def played(tmp_path: Path, answer_alone: bool = False, **parts: Any) -> tuple[Ledger, Reading, list[dict[str, float]]]:
    """Right in about half of the rollouts with a solution; without one, only at sums of an even first term."""
    model, engine = save_pocket_like(tmp_path / "model"), Reading(completion)
    run = make_run(
        steps=3, envs=(ENV,), sampler=Uniform((ENV,)), engine=engine, budget=AgainWhenLost(3, 4),
        strategy=Reformulated((ENV,), answer_alone), **parts
    )  # fmt: skip
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        rows = recorder.rows
    return Ledger(tmp_path / "ledger.db", read_only=True), engine, rows


def test_what_is_right_joins_the_group_and_what_is_wrong_is_thrown_away(tmp_path: Path) -> None:
    ledger, engine, rows = played(tmp_path)
    assert ledger.violations() == []
    rollouts = [(group, each) for step in (1, 2, 3) for group in ledger.trained_groups(step) for each in group.rollouts]
    guided = [(group, each) for group, each in rollouts if each.origin is Origin.GUIDED]
    assert guided, "nothing was tested"
    for group, each in guided:
        plain = [other.reward for other in group.rollouts if other.origin is Origin.POLICY]
        assert each.reward == 1.0 and each.comparison_group == "" and plain == [0.0] * 3, "beside its failed siblings"
        text = engine._tokenizer.decode(each.turns[0].prompt.tolist())
        assert "hint" not in text and each.task.messages[0].content in text, "trained as if nothing had been shown"
    made = ledger._rows("SELECT outcome, reward FROM rollouts WHERE origin='guided'")
    wrong = [outcome for outcome, reward in made if reward != 1.0]
    assert set(wrong) == {"pruned"} and len(made) == len(wrong) + len(guided)
    sampled = sum(tokens for (tokens,) in ledger._rows("SELECT tokens FROM rollouts"))
    assert rows[-1]["tokens_generated"] == sampled, "and every token counts"


def test_partly_right_is_thrown_away_and_a_rounding_error_is_not(tmp_path: Path) -> None:
    ledger, _, _ = played(tmp_path, rewards=(Nearly(),))
    found = [each for step in (1, 2, 3) for group in ledger.trained_groups(step) for each in group.rollouts]
    guided = [each.reward for each in found if each.origin is Origin.GUIDED]
    assert len(guided) > 4 and min(guided) > 0.99, "0.4 is not right"
    assert ledger._rows("SELECT COUNT(*) FROM rollouts WHERE outcome='pruned'")[0][0] > 4


def test_solved_tasks_are_not_tried_again(tmp_path: Path) -> None:
    ledger, _, _ = played(tmp_path)
    for group in ledger.history():
        own = [each.reward for each in group.rollouts if each.origin is Origin.POLICY]
        assert len(group.rollouts) == (3 if any(own) else 7)


@pytest.mark.parametrize("answer_alone", [False, True])
def test_the_whole_working_or_the_answer_alone_is_shown(tmp_path: Path, answer_alone: bool) -> None:
    _, engine, _ = played(tmp_path, answer_alone)
    shown = [text for text in engine.prompts.values() if "hint:" in text]
    assert shown
    for text in shown:
        question, _, hint = text.partition("=? hint: ")
        first, second = (int("".join(c for c in term if c.isdigit())) for term in question.split("+"))
        total = first + second
        assert hint.startswith(str(total) if answer_alone else f"{first}+{second}={total}")


def test_envs_without_workings_are_refused() -> None:
    assert Reformulated((KeyValue(2),)).env_needs == (SOLUTIONS,) and SOLUTIONS.unmet((KeyValue(2),))
    assert Reformulated((KeyValue(2),), answer_alone=True).env_needs == ()
