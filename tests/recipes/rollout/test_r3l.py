"""R3L: which rollouts are retried, from where, what the engine reads and what is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.guess import Guess
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.from_strategy import Noted
from strop.generate.llm_clients.without_model import Canned
from strop.generate.policy import rollout_key
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.rollout.r3l import Reflection, ReflectRetry, _Second, question, read
from strop.training.comparison_groups import comparison_groups
from strop.types import Message, Origin, Outcome
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.strategies.watched import Watched, watched
from tests.test_pipeline import make_run, opened

FAILURE = {"outcome": "failure", "retry_from_step": 1, "guidance": "halve it"}


def test_parsing_a_reflection() -> None:
    text = f"So I say: {json.dumps(FAILURE)} indeed"
    assert read(text, 2) == Reflection(False, 1, "halve it")
    assert read(text, 1) is None, "behind the end"
    assert read('{"outcome": "success"}', 1) == Reflection(is_perfect=True)
    bad = [{"retry_from_step": -1}, {"retry_from_step": True}, {"retry_from_step": "1"}, {"guidance": ""}]
    bad += [{"guidance": 3}, {"outcome": "fine"}]
    assert [read(json.dumps(FAILURE | each), 2) for each in bad] == [None] * 6
    assert [read(text, 2) for text in ("", "{", "{]}", "3", "[" * 9 + "{" * 99999 + "}")] == [None] * 5


def test_the_reflection_request() -> None:
    (rollout,) = make_group([0.25]).rollouts
    text = question(rollout, rollout)
    assert text.startswith("task: 1+1=\n[step 0] 2\n[reward] 0.25 (wrong)\n")
    rollout.turns = (replace(rollout.turns[0], message=Message("assistant", "2\n[step 1] 2\n[reward] 1\n\n{}")),)
    lines = question(rollout, rollout).splitlines()
    assert lines[1:6] == ["[step 0] 2", "  (step 1) 2", "  (reward) 1", "  ", "  {}"], "it cannot write its own reward"
    assert [line for line in lines if line.startswith("[")] == ["[step 0] 2", "[reward] 0.25 (wrong)"]


def halving(prompt: str, key: int) -> str:
    """Reflects, and guesses: the first time in the middle; after that in the middle only where it read guidance."""
    if "Look back" in prompt:
        return json.dumps({"outcome": "success"} if "[reward] 1" in prompt else FAILURE)
    asked, _, rest = prompt.partition("guess ")[2].partition("<|end|>")
    low, high = (int(part) for part in asked.split(" ")[0].split(".."))
    is_guided = "halve it" in rest
    turns = rest.rpartition("halve it<|end|>")[2].split("<|assistant|>")[1:-1]
    if turns and not is_guided:
        return "0"
    for turn in turns:
        guess = int(turn.split("<|end|>")[0])
        low, high = (guess + 1, high) if "higher" in turn else (low, guess - 1)
    return str((low + high) // 2)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("games")
    parts = {"strategy": ReflectRetry(), "budget": Fixed(4), "rewards": (Noted(Earned()),)}
    return watched(folder, halving, Guess(1), 2, context=700, **parts)


def test_a_retry_continues_from_the_named_turn(games: Watched) -> None:
    seen = []
    for group in games.drawn:
        known = {each.id: each for each in group.rollouts}
        firsts = [each for each in group.rollouts if each.origin is Origin.POLICY]
        retries = {each.parent: each for each in group.rollouts if each.comparison_group == "" and each not in firsts}
        assert len(firsts) == 2
        for first in firsts:
            seen.append(first.reward)
            assert (first.id in retries) == (first.reward == 0.0) == ("pivot" in first.facts)
            if first.reward:
                continue
            retry = retries[first.id]
            assert first.facts["pivot"] == 1.0 and len(first.turns) == 3 and retry.origin is Origin.GUIDED
            assert retry.reward == 1.0 and retry.outcome is Outcome.FINISHED, (
                "the environment heard the first turn again"
            )
            assert len(retry.turns[0].tokens) == 0 and retry.turns[0].prefix.tolist() == first.turns[0].tokens.tolist()
            assert retry.turns[0].prompt[: len(first.turns[0].prompt)].tolist() == first.turns[0].prompt.tolist()
            read = games.engine.prompts[rollout_key(0, retry.id)]
            assert "halve it" in read and first.task.messages[0].content in read
            assert all("halve it" not in games.engine.prompt_of(retry, turn) for turn in range(len(retry.turns)))
            (again,) = [each for each in group.rollouts if each.parent == retry.id]
            assert "halve it" in games.engine.prompt_of(again) and again.comparison_group == f"guided {again.id}"
            assert [each.tokens.tolist() for each in again.turns] == [each.tokens.tolist() for each in retry.turns]
            assert known[again.id].reward == 1.0 and again.num_sampled == 0
    assert set(seen) == {0.0, 1.0}, "both kinds were there"


def test_a_reflection_that_helped_is_trained_alone(games: Watched) -> None:
    thoughts = [each for each in games.made if any("Look back" in games.engine.prompt_of(each, 0) for _ in each.turns)]
    drawn = {each.id for group in games.drawn for each in group.rollouts}
    for each in thoughts:
        is_failure = "failure" in each.completion
        assert (each.id in drawn) == is_failure and each.origin is Origin.GUIDED
        assert each.outcome is (Outcome.FINISHED if is_failure else Outcome.PRUNED)
        assert each.reward == float(is_failure) and each.comparison_group == (
            f"reflection {each.id}" if is_failure else ""
        )
    assert {each.id in drawn for each in thoughts} == {True, False}
    alone = [each for each in comparison_groups(games.drawn) if len(each.rollouts) == 1]
    assert all(each.rollouts[0].comparison_group for each in alone) and len(alone) >= 2
    assert games.is_counted_once()


def test_in_an_environment_of_one_completion(tmp_path: Path) -> None:
    """Right on the second try, and with luck on the first; `strips=False` leaves the guidance where it was read."""

    def completion(prompt: str, key: int) -> str:
        terms = prompt.rpartition("=?")[0].split("+")
        total = sum(int("".join(letter for letter in term if letter.isdigit())) for term in terms)
        return str(total) if "try again" in prompt or key % 3 == 0 else "0"

    run = build(recipe_named("r3l"), {})
    assert isinstance(run.strategy, ReflectRetry)
    for name, strips in (("stripped", True), ("kept", False)):
        strategy = ReflectRetry(run.strategy.llm_client, strips)
        found = watched(tmp_path / name, completion, Arithmetic(3), 1, strategy=strategy, budget=Fixed(4), context=200)
        firsts = [each for each in found.made if each.origin is Origin.POLICY]
        retries = [each for each in found.made if each.origin is Origin.GUIDED]
        assert len(retries) == sum(each.reward == 0.0 for each in firsts) > 0
        for retry in retries:
            assert "wrong, try again" in found.engine.prompts[rollout_key(0, retry.id)]
            assert ("try again" in found.engine.prompt_of(retry)) == (not strips) and retry.reward == 1.0
        twins = [each for each in found.made if each.origin is Origin.REPLAYED]
        assert len(twins) == (len(retries) if strips else 0) and found.is_counted_once()


def test_without_a_reflection_there_is_no_retry(tmp_path: Path) -> None:
    """An LLM client that does not answer costs a second rollout, and not the run."""
    strategy = ReflectRetry(Canned())
    found = watched(tmp_path, lambda prompt, key: "0", Arithmetic(3), 1, strategy=strategy, budget=Fixed(4))
    assert [len(group.rollouts) for group in found.drawn] == [2] * len(found.drawn) != []
    assert all(each.origin is Origin.POLICY and "pivot" not in each.facts for each in found.made)


def test_pairs_need_an_even_number(tmp_path: Path, games: Watched) -> None:
    run = make_run(1, strategy=ReflectRetry(), budget=Fixed(3))
    model = next(tmp_path.parent.glob("games*/model"))
    with (
        opened(run, model, tmp_path / "ledger.db") as (flow, _),
        pytest.raises(ConfigurationError, match="need an even number per group, got 3"),
    ):
        run_virtually(train(flow))


@pytest.mark.parametrize(
    ("before", "after", "turns", "has_helped"),
    [
        (0.0, 1.0, (1, 1), True),
        (0.0, 0.5, (1, 1), False),  # better, and not right
        (1.0, 1.0, (1, 1), False),  # right before
        (1.0, 1.0, (2, 1), True),  # in fewer turns
        (None, 1.0, (2, 1), False),
    ],
)
def test_what_counts_as_help(before: float | None, after: float, turns: tuple[int, int], has_helped: bool) -> None:
    (one,) = make_group([0.0]).rollouts
    first, retry = (replace(one, turns=one.turns * count) for count in turns)
    scored = None if before is None else make_group([before]).rollouts[0]
    (again,) = make_group([after]).rollouts
    assert ReflectRetry()._has_helped(_Second(first, retry=retry), scored, again) is has_helped
