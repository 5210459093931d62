"""What a record says after `Acts:`, read and held against figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.catalogue.acts import Acts, Figure, read_acts
from strop.catalogue.record import read_record
from strop.errors import ConfigurationError


def test_figures_and_fields_are_read() -> None:
    found = read_acts("reward/overlong < 0 and ratio != 1 and drift > 1e-3 with every=1, world=guess:2")
    assert found.figures == (
        Figure("reward/overlong", "<", 0.0),
        Figure("ratio", "!=", 1.0),
        Figure("drift", ">", 0.001),
    )
    assert found.fields == {"every": "1", "world": "guess:2"}
    assert str(found.figures[2]) == "drift > 0.001"
    assert read_acts("credit > 0").fields == {}


@pytest.mark.parametrize("text", ["", "credit", "credit >= 0", "credit > none", "credit > 0 or lag > 0"])
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
    figure = Figure("share", comparison, 0.0)
    assert figure.has_moved([{"share": value} for value in values]) is has_moved


def test_a_figure_that_is_missing_is_at_rest() -> None:
    acts = Acts((Figure("a", ">", 0.0), Figure("b", ">", 0.0), Figure("c", ">", 0.0)), {})
    assert acts.at_rest([{"a": 1.0, "c": None}, {"a": 0.0}]) == [acts.figures[1], acts.figures[2]]


def test_it_is_part_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "some" / "recipe.py"
    path.parent.mkdir()
    path.write_text('"""What it does.\n\nTitle: A\nActs: kept_share < 1\n    with tasks=2\n"""\n')
    assert read_record(path).acts == "kept_share < 1 with tasks=2"
