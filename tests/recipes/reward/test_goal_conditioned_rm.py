from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.reward_model import RewardModel
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.reward.goal_conditioned_rm import GoalContrast
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.training.batch import Batch
from tests.building import Said, make_batch, written
from tests.tiny_models import save_pocket_like


def s(x: float) -> float:
    return 1 / (1 + exp(-x))


def scene(better: Sequence[Sequence[float]], worse: Sequence[Sequence[float]]) -> tuple[Batch, Said, Tensor]:
    """States of the completions' tokens; prompt, and the verdict behind each completion, have others."""
    batch = make_batch([[0.0] * (len(better) + 1), [0.0] * (len(worse) + 1)], rewards=[1.0, 0.0])
    words = torch.zeros(len(batch.tokens), 2)
    states = torch.full((len(batch.tokens), len(better[0])), -7.0, dtype=torch.float64)
    states[1 : 1 + len(better)] = torch.tensor(better, dtype=torch.float64)
    states[3 + len(better) : 3 + len(better) + len(worse)] = torch.tensor(worse, dtype=torch.float64)
    words[1 + len(better)] = words[-1] = torch.tensor([3.0, 1.0])
    batch.aux = {"verdicts": words}
    zeros = torch.zeros(len(batch.tokens), dtype=torch.float64)
    return batch, Said(zeros, zeros, states=states.requires_grad_()), states


def test_constant_states_by_hand() -> None:
    """cos 1 to goals, 0.6 to others: -log s(1) - log(1 - s(0.6)) = 0.313262 + 1.037488."""
    batch, output, states = scene([[1.0, 0.0]] * 3, [[0.6, 0.8]] * 2)
    loss, metrics = GoalContrast()(output, batch)
    assert written(batch, loss) == pytest.approx([0.313262 + 1.037488] * 7, abs=1e-6)
    contrast = 0.5 * (0.313262 + 1.037488)  # with its weight
    assert metrics == pytest.approx({"goal_cosine": 1.0, "other_cosine": 0.6, "contrast": contrast}, abs=1e-6)
    (batch.share * loss).sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None and torch.isfinite(states.grad).all()
    touched = states.grad.abs().sum(1) > 1e-12
    assert not touched[[0, 4, 5, 8]].any(), "neither prompts nor verdicts"


def test_goals_are_strictly_later_and_the_log_is_of_the_mean() -> None:
    """Orthogonal states: a goal that were the source itself would have cosine 1."""
    batch, output, _ = scene([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    loss, metrics = GoalContrast(draws=400)(output, batch)
    assert metrics["goal_cosine"] == 0.0
    share = metrics["other_cosine"]  # of sources that are the first token: 0 or 1 each
    assert abs(share - 0.5) < 4 * 0.5 / 20, "two sources, the last token is none"
    mean = share * s(1.0) + (1 - share) * 0.5
    assert written(batch, loss)[0] == pytest.approx(-log(0.5) - log(1 - mean))


def test_every_later_goal_is_drawn() -> None:
    """Of four tokens only the last resembles the first: cos 1 for the source 0 and the goal 3, 1 in 3 * 3."""
    first, axes = [1.0, 0.0, 0.0], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    batch, output, _ = scene([first, *axes, first], [[0.0, 0.0, 1.0]])
    _, metrics = GoalContrast(draws=900)(output, batch)
    assert metrics["goal_cosine"] == pytest.approx(1 / 9, abs=4 * (8 / 81 / 900) ** 0.5)


def test_lengths_of_states_do_not_matter() -> None:
    better, worse = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]], [[0.2, 0.9], [-1.0, 0.4]]
    values = []
    for scale in (1.0, 25.0):
        batch, output, _ = scene([[scale * x for x in row] for row in better], worse)
        values.append(written(batch, GoalContrast()(output, batch)[0]))
    assert values[0] == pytest.approx(values[1])


def test_what_has_no_later_token_takes_no_part() -> None:
    batch, output, _ = scene([[1.0, 0.0]], [[0.6, 0.8]])
    loss, metrics = GoalContrast()(output, batch)
    assert not loss.any() and metrics == {"goal_cosine": 0.0, "other_cosine": 0.0, "contrast": 0.0}
    with pytest.raises(ConfigurationError, match="draws >= 1, got 0"):
        GoalContrast(draws=0)


def test_in_a_run_completions_are_written_and_scored_as_a_judge_reads_them(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    sizes = {"groups_per_step": 2, "steps": 1, "heldout_tasks": 1, "model": model}
    launch(build(recipe_named("goal_conditioned_rm"), sizes), tmp_path, "run")
    ledger, judge, gaps = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True), RewardModel(model), []
    for group in ledger.trained_groups(1):
        question = group.task.messages[:1]
        completions = [rollout.turns[0].message.content for rollout in group.rollouts]
        assert [len(rollout.turns) for rollout in group.rollouts] == [2, 2] and len(set(completions)) == 2
        assert all(len(rollout.turns[1].tokens) == 1 for rollout in group.rollouts)
        better, worse = judge.scores([(question, completion) for completion in completions])
        gaps.append(better - worse)
    ledger.close()
    (row,) = [row for row in read_rows(RunFolder(tmp_path / "run").metrics) if row["step"] == 1]
    assert row["score_margin"] == pytest.approx(sum(gaps) / 2, abs=1e-4)
