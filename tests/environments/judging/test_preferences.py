"""Pairs and rankings of completions: which is better, that it shows, and that no two are equal."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import is_heldout
from strop.environments.data.table import Table
from strop.environments.format.think_tags import final_answer
from strop.environments.judging.axiomatic_pairs import AXIOMS
from strop.environments.judging.preferences import Preferences, asked_of, completions_of
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from tests.environments.playing import demonstrated

INNER = (Arithmetic(4), Countdown(3), Compose(1))


@pytest.mark.parametrize("inner", INNER, ids=lambda env: env.name)
def test_the_first_completion_is_right_and_the_second_wrong(inner: Arithmetic | Countdown | Compose) -> None:
    env = Preferences(inner)
    for index in range(100):
        task, plain = env.task(index), inner.task(index)
        better, worse = completions_of(task)
        assert inner.check(plain, better) == 1.0 and inner.check(plain, worse) == 0.0
        assert asked_of(task) == plain.messages and not is_heldout(plain.messages[0].content)
        assert task == env.task(index) and task.source == env.name


@pytest.mark.parametrize("axiom", AXIOMS)
@pytest.mark.parametrize("inner", INNER, ids=lambda env: env.name)
def test_no_axiom_makes_a_pair_of_equal_texts(inner: Arithmetic | Countdown | Compose, axiom: str) -> None:
    env = Preferences(inner, ((axiom, 0.01), ("useful", 1.0)))
    for index in range(60):
        better, worse = completions_of(env.task(index))
        assert better != worse and better == inner.solution(inner.task(index))


def test_axioms_are_drawn_by_their_shares_and_show_what_they_say() -> None:
    inner = Arithmetic(5)
    env = Preferences(
        inner, (("useful", 2.0), ("relevant", 1.0), ("grounded", 1.0), ("evidence", 1.0), ("merged", 1.0))
    )
    drawn = Counter[str]()
    for index in range(600):
        task, plain = env.task(index), inner.task(index)
        axiom, (better, worse) = json.loads(task.answer)["axiom"], completions_of(task)
        drawn[axiom] += 1
        is_right, is_shown = inner.check(plain, worse) == 1.0, "<think>" in worse
        working, whole = (text.rpartition("</think>")[0] for text in (worse, better))
        match axiom:
            case "useful":
                assert not is_right and is_shown
            case "relevant":
                assert not is_right and working != whole
            case "grounded":
                assert is_right and not is_shown and final_answer(better) == worse
            case "evidence":
                assert is_right and is_shown and working != whole and len(working.split()) == 3
            case "merged":
                assert is_right and whole.startswith(working) and len(working.split()) < 3
    assert abs(drawn["useful"] - 200) < 4 * (600 * 2 / 9) ** 0.5
    assert all(abs(drawn[name] - 100) < 4 * (600 * 5 / 36) ** 0.5 for name in AXIOMS if name != "useful")


def test_a_ranking_gets_ever_further_from_the_answer() -> None:
    inner = Arithmetic(4)
    env = Preferences(inner, completions=5)
    for index in range(50):
        completions = completions_of(env.task(index))
        off = [abs(int(final_answer(completion)) - int(inner.task(index).answer)) for completion in completions]
        assert off[0] == 0 and off == sorted(set(off)) and len(off) == 5
    with pytest.raises(ConfigurationError, match="6 wrong completions that differ in how far off they are, need 7"):
        Preferences(inner, completions=8).task(0)


def test_one_of_both_is_shown_and_the_verdict_on_it_is_right() -> None:
    env, shown = Preferences(Arithmetic(2)), Counter[str]()
    for index in range(200):
        task = env.task(index)
        key = env.solution(task)
        shown[key] += 1
        assert task.messages[1].content == completions_of(task)[key == "-"]
        assert [env.check(task, said) for said in ("+", "-", "good")] == [key == "+", key == "-", 0.0]
        assert demonstrated(env, task)[1] == [1.0]
    assert abs(shown["+"] - 100) < 4 * 200**0.5 / 2


def test_wrong_labels_are_as_many_as_wanted_and_never_held_out() -> None:
    inner = Arithmetic(4)
    plain, noisy = Preferences(inner), Preferences(inner, noise=0.25)
    turned = 0
    for index in range(400):
        before, after = completions_of(plain.task(index)), completions_of(noisy.task(index))
        assert after in (before, before[::-1])
        assert json.loads(noisy.task(index).answer)["flipped"] == (after != before)
        turned += after != before
        assert completions_of(noisy.task(index, heldout=True)) == completions_of(plain.task(index, heldout=True))
    assert abs(turned - 100) < 4 * (400 * 3 / 16) ** 0.5


def test_what_makes_no_pairs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no axiom 'usefull'.*useful"):
        Preferences(Arithmetic(1), (("usefull", 1.0),))
    with pytest.raises(ConfigurationError, match="knows no right completions"):
        Preferences(KeyValue(1))
    with pytest.raises(ConfigurationError, match="share above 0, got 0"):
        Preferences(Arithmetic(1), (("useful", 0.0),))
    for wrong in ({"completions": 1}, {"axioms": ()}, {"noise": 1.0}):
        with pytest.raises(ConfigurationError, match="needs completions >= 2, an axiom and 0 <= noise < 1"):
            Preferences(Arithmetic(1), **wrong)
    with pytest.raises(ConfigurationError, match="make no pair"):
        Preferences(Arithmetic(1), (("merged", 1.0),)).task(0)  # one step has no parts


def preferring_table(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_preferences_of_a_table_are_taken_as_they_stand(tmp_path: Path) -> None:
    rows = [{"prompt": f"greet {n}", "chosen": f"Hello dear {n}!", "rejected": f"What, {n}?"} for n in range(30)]
    env = Preferences(Table(preferring_table(tmp_path, *rows)))
    for index in range(8):
        task = env.task(index)
        number = asked_of(task)[0].content.split()[1]
        assert completions_of(task) == [f"Hello dear {number}!", f"What, {number}?"]
    ranked = [{"prompt": f"greet {n}", "ranking": [f"Hello {n}!", f"Hi {n}", f"{n}?", "no"]} for n in range(30)]
    found = Preferences(Table(preferring_table(tmp_path, *ranked)), completions=4).task(0)
    assert len(completions_of(found)) == 4 and completions_of(found)[3] == "no"
    assert completions_of(found)[0].startswith("Hello")


@pytest.mark.parametrize(
    "recipe", ["goal_conditioned_rm", "principled_rlhf", "secrets_of_rlhf_ii", "axiomatic_preference", "spct", "msrl"]
)
def test_recipes_of_judges_train_on_the_rows_preferences_or_name_the_columns(tmp_path: Path, recipe: str) -> None:
    columns = {"chosen": "First look.\nThen speak.\n#### yes", "rejected": "no"}
    rows = [{"prompt": f"greet {n}"} | columns for n in range(99)]
    if recipe == "principled_rlhf":
        rows = [{"prompt": f"greet {n}", "ranking": ["best", "good", "fair", "bad"]} for n in range(99)]
    small = {"groups_per_step": 2, "group_size": 4 if recipe in ("principled_rlhf", "spct", "msrl") else 2}
    check(build(recipe_named(recipe), {"env": preferring_table(tmp_path, *rows)} | small))
    bare = [{"prompt": f"{n}+1=?", "answer": str(n + 1)} for n in range(99)]
    with pytest.raises(ConfigurationError, match=r"each row needs the columns `chosen`|a column `ranking`"):
        check(build(recipe_named(recipe), {"env": preferring_table(tmp_path, *bare)} | small))
