"""Nudged rollouts: what the engine reads, what is trained twice, and what is counted once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.rollout.nudgerl import Nudged
from strop.roles import Agent, Player
from strop.types import Origin, Rollout, Start, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.strategies.watched import watched

ENV = Arithmetic(3)
WORDS = ("quick", "careful")


def completion(prompt: str, key: int) -> str:
    return "1" * (1 + key % 3 + 4 * ("careful" in prompt))


def test_who_reads_a_word_and_who_is_told_without(tmp_path: Path) -> None:
    found = watched(tmp_path, completion, ENV, strategy=Nudged(WORDS, 0.5), budget=Fixed(5))
    engine, groups = found.engine, [group.rollouts for group in found.drawn]
    seen = set()
    for rollouts in groups:
        own = {each.id: each for each in rollouts if each.origin is not Origin.REPLAYED}
        twins = {each.parent: each for each in rollouts if each.origin is Origin.REPLAYED}
        assert len(own) == 5 and len(rollouts) == 5 + len(twins)
        for place, each in enumerate(own.values()):
            number = int(each.facts["context"])
            assert number in (0, 1 + place % 2), "dealt in turn"
            question = each.task.messages[0].content
            text = engine.prompt_of(each)
            assert (f"{WORDS[number - 1]}: {question}" in text) == bool(number) and question in text
            assert each.origin is (Origin.GUIDED if number else Origin.POLICY) and (each.id in twins) == bool(number)
            seen.add((place, number))
        for parent, each in twins.items():
            text = engine.prompt_of(each)
            assert each.task.messages[0].content in text and not any(word in text for word in WORDS)
            plain = [other.turns[0].prompt.tolist() for other in own.values() if other.origin is Origin.POLICY]
            assert all(each.turns[0].prompt.tolist() == prompt for prompt in plain), (
                "what a plain one reads, and no more"
            )
            assert each.turns[0].tokens.tolist() == own[parent].turns[0].tokens.tolist()
            assert each.reward == own[parent].reward and each.facts == own[parent].facts
            assert each.num_sampled == 0 < own[parent].num_sampled, "counted once"
    assert len(seen) == 10, "every place had its word, and none"
    assert found.is_counted_once()


@pytest.mark.parametrize(("dropout", "nudged"), [(0.0, 5), (1.0, 0)])
def test_all_or_none(tmp_path: Path, dropout: float, nudged: int) -> None:
    found = watched(tmp_path, completion, ENV, 1, strategy=Nudged(WORDS, dropout), budget=Fixed(5))
    origins = [[each.origin for each in group.rollouts] for group in found.drawn]
    kind = Origin.GUIDED if nudged else Origin.POLICY
    assert origins == [[kind] * 5 + [Origin.REPLAYED] * nudged] * 4


@pytest.mark.parametrize(("words", "dropout"), [((), 0.5), (("half", ""), 0.5), (("half",), 1.5), (("half",), -0.1)])
def test_bad_input_is_refused(words: tuple[str, ...], dropout: float) -> None:
    with pytest.raises(ConfigurationError, match="Nudged needs words that are not empty and 0 <= dropout <= 1"):
        Nudged(words, dropout)


@dataclass
class Failing(Player):
    """Plays rollouts that their environment fails."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        return replace(make_group([0.0], failed=[0]).rollouts[0], id=start.id, origin=start.origin, facts={})


def test_what_failed_is_not_told_again() -> None:
    starts = [Start("0/0", 1), Start("0/1", 2)]
    rollouts, _ = run_virtually(Nudged(WORDS, 0.0)(make_group([]), starts, Failing()))
    assert [(each.id, each.facts) for each in rollouts] == [("0/0", {"context": 1.0}), ("0/1", {"context": 2.0})]
