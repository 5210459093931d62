"""RECAP: one source is practised, another replayed, and objectives weigh by how their losses move."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.independent import Independent
from strop.pipeline import train
from strop.recipes.replay.recap import BySource, Reweighted
from strop.storage.ledger.ledger import Ledger
from strop.training.advantages.group_relative import GroupMean
from strop.training.requirements import LOGPROBS
from strop.types import Group, Origin, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


def group(name: str, rewards: list[float], replayed: list[float] | None = None) -> Group:
    """Rollouts of an environment at level 0, or a replayed answer with these log-probabilities."""
    made = make_group([0.0] if replayed else rewards, [len(replayed)] if replayed else None)
    if replayed:
        made.rollouts[0].origin = Origin.REPLAYED
        made.rollouts[0].policy_statistics[LOGPROBS.name] = np.array(replayed)
    return replace(made, task=Task((), "", name, id=name))


def weights(advantage: Reweighted, *draws: list[Group]) -> dict[str, float]:
    for draw in draws:
        advantage(draw)
    return advantage.weights()


def test_an_objective_that_doubles_its_loss_against_one_that_stays() -> None:
    """s = (2, 1), temperature 5: 2 * softmax(.4, .2) = 1.099668 and .900332."""
    before = [group("a", [0.5, 0.5]), group("b", [], [-0.3, -0.5])]
    after = [group("a", [0.0, 0.0]), group("b", [], [-0.4])]
    advantage = Reweighted(GroupMean(), window=1)
    assert weights(advantage, before) == {"a:0": 1.0, "b:0": 1.0}, "until there are two windows"
    assert weights(advantage, after) == pytest.approx({"a:0": 1.099668, "b:0": 0.900332}, abs=1e-6)
    assert advantage.learn([])["objective_weight/b:0"] == pytest.approx(0.900332, abs=1e-6)


def test_a_loss_that_wavers_weighs_more_than_one_that_does_not() -> None:
    """Losses of .5 and .5 before; then .7, .3 (mean .5, deviation .2: s = 1 + .2 / 1) and .5, .5 (s = 1)."""
    advantage = Reweighted(GroupMean(), window=2, temperature=1.0)
    draws = [[group("a", [1 - a, 1 - a]), group("b", [0.5, 0.5])] for a in (0.5, 0.5, 0.7, 0.3)]
    found = weights(advantage, *draws)
    assert found["a:0"] / found["b:0"] == pytest.approx(np.exp(0.2)) and sum(found.values()) == pytest.approx(2.0)


def test_a_loss_that_was_nothing_before_takes_all_the_weight() -> None:
    """From 0 to 1: s = 1 / 1e-6, whose exponential is no number a computer has."""
    draws = [[group("a", [reward, reward]), group("b", [0.5, 0.5])] for reward in (1.0, 0.0)]
    assert weights(Reweighted(GroupMean(), window=1), *draws) == {"a:0": 2.0, "b:0": 0.0}


def test_only_the_last_two_windows_count() -> None:
    """Losses of .5, .5 and 1: s = 2, whatever came first; the other's stay, s = 1."""
    draws = [[group("a", [1 - a, 1 - a]), group("b", [0.6, 0.6])] for a in (0.9, 0.5, 0.5, 1.0)]
    found = weights(Reweighted(GroupMean(), window=1), *draws)
    assert found == pytest.approx({"a:0": 1.099668, "b:0": 0.900332}, abs=1e-6)


def test_credit_is_multiplied_and_replayed_answers_have_one() -> None:
    advantage = Reweighted(GroupMean(), window=1)
    draw = [group("a", [0.5, 0.5]), group("b", [], [-0.4])]
    weights(advantage, draw)
    last = [group("a", [0.4, -0.4]), group("b", [], [-0.2, -0.6])]  # a: 1 - .4 and 1 - 0, in the mean .8
    found = weights(advantage, last)
    own, shown = (each.rollouts[0].advantages for each in last)
    assert found["a:0"] > 1 > found["b:0"]
    assert own is not None and own.tolist() == pytest.approx([0.4 * found["a:0"]])
    assert shown is not None and shown.tolist() == pytest.approx([found["b:0"]] * 2)


def test_windows_survive_and_what_cannot_be_is_refused() -> None:
    advantage, other = Reweighted(GroupMean(), 1), Reweighted(GroupMean(), 1)
    weights(advantage, [group("a", [0.9]), group("b", [0.1])])
    other.restore(json.loads(json.dumps(advantage.state())))
    late = [group("a", [0.1]), group("b", [0.1])]
    assert weights(advantage, late) == weights(other, late) != {"a:0": 1.0, "b:0": 1.0}
    weights(advantage, late)
    assert weights(advantage, late) == {"a:0": 1.0, "b:0": 1.0}, "the first batch is out of both windows"
    for wrong in ({"window": 0}, {"temperature": 0.0}):
        with pytest.raises(ConfigurationError, match="window >= 1 and temperature > 0"):
            Reweighted(GroupMean(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="at least 1 environment"):
        BySource(Independent(), Demonstrate(), ())


def test_one_env_is_tried_and_the_other_answered_once_by_itself(tmp_path: Path) -> None:
    envs = (Arithmetic(1), Compose(1))
    strategy = BySource(Independent(), Demonstrate(), ("compose:1",))
    run = make_run(2, envs=envs, sampler=Uniform(envs), strategy=strategy)
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    book = Ledger(tmp_path / "ledger.db", read_only=True)
    for made in book.history():
        if made.task.source == "arithmetic":
            assert len(made.own) == 3 == len(made.rollouts)
        else:
            (answer,) = made.rollouts
            assert answer.origin is Origin.REPLAYED and answer.reward == 1.0 and answer.num_sampled == 0
    book.close()
    assert recorder.rows[-1]["share/replayed"] == pytest.approx(1 / 4)
