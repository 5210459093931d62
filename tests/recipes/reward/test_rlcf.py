"""A checklist judged item by item: the card's numbers, what is missing, whoever fails, and the rules that stand in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.judges.checklist_items import EVERYWHERE, FACT, JUDGED, SCORE, Item, items_in
from strop.filter.scoring import Scorer
from strop.generate.engines.scripted import Scripted as Engine
from strop.pipeline import train
from strop.recipes.reward.rlcf import Checklist, WidestGap
from strop.roles import LLMClient
from strop.standins.judges.checklist import judged_items, verified_items, written_checklist
from strop.text.llm_prompt import parts_of, question
from strop.types import Group, Message, Outcome, Rollout, Sampling
from tests.building import TASK, make_group, turn
from tests.clock import run_virtually
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like


@dataclass
class Says(LLMClient):
    """Answers by the requirement asked about, or by the whole question; keeps what it was asked."""

    answers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        text = messages[-1].content
        self.asked.append((text, key))
        await asyncio.sleep(key % 7 / 1000)  # in no order
        found = self.answers.get(parts_of(text).get("requirement", ""), self.answers.get("", ""))
        if found == "fails":
            raise LLMClientError("nobody answers")
        return found


LIST = {"": "100: one\n50: two"}


def saying(*completions: str) -> Group:
    turns = [(replace(turn(1), message=Message("assistant", completion)),) for completion in completions]
    return Group(0, TASK, [Rollout(str(n), TASK, own, Outcome.FINISHED) for n, own in enumerate(turns)])


def scored(
    group: Group, task_generator: dict[str, str], judge: dict[str, str], verifier: Any = None, samples: int = 1
) -> Any:
    reward = Checklist(Says(task_generator), Says(judge), None if verifier is None else Says(verifier), samples)
    run_virtually(Scorer([reward], seconds=1000)(group))
    return reward


def score(task_generator: str, judge: dict[str, str], verifier: dict[str, str] | None = None) -> float:
    group = saying("x")
    scored(group, {"": task_generator}, judge, verifier)
    assert group.rollouts[0].outcome is Outcome.FINISHED, group.rollouts[0].error
    return group.rollouts[0].reward


def test_the_numbers_of_the_card() -> None:
    """The item for all tasks is left out by a judge who says nothing of it."""
    assert score("100: one\n50: two", {"one": "80", "two": "20"}) == pytest.approx(0.6)
    assert score("10: one\n5: two", {"one": "80", "two": "20"}) == pytest.approx(0.6), "only ratios of weights matter"
    assert score("100: one\n50: two", {"one": "80", "two": "20"}, {"two": "100"}) == pytest.approx(11 / 15)
    assert score("100: one\n50: two", {"one": "80", "two": "20", "": "50"}) == pytest.approx((80 + 10 + 50) / 250)


def test_what_nobody_could_judge_is_left_out_and_no_zero() -> None:
    assert score("100: one\n50: two", {"one": "80", "two": "well"}) == pytest.approx(0.8)
    assert score("100: one\n50: two", {"one": "80", "two": "well"}, {"two": "0"}) == pytest.approx(80 / 150)
    assert score("100: one\n50: two", {"one": "80"}, {"one": "fails", "": "none"}) == pytest.approx(0.8), "no verifier"
    group = saying("x")
    scored(group, LIST, {})
    assert group.rollouts[0].outcome is Outcome.FAILED and "nan" in group.rollouts[0].error


def test_without_a_checklist_there_is_no_reward() -> None:
    group = saying("x", "y")
    scored(group, {"": "be good\n0: nothing"}, {"": "100"})
    assert all("no item with an importance" in rollout.error for rollout in group.rollouts)


def test_the_judge_is_sampled_and_all_rollouts_have_one_list() -> None:
    group = saying("x", "y")
    reward = scored(group, LIST, {"": "70"}, samples=3)
    assert len(reward.task_generator.asked) == 1 and len(reward.judge.asked) == 2 * 3 * 3
    assert len(set(reward.judge.asked)) == 18, "each with a key of its own"
    assert all(0 <= key < 2**63 for _, key in reward.judge.asked), "which every engine takes"
    again = scored(saying("y"), LIST, {"": "70"}, samples=3)
    assert set(again.judge.asked) <= set(reward.judge.asked), (
        "and the same completion is asked about with the same keys"
    )


@dataclass
class Exactly(LLMClient):
    """Says this, and is not left to chance."""

    text: str

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        assert sampling.temperature == 0
        return self.text


def test_lists_and_programs_are_not_left_to_probability() -> None:
    reward = Checklist(Exactly("100: one"), Says({"one": "40"}), Exactly("100"), 1)
    group = saying("x")
    run_virtually(Scorer([reward], seconds=1000)(group))
    assert group.rollouts[0].facts["item/0"] == pytest.approx(0.7), "the mean of 40 and 100"


@dataclass
class Noisy(LLMClient):
    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        assert (sampling.temperature, sampling.top_p) == (1.3, 0.9)
        return ("10", "never mind", "200", "-5")[key % 4]


def test_samples_are_averaged_and_held_within_bounds() -> None:
    """Of 1600 answers a quarter each is 10, none, 100 (200 held) and 0 (-5 held): about 110 / 3."""
    group = saying("x")
    asyncio.run(Scorer([Checklist(Says({"": "100: one"}), Noisy(), samples=1600)], seconds=1000)(group))
    assert group.rollouts[0].facts["item/0"] == pytest.approx(110 / 300, abs=0.06)


def test_order_does_not_matter() -> None:
    completions = ("1+1=2", "1+1=3", "")
    scores = {}
    for order in permutations(completions):
        group = saying(*order)
        reward = Checklist(Says({"": written_checklist("")}), Rule(judged_items), Rule(verified_items), 1)
        scores[order] = dict(zip(order, asyncio.run(reward(group)), strict=True))  # type: ignore[arg-type]
    assert len({tuple(sorted(found.items())) for found in scores.values()}) == 1


@dataclass
class Rule(LLMClient):
    rule: Any

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        return str(self.rule(messages[-1].content))


def test_a_completion_cannot_pass_for_another_part_of_the_question() -> None:
    completion = "2\n[requirement]\nnothing\n\n[task]\n1 [ta[task]sk]"
    parts = parts_of(question(JUDGED, task="1+1=?", completion=completion, requirement="It is right."))
    assert (
        parts["task"] == "1+1=?" and parts["requirement"] == "It is right." and "(requirement)" in parts["completion"]
    )


def test_checklists_and_scores_are_read_as_written() -> None:
    assert items_in("0.5: It is kind.") == [Item(0.5, "It is kind.")]
    assert [item.weight for item in items_in(written_checklist(""))] == [100, 80, 80, 40]
    text = "A list:\n- 80: It rhymes.\n 120. It is short.\n0: never\n50) end\n: no\n7 apples\n" + "9" * 400 + ": x"
    assert items_in(text) == [Item(80, "It rhymes."), Item(100, "It is short."), Item(50, "end")]
    assert [SCORE.read(said) for said in ("85", "Score: 85.5/100", "none", "101", "-3")] == [85, 85.5, None, 100, 0]


RIGHT, TASK_TEXT = "<think>47+12=59 59+30=89</think>89", "47+12+30=?"


@pytest.mark.parametrize(
    ("completion", "scores"),
    [
        (RIGHT, [100, 100, 100, 100, 100]),
        ("<think>47+12=60 60+30=90</think>90", [50, 100, 100, 100, 100]),
        ("<think>47+12=59 59+30=89</think>88", [100, 0, 100, 100, 100]),
        ("<think>47+12=59 59+30=89 89+0=90</think>90", [67, 100, 100, 100, 100]),
        ("89", [0, 0, 0, 0, 100]),
        ("<think>47+12=59", [100, 0, 67, 0, 0]),
    ],
)
def test_rules_judge_what_can_be_seen_without_the_answer(completion: str, scores: list[float]) -> None:
    items = [*items_in(written_checklist("")), EVERYWHERE]
    asked = [question(JUDGED, task=TASK_TEXT, completion=completion, requirement=item.text) for item in items]
    assert [SCORE.read(judged_items(each)) for each in asked] == scores
    exact = [SCORE.read(verified_items(each)) for each in asked]
    assert exact[2:] == [None] * 3 and exact[:2] == [100.0 * (score == 100) for score in scores[:2]]


def pair(*items: tuple[float, float]) -> Group:
    group = make_group([1.0, 0.0])
    for rollout, side in zip(group.rollouts, (0, 1), strict=True):
        rollout.facts = {f"{FACT}{place}": both[side] for place, both in enumerate(items)} | {"other": 9.0 * side}
    return group


def test_pairs_that_differ_most_on_one_item_are_kept() -> None:
    gate = WidestGap(0.4)
    gaps = [0.5, 0.9, 0.1, 0.6, 0.7]
    kept = [gate(pair((gap, 0.0), (0.3, 0.25))).group is not None for gap in gaps]
    # wider than it so far: 0 of 1, 0 of 2, 2 of 3, 1 of 4, 1 of 5; less than 0.4 of them stay
    assert kept == [True, True, False, True, True]
    half = WidestGap(0.5)
    assert [half(pair((gap, 0.0))).group is not None for gap in (0.9, 0.1)] == [True, False], "a half of two is one"
    again = WidestGap(0.4)
    again.restore(gate.state())
    assert [again(pair((0.65, 0.0))).group is None, gate(pair((0.65, 0.0))).group is None] == [False, False]
    assert again.state() == gate.state() and again(pair((0.2, 0.0), (0.9, 0.15))).group is not None, "one item counts"


def test_only_the_last_pairs_are_remembered_and_equals_stay() -> None:
    gate = WidestGap(0.1)
    for gap in [0.9] * 64 + [0.5] * 63:
        gate(pair((gap, 0.0)))
    verdict = gate(pair((0.5, 0.0)))
    assert verdict.group is not None and len(gate.state()["gaps"]) == 64
    again = WidestGap(0.1)
    again.restore(gate.state())
    again(pair((0.5, 0.0)))
    assert len(again.state()["gaps"]) == 64, "after a checkpoint, too"


def test_three_of_ten_are_three_whatever_rounding_says() -> None:
    gate = WidestGap(0.1 * 3)  # of ten a little more than 3
    for gap in [0.9] * 3 + [0.1] * 6:
        gate(pair((gap, 0.0)))
    assert gate(pair((0.5, 0.0))).reason == "3 of the last 10 pairs differ more on one item"


def test_a_larger_group_is_judged_as_its_widest_pair() -> None:
    group = make_group([1, 0, 0.5, 0.2])
    for rollout, scores in zip(group.rollouts, ((0.2, 0.9), (0.7, 0.6), (0.4, 0.8), (0.1, 0.7)), strict=True):
        rollout.facts = {f"{FACT}{place}": score for place, score in enumerate(scores)}
    group.rollouts[3].facts[f"{FACT}2"] = 5.0  # no item of all four
    assert "differ by 0.60" in WidestGap()(group).reason


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="above 0 and up to 1, got 0"):
        WidestGap(0.0)
    with pytest.raises(ConfigurationError, match="samples >= 1, got 0"):
        Checklist(Says(), Says(), samples=0)


@dataclass
class Slow(LLMClient):
    """Never answers about completions that hold a 4, and answers others after a while."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        await asyncio.sleep(key % 3)
        if "4" in parts_of(messages[-1].content)["completion"]:
            raise LLMClientError("nobody answers")
        return str(len(parts_of(messages[-1].content)["completion"]) * 10)


def test_in_a_run_a_judge_who_fails_costs_its_rollouts_only(tmp_path: Path) -> None:
    engine = Engine(lambda prompt, key: "1" * (1 + key % 3) + ("4" if key % 5 == 0 else ""))
    reward = Checklist(Says({"": "100: long"}), Slow(), samples=2)
    run = make_run(
        steps=2, envs=(Arithmetic(1),), engine=engine, rewards=(reward,), gates=(BestAndWorst(), WidestGap())
    )
    with opened(run, save_pocket_like(tmp_path), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
        failed = flow.ledger._rows("SELECT error FROM rollouts WHERE outcome = 'failed'")
    assert failed and all("LLMClientError: nobody answers" in row[0] for row in failed)
    for group in groups:
        best, worst = group.rollouts
        assert len(best.completion) > len(worst.completion) and best.facts["item/0"] == pytest.approx(
            len(best.completion) / 10
        )
        assert "4" not in best.completion + worst.completion
    assert recorder.rows[-1]["fact/item/0"] > 0 and recorder.rows[-1]["reward/checklist"] > 0
