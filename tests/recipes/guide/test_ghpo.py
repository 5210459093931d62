"""GHPO's ladder: who climbs it and how far, what is read on each rung, and which wave is trained."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from strop.control.budgets.waves import InWaves
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.format.hints import beginnings, with_hint, working
from strop.environments.format.think_tags import sum_steps
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.ghpo import HINT, HintLadder, LastComparisonGroup
from strop.storage.ledger.ledger import Ledger
from strop.types import Group, Message, Origin, Task
from tests.building import TASK, make_group
from tests.clock import run_virtually
from tests.recipes.guide.test_guide_hinted_when_lost import Reading
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(4)  # three terms of two digits: the working of 47+12+30 is 47+12=59 59+30=89


def terms(prompt: str) -> list[int]:
    question = prompt.rpartition("=?")[0]
    return [int("".join(letter for letter in term if letter.isdigit())) for term in question.split("+")]


def needed(first: int) -> int:
    """Which wave a task's rollouts are right in: 0, 1, 2, or 9 for none, by its first term."""
    return (0, 1, 2, 9)[first % 4]


def completion(prompt: str, key: int) -> str:
    """Right in about half of the rollouts of the wave that the task needs, and of later ones."""
    asked, shown = terms(prompt), len(prompt.partition("hint: ")[2].partition("<")[0])
    wave = round(4 * shown / len(" ".join(sum_steps(asked)[0])))
    return str(sum(asked)) if wave >= needed(asked[0]) and key % 2 else "0"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reading, list[dict[str, float]]]:
    folder = tmp_path_factory.mktemp("ladder")
    model, engine = save_pocket_like(folder / "model"), Reading(completion)
    run = make_run(
        steps=4,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=engine,
        budget=InWaves(5, 4, only_when_lost=True),
        strategy=HintLadder((ENV,)),
        gates=(LastComparisonGroup(),),
    )
    with opened(run, model, folder / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        rows = recorder.rows
    return folder / "ledger.db", engine, rows


def waves_of(ledger: Path) -> dict[int, dict[str, list[float]]]:
    """Rewards by group and comparison group, in order."""
    found: dict[int, dict[str, list[float]]] = {}
    book = Ledger(ledger, read_only=True)
    for number, comparison_group, reward in book._rows(
        "SELECT number, comparison_group, reward FROM rollouts ORDER BY number, LENGTH(id), id"
    ):
        found.setdefault(number, {}).setdefault(comparison_group, []).append(reward)
    book.close()
    return found


def test_a_task_climbs_as_long_as_all_fail(played: tuple[Path, Reading, list[dict[str, float]]]) -> None:
    groups = waves_of(played[0])
    seen = set()
    for waves in groups.values():
        names = list(waves)
        assert names == ["", "hint 0.25", "hint 0.5", "hint 0.75"][: len(names)], "no rung is left out or comes back"
        assert all(len(rewards) == 5 for rewards in waves.values())
        assert not any(reward for name in names[:-1] for reward in waves[name]), "who was right is never hinted"
        assert any(waves[names[-1]]) or len(names) == 4, "whoever failed and can climb does"
        seen.add(len(names))
    assert seen >= {1, 2, 4}, "tasks of several kinds were there"


def test_the_last_wave_is_trained_behind_the_prompt_it_read(
    played: tuple[Path, Reading, list[dict[str, float]]],
) -> None:
    ledger, engine, rows = played
    waves, book = waves_of(ledger), Ledger(ledger, read_only=True)
    for step in range(1, 5):
        groups = book.trained_groups(step)
        for group in groups:
            assert {each.comparison_group for each in group.rollouts} == {list(waves[group.number])[-1]}
            for each in group.rollouts:
                share = each.facts.get(HINT, 0.0)
                text = engine._tokenizer.decode(each.turns[0].prompt.tolist())
                told = working((ENV,), each.task)
                asked = each.task.messages[0].content + (f" hint: {told[: round(share * len(told))]}" if share else "")
                assert f"<|user|>{asked}<|end|>" in text and text in engine.prompts.values()
                assert each.origin is (Origin.GUIDED if share else Origin.POLICY)
        shares = [each.facts.get(HINT, 0.0) for group in groups for each in group.rollouts]
        assert rows[step - 1]["hint_share"] == pytest.approx(sum(shares) / len(shares))
    book.close()
    assert rows[-1]["tokens_generated"] == _tokens(ledger), "every wave counts"


def _tokens(ledger: Path) -> int:
    book = Ledger(ledger, read_only=True)
    ((total,),) = book._rows("SELECT SUM(tokens) FROM rollouts")
    book.close()
    return int(total)


def test_hints_by_hand() -> None:
    task = replace(ENV.task(0), messages=(Message("user", "47+12+30=?"),), id="")
    assert working((ENV,), task) == "47+12=59 59+30=89"
    assert beginnings((ENV,), task) == ["47+12=59", "47+12=59 59+30=89"]
    assert with_hint(task, "47+1") == (Message("user", "47+12+30=? hint: 47+1"),)


def test_waves_follow_each_other_while_all_fail() -> None:
    """Over all outcomes of up to 3 waves of 2: another one comes exactly where the last has no success."""
    budget = InWaves(2, 3, only_when_lost=True)
    for outcomes in product([0.0, 1.0], repeat=6):
        made: list[float] = []
        while budget.rollouts(_group(made)):
            made += outcomes[len(made) : len(made) + 2]
        lost = [not any(outcomes[low : low + 2]) for low in (0, 2, 4)]
        assert len(made) == (2 if not lost[0] else 4 if not lost[1] else 6)
    assert [InWaves(2, 3).rollouts(_group([1.0] * count)) for count in (0, 2, 4, 6)] == [2, 2, 2, 0]


def _group(rewards: list[float]) -> Group:
    return make_group(rewards) if rewards else Group(0, TASK, [])


def test_what_the_env_failed_is_no_failure_of_the_wave() -> None:
    budget = InWaves(3, 2, only_when_lost=True)
    assert budget.rollouts(make_group([0.0, 0.0, 1.0], failed=[2])) == 3, "all that count failed"
    assert budget.rollouts(make_group([0.0, 0.0, 0.0], failed=[0, 1, 2])) == 0, "nothing is known"
    assert budget.rollouts(make_group([-1.0, 0.0, 0.0])) == 3, "paid less than nothing is no success either"


def test_only_the_last_comparison_group_stays() -> None:
    group = make_group([0.0, 0.0, 1.0, 0.0])
    assert LastComparisonGroup()(group).group is group
    for rollout in group.rollouts[2:]:
        rollout.comparison_group = "hint 0.25"
    kept = LastComparisonGroup()(group).group
    assert kept is not None and kept.rollouts == group.rollouts[2:] and len(group.rollouts) == 4


def test_refuses_what_cannot_work() -> None:
    for shares in ((), (0.5, 0.25), (-0.25, 0.5), (0.5, 1.0)):
        with pytest.raises(ConfigurationError, match="HintLadder needs rising shares"):
            HintLadder((ENV,), shares)
    for sizes in ((0, 1), (1, 0)):
        with pytest.raises(ConfigurationError, match="InWaves needs size >= 1 and waves >= 1"):
            InWaves(*sizes)
    with pytest.raises(ConfigurationError, match="environment keyvalue has no worked solutions"):
        check(build(recipe_named("ghpo"), {"env": "keyvalue:2"}))
    with pytest.raises(ConfigurationError, match="environment keyvalue gives no hints"):
        beginnings((KeyValue(2),), KeyValue(2).task(0))


class Endless(Arithmetic):
    def hint(self, task: Task, steps: int = 1) -> str:
        return "1" * 400


def test_a_hint_that_fills_the_context_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    env = Endless(4)
    run = make_run(
        envs=(env,),
        sampler=Uniform((env,)),
        engine=Scripted(lambda prompt, key: "0"),
        budget=InWaves(2, 4, only_when_lost=True),
        strategy=HintLadder((env,)),
    )
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, _):
        with pytest.raises(ConfigurationError, match=r"prompt has 1\d\d tokens and context=96, so no completion fits"):
            run_virtually(train(flow))
        assert flow.ledger.violations() == []
