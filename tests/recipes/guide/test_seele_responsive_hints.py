"""SEELE's rounds: how much each is shown, what is sampled and what is said, and where a task begins when it is back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.control.budgets.waves import InWaves
from strop.control.samplers.few import Few
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.format.hints import beginnings
from strop.environments.format.think_tags import sum_steps, think
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.seele import HINT, ResponsiveHints, fitted
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Origin, Task
from tests.building import TASK, make_group
from tests.clock import run_virtually
from tests.recipes.guide.test_ghpo import terms
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(5)  # four terms: three steps


def completion(prompt: str, key: int) -> str:
    """Goes on from what is there: right with two steps or more in 7 of 8 rollouts, with one in 1 of 8, else never."""
    asked, begun = terms(prompt.partition("<|assistant|>")[0]), prompt.rpartition("<|assistant|>")[2]
    steps, total = sum_steps(asked)
    able = key % 8 < {0: 0, 1: 1}.get(begun.count("="), 7)
    return think(steps, str(total))[len(begun) :] if able else "</think>0"


def played(model: Path, ledger: Path, **parts: Any) -> tuple[list[dict[str, float]], ResponsiveHints]:
    strategy = ResponsiveHints((ENV,))
    settings: dict[str, Any] = {"steps": 2, "envs": (ENV,), "sampler": Few((ENV,), 4)} | parts
    run = make_run(engine=Scripted(completion), budget=InWaves(8, 4), strategy=strategy, **settings)
    with opened(run, model, ledger) as (flow, recorder):
        strategy.meet(flow.policy)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    return recorder.rows, strategy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, float]], ResponsiveHints]:
    folder = tmp_path_factory.mktemp("seele")
    rows, strategy = played(save_pocket_like(folder / "model"), folder / "ledger.db")
    return folder / "ledger.db", rows, strategy


def test_each_round_follows_from_those_before_it(made: tuple[Path, Any, ResponsiveHints]) -> None:
    book = Ledger(made[0], read_only=True)
    first, again = ({group.task.id: group for group in book.trained_groups(step)} for step in (1, 2))
    book.close()
    assert first.keys() == again.keys() and len(first) == 4, "all tasks came back"
    for task, group in [*first.items(), *again.items()]:
        assert len(group.rollouts) == 32
        rounds = [group.rollouts[low : low + 8] for low in range(0, 32, 8)]
        shares = [{each.facts.get(HINT, 0.0) for each in wave} for wave in rounds]
        assert all(len(share) == 1 for share in shares)
        begin = 2 / 3 if group is first[task] else first[task].rollouts[-1].facts.get(HINT, 0.0)
        assert shares[0] == {begin}
        for count in (1, 2, 3):
            before = replace(group, rollouts=[each for wave in rounds[:count] for each in wave])
            assert shares[count] == {round(fitted(points_of(before)).share(0.5) * 3) / 3}
    assert len({each.facts.get(HINT, 0.0) for group in first.values() for each in group.rollouts}) > 1


def points_of(group: Group) -> list[tuple[float, float, float]]:
    shares = sorted({each.facts.get(HINT, 0.0) for each in group.rollouts})
    rewards = [[each.reward for each in group.rollouts if each.facts.get(HINT, 0.0) == share] for share in shares]
    return [(share, float(np.mean(paid)), float(len(paid))) for share, paid in zip(shares, rewards, strict=True)]


def test_hints_are_said_by_nobody_and_the_rest_is_sampled(made: tuple[Path, Any, ResponsiveHints]) -> None:
    book, sampled = Ledger(made[0], read_only=True), 0
    for step in (1, 2):
        for group in book.trained_groups(step):
            steps = beginnings((ENV,), group.task)
            for each in group.rollouts:
                shown = round(each.facts.get(HINT, 0.0) * 3)
                (turn,), text = each.turns, f"<think>{steps[shown - 1]}" if shown else ""
                said = int((turn.versions < 0).sum())
                assert each.origin is (Origin.GUIDED if shown else Origin.POLICY)
                assert (said > 0) == bool(shown) and (turn.versions[:said] == -1).all()
                assert (turn.versions[said:] == step - 1).all() and turn.message.content.startswith(text)
                sampled += each.num_sampled
    book.close()
    assert made[1][-1]["tokens_generated"] == sampled, "what was said was not generated"


def test_the_metrics_of_a_step(made: tuple[Path, list[dict[str, float]], ResponsiveHints]) -> None:
    book = Ledger(made[0], read_only=True)
    rollouts = [each for group in book.trained_groups(1) for each in group.rollouts]
    book.close()
    share = sum(each.facts.get(HINT, 0.0) for each in rollouts) / len(rollouts)
    right = sum(each.reward for each in rollouts) / len(rollouts)
    assert made[1][0]["hint_share"] == pytest.approx(share) and 0 < share < 1
    assert made[1][0]["hint_off_target"] == pytest.approx(abs(right - 0.5))


def test_it_goes_on_where_it_was(made: tuple[Path, Any, ResponsiveHints]) -> None:
    again = ResponsiveHints((ENV,))
    again.restore(made[2].state())
    groups = [Group(9, ENV.task(index), []) for index in range(4)]
    shares = [made[2].share(group, 3) for group in groups]
    assert [again.share(group, 3) for group in groups] == shares != [2 / 3] * 4
    assert again.state() == made[2].state() and len(again.state()["last"]) == 4


def shown(share: float, number: int, version: int) -> Group:
    group = make_group([1.0], number=number)
    group.rollouts[0].facts[HINT] = share
    return replace(group, version=version)


def test_the_newest_group_is_the_last_whenever_it_is_seen() -> None:
    strategy = ResponsiveHints((ENV,))
    for group in (shown(0.2, 4, 1), shown(0.6, 9, 2), shown(0.4, 7, 2), make_group([])):
        strategy.observe(group)
    assert strategy.share(Group(10, TASK, []), 3) == 0.6
    assert ResponsiveHints((ENV,)).share(Group(10, TASK, []), 4) == 0.75, "all steps but one"
    assert ResponsiveHints((ENV,)).share(Group(10, TASK, []), 0) == 0.0, "there is nothing to show"


def test_failed_rollouts_are_no_evidence() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0], failed=[1, 2], pruned=[3])
    for rollout in group.rollouts:
        rollout.facts[HINT] = 0.5
    assert ResponsiveHints((ENV,)).share(group, 3) == fitted([(0.5, 1.0, 1.0)]).share(0.5)


@dataclass(frozen=True)
class Verbose(Arithmetic):
    def hint(self, task: Task, steps: int = 1) -> str:
        return " ".join(["1+1=2" * 30] * min(steps, 2))


def test_refuses_what_cannot_work(tmp_path: Path) -> None:
    for target in (0.0, 1.0):
        with pytest.raises(ConfigurationError, match="needs a target between 0 and 1"):
            ResponsiveHints((ENV,), target)
    with pytest.raises(ConfigurationError, match="environment keyvalue has no worked solutions"):
        check(build(recipe_named("seele"), {"env": "keyvalue:2"}))
    with pytest.raises(ConfigurationError, match="call meet"):
        ResponsiveHints((ENV,))._prefix(ENV.task(0), "1")
    env = Verbose(5)
    strategy = ResponsiveHints((env,))
    run = make_run(envs=(env,), sampler=Few((env,), 4), engine=Scripted(completion), strategy=strategy)
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, _):
        strategy.meet(flow.policy)
        with pytest.raises(
            ConfigurationError, match=r"its hint has 151 tokens.*max_tokens=128 and context=96 leave room for 80"
        ):
            run_virtually(train(flow))
        assert flow.ledger.violations() == []
