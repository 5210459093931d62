"""The matrix of recipes in ten situations of a user: what is stored is true, and no defect is added.

`make use` runs a few cells again, and then all that are not known.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from strop.catalogue.record import records
from tests.use.cells import ACTS, RED, REFUSED, Cell
from tests.use.matrix import Key, every_cell, played, read_results, with_signs, write_results
from tests.use.page import PAGE, page_of

DEFECTS = 21  # it may only fall
UNKNOWN = 0  # cells that were never run
SAMPLE = 8


def test_every_recipe_has_a_cell_in_every_situation() -> None:
    found, asked = read_results(), set(every_cell())
    assert found.keys() <= asked, f"no recipe any more: {sorted(found.keys() - asked)}; run make use"
    assert len(asked - found.keys()) <= UNKNOWN, "run make use: it plays what is missing"


def test_defects_only_become_fewer() -> None:
    red = Counter(cell.verdict for cell in read_results().values() if cell.is_red)
    assert red.total() <= DEFECTS, f"{dict(red)}: mend them, then make use AGAIN=red"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page_of(read_results(), records()), "python -m tests.use.page"


def test_refusals_are_sentences() -> None:
    for key, cell in read_results().items():
        assert cell.verdict in (ACTS, REFUSED, *RED), key
        assert cell.verdict == ACTS or len(cell.said) >= 15, f"{key}: {cell}"
        assert not re.search(r"(?:^|[\s='\"(])/\w", cell.said), f"{key} names a place of one machine: {cell.said}"


def sample() -> list[Key]:
    """A few cells of all recipes and situations."""
    known = [key for key, cell in sorted(read_results().items()) if not cell.is_red and key[1] not in (2, 6)]
    return known[:: len(known) // SAMPLE][:SAMPLE]


@pytest.mark.use  # its models take two minutes to make
def test_cells_without_a_defect_have_none_still() -> None:
    """A recipe may refuse what it took before, and the other way round: then `make use AGAIN=all` says so."""
    again = with_signs({key: cell for key, cell, _ in played(sample(), 1)})
    assert not {key: cell for key, cell in again.items() if cell.is_red}


def test_a_wrong_sign_is_found(tmp_path: Path) -> None:
    cells = {("grpo", 1): Cell(ACTS, "", 1.5), ("grpo", 4): Cell(ACTS, "", -0.5), ("ppo", 4): Cell(ACTS, "", 0.5)}
    checked = with_signs(cells)
    assert checked["grpo", 4].verdict == "sign" and checked["ppo", 4].verdict == ACTS
    write_results(checked, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == checked
