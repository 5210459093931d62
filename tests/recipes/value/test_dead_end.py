"""Dead ends by hand: targets, and what is learned where every completion is certain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.value.dead_end import DeadEnd, ending, targets
from tests.building import make_group
from tests.tiny_models import save_pocket_like


def test_targets_by_hand() -> None:
    later = np.array([-0.9, -0.3, 0.4], np.float32)
    assert targets(later, -1.0).tolist() == pytest.approx([-0.3, 0.0, -1.0]), "the next token's, held within -1 and 0"
    assert targets(np.array([-0.9], np.float32), 0.0).tolist() == [0.0]
    assert [ending(rollout) for rollout in make_group([0.0, 0.49, 0.5, 1.0]).rollouts] == [-1.0, -1.0, 0.0, 0.0]


def test_it_learns_who_goes_wrong_and_a_slow_copy_follows(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    values = DeadEnd(learning_rate=3e-3, rate=0.5, steps=10)
    values.open(model, 0)
    group = make_group([1.0, 0.0, 0.0], [4, 6, 1], failed=[2])
    group.rollouts[1].turns = tuple(
        type(turn)(turn.prompt, turn.tokens + 20, turn.logprobs, turn.versions, turn.message)
        for turn in group.rollouts[1].turns
    )
    values.predict([group])
    right, wrong, failed = group.rollouts
    assert right.values is not None and right.values.tolist() == [1.0] * 4 and failed.values is None, (
        "it begins at Q = 0"
    )
    metrics = values.learn([group])
    assert (metrics["value_loss"], metrics["value_bias"]) == (0.5, 0.5), "one of two was not predicted to go wrong"
    for _ in range(12):
        values.predict([group])
        metrics = values.learn([group])
    values.predict([group])
    assert metrics["value_grad_norm"] > 0
    assert right.values is not None and right.values.mean() > 0.8, "0 is its value"
    assert wrong.values is not None and wrong.values[-1] < 0.2 and wrong.values[0] < 0.5, (
        "back from the end, token by token"
    )
    values.save(tmp_path)
    again = DeadEnd()
    again.open(model, 0)
    again.resume(tmp_path)
    before = wrong.values.tolist()
    again.predict([group])
    assert wrong.values.tolist() == before and (tmp_path / "dead_end_weights.safetensors").is_file()


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got 0 and"):
        DeadEnd(steps=0)
    with pytest.raises(ConfigurationError, match="and 0"):
        DeadEnd(rate=0.0)
    with pytest.raises(ConfigurationError, match="open"):
        DeadEnd().predict([])
