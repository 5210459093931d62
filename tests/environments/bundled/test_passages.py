"""Passages: how many are shown, which are cited, and what RAG-RL pays for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.environments.bundled.passages import Passages, cited, gold_of
from strop.environments.data.heldout_split import is_heldout
from strop.recipes.select.rag_rl import Citations
from strop.types import Message, Task
from tests.building import make_group, turn

TASK = Task((Message("user", "47+12+30=? hint: 20+31=51 59+30=89 47+12=59 11+9=20"),), "89", "passages", 2)


@pytest.mark.parametrize("level", range(1, 9))
def test_a_level_is_the_number_of_passages_that_lead_nowhere(level: int) -> None:
    env = Passages(level)
    sizes = set()
    for index in range(60):
        task = env.task(index)
        question, _, shown = task.messages[0].content.partition("=? hint: ")
        passages, terms = shown.split(), question.split("+")
        gold = len(terms) - 1
        sizes.add(gold)
        assert len(passages) == len(set(passages)) == gold + min(max(level + 2 - gold, 0), 8)
        assert set(gold_of(task)) <= set(passages) and task.answer == str(sum(map(int, terms)))
        assert task == env.task(index) and (task.source, task.level) == ("passages", level)
    assert sizes == {2, 3}


@pytest.mark.parametrize("heldout", [False, True])
def test_a_sum_stays_on_its_side_with_and_without_passages(heldout: bool) -> None:
    for index in range(50):
        prompt = Passages(3).task(index, heldout).messages[0].content
        assert is_heldout(prompt) == heldout and is_heldout(prompt.partition(" hint: ")[0]) == heldout


def test_the_order_of_passages_says_nothing() -> None:
    first = [Passages(2).task(index) for index in range(200)]
    leading = sum(task.messages[0].content.partition(" hint: ")[2].split()[0] in gold_of(task) for task in first)
    shares = [len(gold_of(task)) / len(task.messages[0].content.partition(" hint: ")[2].split()) for task in first]
    assert abs(leading - sum(shares)) < 4 * 200**0.5 / 2


def test_a_passage_is_cited_where_the_working_quotes_it() -> None:
    assert cited(TASK, "<think>47+12=59 59+30=89</think>89") == (2, 2, 0)
    assert cited(TASK, "<think>20+31=51 47+12=59 1+1=2</think>89") == (1, 2, 1)
    assert cited(TASK, "<think>20+31=51 59+30=89 47+12=59 11+9=20</think>89") == (2, 2, 2)
    assert cited(TASK, "89") == cited(TASK, "<think></think>47+12=59") == (0, 2, 0), "only the working counts"


def paid(*completions: str, task: Task = TASK) -> list[float]:
    group = make_group([0.0] * len(completions))
    group.task = task
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        rollout.task = task
        rollout.turns = (replace(turn(1), message=Message("assistant", completion)),)
    return Citations()(group)


def test_the_papers_pay_by_hand() -> None:
    """5 * recall - 2 * wrong + 1 for the form; citing everything is worth 5 - 2 * 2 and the form."""
    assert paid(
        "<think>47+12=59 59+30=89</think>89",
        "<think>47+12=59 20+31=51</think>7",
        "<think>20+31=51 59+30=89 47+12=59 11+9=20</think>89",
        "<think>47+12=59 59+30=89",
        "89",
    ) == [6.0, 1.5, 2.0, 0.0, 0.0]
    assert paid("<think>47+12=59</think>59", task=replace(TASK, source="arithmetic")) == [0.0]
