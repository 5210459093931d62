"""What a record says after `Acts:`, read and held against metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.catalogue.acts import Acts, Metric, read_acts
from strop.catalogue.record import read_record
from strop.errors import ConfigurationError


def test_metrics_and_fields_are_read() -> None:
    found = read_acts("reward/overlong < 0 and ratio != 1 and drift > 1e-3 with every=1, env=guess:2")
    assert found.metrics == (
        Metric("reward/overlong", "<", 0.0),
        Metric("ratio", "!=", 1.0),
        Metric("drift", ">", 0.001),
    )
    assert found.fields == {"every": "1", "env": "guess:2"}
    assert str(found.metrics[2]) == "drift > 0.001"
    assert read_acts("advantage > 0").fields == {}


@pytest.mark.parametrize("text", ["", "advantage", "advantage >= 0", "advantage > none", "advantage > 0 or lag > 0"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="Acts"):
        read_acts(text)


@pytest.mark.parametrize(
    ("comparison", "values", "has_moved"),
    [
        (">", [0.0, 0.2], True),
        (">", [0.0, -0.2], False),
        ("<", [0.0, -0.2], True),
        ("<", [0.2], False),
        ("!=", [0.0, -0.2], True),
        ("!=", [0.0, 5e-7], False),
        (">", [5e-7], False),
        (">", [], False),
    ],
)
def test_one_step_is_enough_and_rounding_is_not(comparison: str, values: list[float], has_moved: bool) -> None:
    metric = Metric("share", comparison, 0.0)
    assert metric.has_moved([{"share": value} for value in values]) is has_moved


def test_a_metric_that_is_missing_is_at_rest() -> None:
    acts = Acts((Metric("a", ">", 0.0), Metric("b", ">", 0.0), Metric("c", ">", 0.0)), {})
    assert acts.at_rest([{"a": 1.0, "c": None}, {"a": 0.0}]) == [acts.metrics[1], acts.metrics[2]]


def test_it_is_part_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "some" / "recipe.py"
    path.parent.mkdir()
    path.write_text('"""What it does.\n\nTitle: A\nActs: kept_share < 1\n    with tasks=2\n"""\n')
    assert read_record(path).acts == "kept_share < 1 with tasks=2"
