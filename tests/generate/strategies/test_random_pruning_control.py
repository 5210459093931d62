"""Random pruning: as many as a share says, everybody as likely, and survivors go on where they were."""

from __future__ import annotations

from collections import Counter

import pytest

from strop.errors import ConfigurationError
from strop.generate.strategies.random_pruning_control import PrunedAtRandom, survivors
from strop.recipes.rollout.arrol import PrunedMidway
from strop.success import SURVIVAL
from strop.types import Group, Outcome, Start
from tests.building import TASK
from tests.clock import run_virtually
from tests.recipes.rollout.test_arrol import SIGNS, Canned, rewarded


def played(strategy: PrunedAtRandom, player: Canned, key: int = 7) -> Group:
    starts = [Start(f"0/{index}", key + index) for index in range(len(player.lengths))]
    group = Group(0, TASK, [])
    group.rollouts, _ = run_virtually(strategy(group, starts, player))
    return group


def test_everybody_survives_as_often() -> None:
    """5 paused and 0.3 kept: 1 or 2 of them, as often as makes 1.5, and each in 3 of 10 cases."""
    taken = [survivors(5, 0.3, key) for key in range(4000)]
    numbers = Counter(map(len, taken))
    assert set(numbers) == {1, 2} and numbers[1] / 4000 == pytest.approx(0.5, abs=0.03)
    counts = Counter(index for each in taken for index in each)
    assert [counts[index] / 4000 for index in range(5)] == pytest.approx([0.3] * 5, abs=0.03)
    assert survivors(4, 1.0, 3) == [0, 1, 2, 3]


def test_survivors_go_on_where_they_were_and_nobody_is_looked_at() -> None:
    player = Canned(lengths=[3, 9, 9, 4, 9, 9, 2], signs=[0.0] * 7, failing=[6])
    group = played(PrunedAtRandom(at=4), player)
    outcomes = [t.outcome for t in group.rollouts]
    assert outcomes[0] is outcomes[3] is Outcome.FINISHED and outcomes[6] is Outcome.FAILED
    assert [outcomes[index] for index in (1, 2, 4, 5)].count(Outcome.PRUNED) == 2 and not player.looked
    assert [start.pause for start in player.started] == [4] * 7 + [0] * 2
    for start in player.started[7:]:
        first = next(each for each in player.started if each.id == start.id)
        assert start.key == first.key and sum(len(t.tokens) for t in start.turns) == 4
    assert [t.facts for t in group.rollouts] == [{SURVIVAL: 0.5} if index in (1, 2, 4, 5) else {} for index in range(7)]
    assert all(not t.facts for t in played(PrunedAtRandom(at=4), Canned([3, 4], [0.0, 0.0])).rollouts)


def test_it_gives_up_as_many_as_a_head_would_and_knows_nothing() -> None:
    """2 of 8 right: a head that learned keeps both, probability a half of them."""
    head = PrunedMidway(at=4)
    kept: dict[str, list[tuple[int, float]]] = {"head": [], "probability": []}
    for number in range(40):
        told = Group(number, TASK, [], number)
        starts = [Start(f"{number}/{index}", 7 + 100 * number + index) for index in range(8)]
        told.rollouts, _ = run_virtually(head(told, starts, Canned([9] * 8, SIGNS)))
        head.observe(rewarded(told, [max(sign, 0.0) for sign in SIGNS]))
        for name, group in (("head", told), ("probability", played(PrunedAtRandom(4), Canned([9] * 8, SIGNS), number))):
            signs = [sign for sign, t in zip(SIGNS, group.rollouts, strict=True) if t.is_scored]
            kept[name].append((len(signs), signs.count(1.0)))
    means = {name: [sum(each) / 20 for each in zip(*counts[20:], strict=True)] for name, counts in kept.items()}
    assert means["head"] == pytest.approx([4.0, 2.0], abs=0.5) and means["probability"][0] == 4.0
    assert means["probability"][1] == pytest.approx(1.0, abs=0.35)


def test_refuses_what_cannot_work() -> None:
    for at, keep in ((0, 0.5), (4, 0.0), (4, 1.5)):
        with pytest.raises(ConfigurationError, match="PrunedAtRandom needs"):
            PrunedAtRandom(at, keep)
