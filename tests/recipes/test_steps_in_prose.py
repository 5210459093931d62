"""Mechanisms about steps act on prose, lines and LaTeX, not only on lists of calculations."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from strop.environments.judging.first_error_question import steps_of
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import WorkedSteps
from strop.filter.paid_text import Paid
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.launch.checks.preflight import check
from strop.launch.running.asking import ask_parts
from strop.recipes import build, recipe_named
from strop.recipes.replay.sage_skills.recipe import TOLD, SkillChain
from strop.recipes.replay.sage_skills.reward import skills_of
from strop.recipes.reward.clip_delta import AskedClipDelta
from strop.types import Group, Message, Outcome, Rollout, Task
from tests.building import turn
from tests.generate.llm_clients.serving import serving

TASK = Task((Message("user", "Ann has 12 pens and buys 30, then 5. How many has she?"),), "47", "own")
PROSE = "She has 12+30 = 42 pens at first.\nWith 5 more she has 42+5 = 47 pens.\n#### 47"
SENTENCES = "First she has 42 pens. Then she has 47 pens. The answer is 47."


def said(text: str) -> Rollout:
    return Rollout("0/0", TASK, (replace(turn(3), message=Message("assistant", text)),), Outcome.FINISHED)


def placed(text: str) -> list[str]:
    return [text[step.start : step.end].strip() for step in WorkedSteps().steps(said(text))]


def test_steps_of_any_completion_have_places() -> None:
    assert placed(PROSE) == ["She has 12+30 = 42 pens at first.", "With 5 more she has 42+5 = 47 pens.", "#### 47"]
    assert placed("<think>1+2=3 3+4=7</think>7")[:2] == ["1+2=3", "3+4=7"]
    latex = "We add:\n$$12+30=42$$\nSo $x = 42 + 5$.\n\\boxed{47}"
    assert len(placed(latex)) >= 3 and placed(latex)[-1] == "\\boxed{47}"
    assert steps_of(SENTENCES) == ["First she has 42 pens.", "Then she has 47 pens.", "The answer is 47."]


def test_behaviours_are_injected_into_prose() -> None:
    shown = Injected(Demonstrate(), 1.0, 1.0).injected(PROSE, TASK)
    assert shown.splitlines() == [
        "Perhaps: With 5 more she has ?+5 = ? pens. No, that is too early.",
        "She has 12+30 = 42 pens at first.",
        "So far: 42.",
        "With 5 more she has 42+5 = 47 pens.",
        "#### 47",
    ]
    assert Injected(Demonstrate(), 0.0, 0.0).injected(PROSE, TASK) == PROSE
    assert Injected(Demonstrate(), 1.0, 1.0).injected("It is 47.", TASK) == "It is 47."


def test_skills_are_steps_of_prose() -> None:
    assert skills_of(PROSE) == ("She has 12+30 = 42 pens at first.", "With 5 more she has 42+5 = 47 pens.")
    assert skills_of("47") == () and skills_of("<think>1+2=3</think>3") == ("1+2=3",)


def rows(folder: Path, **columns: str) -> str:
    path = folder / "own.jsonl"
    made = [
        {
            "prompt": f"Add 7 to {n}.",
            "answer": str(n + 7),
            "completion": f"{n} is {n}.\nWith 7 it is {n + 7}.\n#### {n + 7}",
        }
        for n in range(40)
    ]
    path.write_text(
        "".join(
            json.dumps(row | {name: f"{value}{row['answer'][-1]}" for name, value in columns.items()}) + "\n"
            for row in made
        )
    )
    return str(path)


def test_rows_of_one_scenario_make_chains(tmp_path: Path) -> None:
    run = build(recipe_named("sage_skills"), {"env": rows(tmp_path, scenario="shop"), "model": "pocket"})
    check(run)
    (env,) = run.envs
    task = env.task(0)
    other = env.relative(task, 5)  # type: ignore[attr-defined]
    assert other.id != task.id and other.answer[-1] == task.answer[-1]
    assert isinstance(run.strategy, SkillChain)
    with pytest.raises(ConfigurationError, match="no other tasks of one scenario: add a column `scenario`"):
        check(build(recipe_named("sage_skills"), {"env": rows(tmp_path)}))
    assert "{skills}" in TOLD


@pytest.mark.parametrize("recipe", ["behavior_injection", "octothinker", "er_prm"])
def test_they_run_on_a_table_of_prose(recipe: str, tmp_path: Path) -> None:
    check(build(recipe_named(recipe), {"env": rows(tmp_path), "groups_per_step": 4, "group_size": 2}))


def test_a_model_scores_the_steps_of_prose(tmp_path: Path) -> None:
    def says(asked: str) -> str:
        code = re.search(r"`answer ([a-z]{6}):`", asked)
        count = len(re.findall(r"^\d+: ", asked.partition("[/steps")[0], re.MULTILINE))
        scores = "\n".join(f"{n}: {100 if n == 1 else 20}" for n in range(1, count + 1))
        return f"answer {code[1] if code else ''}:\n{scores}"

    with serving() as server:
        server.says = says
        judge = f"{server.url.rstrip('/')}#m"
        run = build(recipe_named("clip_delta"), {"env": rows(tmp_path), "judge": judge, "form": "raw"})
        ask_parts(run)
        (reward,) = [each for each in run.rewards if isinstance(each, AskedClipDelta)]
        paid = asyncio.run(reward(Group(0, TASK, [said(PROSE), said("47")])))
        assert all(isinstance(each, Paid) for each in paid)
        assert [span.value for span in paid[0].spans] == [1.0, 0.2, 0.2] and [span.value for span in paid[1].spans] == [
            1.0
        ]
        server.says = lambda asked: "I like it."
        assert asyncio.run(reward(Group(0, TASK, [said(PROSE)])))[0].spans == ()
        with pytest.raises(ConfigurationError, match=r"judge=http\S+#m: .*which cannot be read"):
            ask_parts(run)
    with pytest.raises(ConfigurationError, match="judge=rules are stand-ins written for the bundled environments"):
        build(recipe_named("clip_delta"), {"env": rows(tmp_path)})
