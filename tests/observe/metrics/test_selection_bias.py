"""Selection bias by hand-made ledgers: shares, distances, and a warning only when it is large and not chance."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from strop.observe.metrics.selection_bias import distance, is_beyond_chance, selection_of
from strop.observe.report.write_report import render
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Group, Message, Outcome, Rollout, Task, Turn
from tests.observe.folders import run_folder


def turn(num_tokens: int) -> Turn:
    return Turn(
        np.array([1]), np.arange(num_tokens), np.zeros(num_tokens, np.float32), np.zeros(num_tokens, np.int64),
        Message("assistant", "4"),
    )  # fmt: skip


def book(path: Path, groups: list[tuple[str, int, bool, list[int]]]) -> Ledger:
    """A ledger of groups: source, level, whether trained, and the lengths of its rollouts."""
    ledger, trained = Ledger(path), list[Group]()
    for number, (source, level, is_trained, lengths) in enumerate(groups):
        task = Task((Message("user", str(number)),), "4", source, level)
        rollouts = [
            Rollout(f"{number}/{i}", task, (turn(length),), Outcome.FINISHED) for i, length in enumerate(lengths)
        ]
        group = Group(number, task, rollouts)
        ledger.admitted(number, task, 0)
        if lengths:
            ledger.finished(group, group if is_trained else None, "" if is_trained else "all equal", 0)
        trained += [group] if is_trained else []
    ledger.trained(trained, 1)
    return ledger


def test_shares_and_distances_by_hand(tmp_path: Path) -> None:
    groups = [("a", 1, True, [2, 4]), ("a", 1, True, [6]), ("a", 2, False, [8]), ("b", 1, False, [])]
    found = selection_of(book(tmp_path / "ledger.db", groups).offered())
    assert (found.offered, found.trained) == (4, 2)
    assert found.source_distance == pytest.approx(0.25) and found.level_distance == pytest.approx(0.5)
    assert found.tokens_offered == pytest.approx((3 + 6 + 8) / 3) and found.tokens_trained == pytest.approx(4.5)
    assert [(s.name, s.offered, s.trained) for s in found.levels] == [
        ("a level 1", 2, 2),
        ("a level 2", 1, 0),
        ("b level 1", 1, 0),
    ]
    assert found.warnings == (), "four groups prove nothing"
    assert json.loads(json.dumps(found.plain()))["level_distance"] == pytest.approx(0.5)


def test_a_gate_that_leaves_out_a_level_is_warned_of(tmp_path: Path) -> None:
    groups = [("a", number % 2, number % 2 == 0 or number % 4 == 1, [10, 12]) for number in range(200)]
    found = selection_of(book(tmp_path / "ledger.db", groups).offered())
    assert found.level_distance == pytest.approx(abs(100 / 150 - 0.5)) and found.source_distance == 0
    (warning,) = found.warnings
    assert "by level: 17% of them" in warning and "is 50% of what was offered" in warning


def test_shorter_rollouts_are_warned_of(tmp_path: Path) -> None:
    groups = [("a", 1, number % 3 > 0, [10 + number % 5 + 20 * (number % 3 == 0)]) for number in range(90)]
    found = selection_of(book(tmp_path / "ledger.db", groups).offered())
    assert any(
        "trained rollouts are" in warning and "shorter than offered ones" in warning for warning in found.warnings
    )


def test_probability_is_not_warned_of(tmp_path: Path) -> None:
    """Leaving out at random: the warning rate is the level of the tests, not the rule."""
    stream, warned = np.random.default_rng(0), 0
    for trial in range(30):
        kept = stream.random(60) < 0.6
        groups = [("a", n % 3, bool(kept[n]), [int(stream.integers(5, 50))]) for n in range(60)]
        warned += bool(selection_of(book(tmp_path / f"{trial}.db", groups).offered()).warnings)
    assert warned <= 2


def test_the_chi_square_at_its_limit() -> None:
    """One degree of freedom: the 1% value is 6.63. Of 100 and 100 offered, a and b trained: (a - b)^2 * 2 / ..."""
    offered = Counter({"x": 100, "y": 100})
    for trained, statistic in ((Counter({"x": 59, "y": 41}), 6.48), (Counter({"x": 60, "y": 40}), 8.0)):
        expected = sum((n - 50) ** 2 / 50 for count in trained.values() for n in (count, 100 - count))
        assert expected == pytest.approx(statistic)
        assert is_beyond_chance(offered, trained) == (statistic > 6.63)
    assert not is_beyond_chance(offered, Counter(offered)) and not is_beyond_chance(
        Counter({"x": 9}), Counter({"x": 4})
    )
    assert distance({"x": 1}, {}) == 0.0


def test_the_report_shows_it(tmp_path: Path) -> None:
    page = render(run_folder(tmp_path / "run"))
    assert "Which tasks were trained" in page and "arithmetic level 4" in page
    assert "Of 120 groups" in page
    empty = RunFolder(tmp_path / "empty")
    empty.path.mkdir()
    empty.recipe.write_text("run = Run(recipe='mine')\n")
    assert "Which tasks were trained" not in render(empty)
