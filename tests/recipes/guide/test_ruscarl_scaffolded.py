"""RuscaRL's scaffold: the card's shares, what is read and what is trained, and who gets none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.launch.checks.preflight import check
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.ruscarl import SCAFFOLD, RubricPoints, Scaffolded
from strop.standins.judges.outcomes import judged_rubric, written_rubric
from strop.storage.ledger.ledger import Ledger
from strop.types import Origin, Rollout
from tests.clock import run_virtually
from tests.recipes.guide.test_ghpo import terms
from tests.recipes.guide.test_guide_hinted_when_lost import Reading
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(5)  # four terms: three items
TASK_GENERATOR, JUDGE = (Procedural(rule) for rule in (written_rubric, judged_rubric))


def test_shares_by_hand() -> None:
    """T = 101: x = 0.2 at version 20. At the fall the first of 5 siblings reads half, the last never anything."""
    strategy = Scaffolded(TASK_GENERATOR, 101)
    assert strategy.share(0, 5, 20) == pytest.approx(0.5) and strategy.share(1, 5, 20) == pytest.approx(0.375)
    assert all(strategy.share(4, 5, version) == 0.0 for version in range(101))
    assert strategy.share(0, 5, 0) == pytest.approx(1.0) and strategy.share(2, 5, 0) == pytest.approx(0.5)
    assert strategy.share(0, 5, 19) == pytest.approx(0.7773, abs=1e-4), "1 / (1 + exp(-125 * 0.01))"
    assert strategy.share(0, 5, 100) == pytest.approx(0.0) and strategy.share(0, 5, 10**6) == pytest.approx(0.0)
    assert Scaffolded(TASK_GENERATOR, 1).share(0, 1, 0) == 0.0


def completion(prompt: str, key: int) -> str:
    return f"<think>{'1+1=2 ' * (key % 2)}</think>{sum(terms(prompt))}"


def played(folder: Path, task_generator: Any) -> tuple[Path, Reading, list[dict[str, float]]]:
    engine, strategy = Reading(completion), Scaffolded(task_generator, 6)
    run = make_run(
        steps=3,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=engine,
        budget=Fixed(5),
        strategy=strategy,
        rewards=(RubricPoints(TASK_GENERATOR, JUDGE),),
    )
    with opened(run, save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
    return folder / "ledger.db", engine, recorder.rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reading, list[dict[str, float]]]:
    return played(tmp_path_factory.mktemp("scaffold"), TASK_GENERATOR)


def drawn(ledger: Path, step: int) -> list[list[Rollout]]:
    book = Ledger(ledger, read_only=True)
    groups = [group.rollouts for group in book.trained_groups(step)]
    book.close()
    return groups


def test_siblings_read_from_all_of_it_to_nothing(made: tuple[Path, Reading, list[dict[str, float]]]) -> None:
    """Version 0: shares just below 1, .75, .5, .25 and 0 of 3 items, rounded to 3, 2, 1, 1 and 0."""
    ledger, engine, rows = made
    for rollouts in drawn(ledger, 1):
        shown = [each.facts.get(SCAFFOLD, 0.0) for each in rollouts]
        assert shown == pytest.approx([1.0, 2 / 3, 1 / 3, 1 / 3, 0.0])
        assert [each.origin for each in rollouts] == [Origin.GUIDED] * 4 + [Origin.POLICY]
        question = rollouts[0].task.messages[0].content
        read = [text for text in engine.prompts.values() if question in text]
        steps = [re.findall(r"\S+=\d+", text.partition("hint: ")[2].partition("<")[0]) for text in read]
        assert sorted(map(len, steps)) == [0, 1, 1, 2, 3]
        whole = max(steps, key=len)
        assert all(each == [step for step in whole if step in each] for each in steps), "in their order"
    assert rows[0]["scaffold_share"] == pytest.approx((1 + 4 / 3) / 5)


def test_the_trained_prompt_holds_no_rubric(made: tuple[Path, Reading, list[dict[str, float]]]) -> None:
    ledger, engine, _ = made
    for step in (1, 2, 3):
        for rollouts in drawn(ledger, step):
            for each in rollouts:
                text = engine._tokenizer.decode(each.turns[0].prompt.tolist())
                assert text == f"<|user|>{each.task.messages[0].content}<|end|><|assistant|>"


def test_the_scaffold_falls(made: tuple[Path, Reading, list[dict[str, float]]]) -> None:
    """T = 6: at version 1 x is 0.2, where half is left (2 items, 1, 1, 0, 0); at version 2 nothing is."""
    ledger, _, rows = made
    for rollouts in drawn(ledger, 2):
        assert [round(3 * each.facts.get(SCAFFOLD, 0.0)) for each in rollouts] == [2, 1, 1, 0, 0]
    assert rows[1]["scaffold_share"] == pytest.approx(4 / 15) and rows[2]["scaffold_share"] == 0.0
    assert all(each.origin is Origin.POLICY for rollouts in drawn(ledger, 3) for each in rollouts)


def test_without_a_rubric_rollouts_are_plain(tmp_path: Path) -> None:
    ledger, engine, rows = played(tmp_path, Canned())
    assert not any("hint" in text for text in engine.prompts.values()) and rows[0]["scaffold_share"] == 0.0
    assert all(len(rollouts) == 5 for rollouts in drawn(ledger, 1))


def test_refuses_what_cannot_work() -> None:
    for wrong in ({"steps": 0}, {"steps": 9, "shows": "{items}"}, {"steps": 9, "shows": "{question}"}):
        with pytest.raises(
            ConfigurationError, match=r"Scaffolded needs steps >= 1 and \{question\} and \{items\} in shows"
        ):
            Scaffolded(TASK_GENERATOR, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="different shares of a rubric: need group_size >= 2"):
        check(build(recipe_named("ruscarl"), {"group_size": 1}))
