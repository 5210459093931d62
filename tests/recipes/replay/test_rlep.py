"""Successes of an earlier run beside fresh rollouts: which ones, how they are rewarded, compared and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from strop.control.samplers.few import Few
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.generate.strategies.independent import Independent
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.replay.rlep import ReplayedSuccesses
from strop.roles import Player, Reward, Strategy
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.training.advantages.group_relative import GroupStandard
from strop.training.objective import Objective
from strop.types import ZERO_TO_ONE, Group, Metrics, Origin, Rollout, ScoreRange, Start
from tests.building import make_batch, make_group, say, written
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder
from tests.test_pipeline import make_run, opened

ENV = Arithmetic(3)


def able(prompt: str, key: int) -> str:
    """Sums of an even first term are solved now and then, with working of different lengths; the others never are."""
    question = prompt.rpartition("=?")[0]
    first, second = (int("".join(letter for letter in term if letter.isdigit())) for term in question.split("+"))
    working = f"<think>{'1' * (key % 5)}</think>"
    return f"{working}{first + second}" if first % 2 == 0 and key % 3 == 0 else "0"


def unable(prompt: str, key: int) -> str:
    return "0" * (1 + key % 4)


def played(model: Path, ledger: Path, script: Any, steps: int = 3, **parts: Any) -> tuple[list[Metrics], Run]:
    run = make_run(steps, envs=(ENV,), sampler=Few((ENV,), 8), engine=Scripted(script), **parts)
    with opened(run, model, ledger) as (flow, recorder):
        for part in [run.strategy] if isinstance(run.strategy, ReplayedSuccesses) else []:
            part.meet(flow.policy)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    return recorder.rows, run


@pytest.fixture(scope="module")
def pool(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    ledger = tmp_path_factory.mktemp("pool") / "ledger.db"
    played(model, ledger, able, steps=4)
    return ledger


def rollouts_in(ledger: Path, condition: str) -> dict[str, list[Rollout]]:
    """By task."""
    book = Ledger(ledger, read_only=True)
    ids = book._rows(f"SELECT id FROM rollouts WHERE {condition} ORDER BY number, id")
    found: dict[str, list[Rollout]] = {}
    for (name,) in ids:
        found.setdefault((rollout := book.rollout(name)).task.id, []).append(rollout)
    book.close()
    return found


def words(rollout: Rollout) -> tuple[int, ...]:
    return tuple(rollout.turns[0].tokens.tolist())


def test_each_group_gets_different_successes_at_its_own_task(model: Path, pool: Path, tmp_path: Path) -> None:
    rows, _ = played(model, tmp_path / "ledger.db", unable, strategy=ReplayedSuccesses(Independent(), str(pool)))
    right = rollouts_in(pool, "reward = 1.0 AND origin = 'policy'")
    assert 0 < len(right) < 8 and min(map(len, right.values())) == 1 < max(map(len, right.values())), "of every kind"
    book = Ledger(tmp_path / "ledger.db", read_only=True)
    groups = [group for step in (1, 2, 3) for group in book.trained_groups(step)]
    for group in groups:
        again = [each for each in group.rollouts if each.origin is Origin.REPLAYED]
        known = right.get(group.task.id, [])
        assert len(again) == min(2, len(known)) and len(group.rollouts) == 3 + len(again)
        assert len({each.id for each in group.rollouts}) == len(group.rollouts)
        sources = [words(each) for each in known]
        for each in again:
            assert words(each) in sources
            sources.remove(words(each))  # none twice
            assert each.turns[0].versions.tolist() == [-1] * each.num_tokens and each.num_sampled == 0
        assert [each.reward for each in group.own] == [0.0] * 3, "they are no rollouts of the policy's"
    fresh = book._rows("SELECT SUM(tokens) FROM rollouts WHERE origin = 'policy'")[0][0]
    book.close()
    assert rows[-1]["tokens_generated"] == fresh, "nobody generated what was replayed"
    assert 0 < rows[-1]["share/replayed"] < 1


@dataclass(frozen=True)
class ByLength(Reward):
    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        return [10.0 + rollout.num_tokens for rollout in group.rollouts]


def test_they_are_rewarded_anew(model: Path, pool: Path, tmp_path: Path) -> None:
    strategy = ReplayedSuccesses(Independent(), str(pool), count=1)
    played(model, tmp_path / "ledger.db", unable, steps=1, strategy=strategy, rewards=(ByLength(),))
    replayed = rollouts_in(tmp_path / "ledger.db", "origin = 'replayed'")
    assert replayed and all(each.reward == 10.0 + each.num_tokens for found in replayed.values() for each in found)


def test_the_same_run_replays_the_same(model: Path, pool: Path, tmp_path: Path) -> None:
    digests = []
    for name in ("one.db", "other.db"):
        played(model, tmp_path / name, unable, strategy=ReplayedSuccesses(Independent(), str(pool), count=1))
        book = Ledger(tmp_path / name, read_only=True)
        digests.append(book.digest())
        book.close()
    assert digests[0] == digests[1]
    several = rollouts_in(tmp_path / "one.db", "origin = 'replayed'")
    assert any(len({words(each) for each in found}) > 1 for found in several.values()), (
        "by chance, not always the first"
    )


@dataclass
class Numbering(Player):
    """Plays nothing, and numbers what is added."""

    count: int = 0

    def another(self, **changes: Any) -> Start:
        self.count += 1
        return Start(f"9/{self.count - 1}", self.count)


@dataclass(frozen=True)
class Nothing(Strategy):
    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return []


def test_nothing_of_its_former_life_comes_along(tmp_path: Path) -> None:
    """Neither facts nor rewards, and it is a sibling of the fresh ones, whatever it was compared with there."""
    book, former = Ledger(tmp_path / "ledger.db"), make_group([1.0])
    (rollout,) = former.rollouts
    rollout.facts |= {"turn_loss": 2.0}
    rollout.parent, rollout.comparison_group, rollout.rewards = "0-7", "hinted", {"outcome": 1.0}
    book.admitted(0, former.task, 0)
    book.finished(former, former, "", 0)
    book.sync()
    book.close()
    strategy, group = ReplayedSuccesses(Nothing(), str(tmp_path / "ledger.db")), Group(9, former.task, [])
    (again,), _ = run_virtually(strategy(group, [], Numbering()))
    assert (again.id, again.origin, again.task) == ("9/0", Origin.REPLAYED, former.task)
    assert (again.facts, again.parent, again.comparison_group) == ({}, "", "") and (again.reward, again.rewards) == (
        0.0,
        {},
    )
    assert words(again) == words(rollout) and again.num_sampled == 0
    later, _ = run_virtually(strategy(make_group([0.0]), [], Numbering()))
    assert later == [], "they join the first wave alone"


def test_a_lost_group_has_contrast_again() -> None:
    """16 wrong and 2 right: mean 1/9, standard deviation .3233808 (of 18, divided by 17)."""
    group = make_group([0.0] * 16 + [1.0] * 2)
    GroupStandard(epsilon=1e-6)([group])
    advantage = [float(each.advantages[0]) for each in group.scored if each.advantages is not None]
    assert advantage == pytest.approx([-0.3435921] * 16 + [2.7487371] * 2, abs=2e-5)


def test_their_ratio_begins_at_one_and_is_clipped_from_there() -> None:
    """The proximal policy gave 0.2; the current one 0.25 (1.25, within 1.28) and 0.3 (1.5: no push beyond)."""
    run = build(recipe_named("rlep"), {"pool": "POOL"})
    batch = make_batch([[0.0, 0.0]], [1.0])
    batch.versions = torch.full_like(batch.versions, -1)
    batch.fill("proximal", torch.tensor([0.0, *np.log([0.2, 0.2])], dtype=torch.float64))
    output = say([np.log([0.25, 0.3]).tolist()])
    Objective(run.losses, run.correction)(output, batch)[0].backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-1.25 / 2, 0.0])


def test_another_tokenizer_is_refused(model: Path, pool: Path, tmp_path: Path) -> None:
    strategy = ReplayedSuccesses(Independent(), str(pool))
    strategy.meet(policy_of(save_folder(tmp_path), Recording([])))
    run = make_run(1, envs=(ENV,), sampler=Few((ENV,), 8), engine=Scripted(unable), strategy=strategy)
    with (
        opened(run, model, tmp_path / "ledger.db") as (flow, _),
        pytest.raises(ConfigurationError, match="another tokenizer or chat template"),
    ):
        run_virtually(train(flow))


def test_a_pool_must_be_there_and_hold_something(model: Path, tmp_path: Path) -> None:
    sizes = {"model": str(model), "max_tokens": 24}
    with pytest.raises(ConfigurationError, match=r"ledger\.db does not exist"):
        check(build(recipe_named("rlep"), {**sizes, "pool": str(tmp_path / "nowhere")}))
    played(model, tmp_path / "ledger.db", unable, steps=1)
    run = build(recipe_named("rlep"), {**sizes, "pool": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="holds no rollout with a success of 1"):
        check(run)
    any_success = ReplayedSuccesses(Independent(), str(tmp_path / "ledger.db"), right=0.0)
    with pytest.raises(ConfigurationError, match="arithmetic:3 is not among the environments of this run"):
        check(replace(run, strategy=any_success))
    same = build(recipe_named("rlep"), {**sizes, "pool": str(tmp_path), "env": "arithmetic:3"})
    check(replace(same, strategy=any_success))
    with pytest.raises(ConfigurationError, match="count >= 1, got 0"):
        ReplayedSuccesses(Independent(), "", count=0)
