"""Steps of worked text: cut at sentences, lines and LaTeX, never within a number, an abbreviation or a formula."""

from __future__ import annotations

import time

import pytest

from strop.text.steps import steps_of


def cut(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in steps_of(text)]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("He has 3.5 kg. He eats 1.25 kg.", ["He has 3.5 kg.", "He eats 1.25 kg."]),
        ("Dr. Smith, i.e. J. Doe, pays $5 and then $3. Then he has $2.", 2),
        ("In 2020. Then it is 5 p.m. on Monday. So it ends.", 3),
        ("1. Add 3 and 5.\n2. Halve it. That is 4.", ["1. Add 3 and 5.", "2. Halve it.", "That is 4."]),
        ("Step 1: Multiply.\nStep 2: Add.", 2),
        ("Let A be a point. Let point B. Then C follows.", 3),
        ("Is $x = 3. Y$ right? Yes! It is.", ["Is $x = 3. Y$ right?", "Yes!", "It is."]),
        ("So\n\\[a + b = 2.\\]\nHence b.", ["So", "\\[a + b = 2.\\]", "Hence b."]),
        ("\\begin{align*}\nx &= 1 \\\\\ny &= 2\n\\end{align*}", 2),
        ("$A = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}$. Done it is.", 2),
        ("Look:\n```python\nx = 1. # A. B\n\ny = 2\n```\nIt works.", 3),
        ("我们有三个苹果。加上四个是七个。", ["我们有三个苹果。", "加上四个是七个。"]),
        ("x = 3\ny = 4", ["x = 3", "y = 4"]),
        ("This line is long enough to have been wrapped by an editor, as some\nare, and goes on here.", 1),
        ("We find:\nx = 2", 1),
        ("", 0),
    ],
)
def test_texts_are_cut_where_a_reader_would(text: str, steps: list[str] | int) -> None:
    found = cut(text)
    assert len(found) == steps if isinstance(steps, int) else found == steps
    assert "".join("".join(found).split()) == "".join(text.split()), "nothing gets lost"


@pytest.mark.parametrize(
    "text", ["\\[ " * 3000, "\\begin{a}" * 2000, "$$ x" * 3000, "A. " * 5000, "```" * 3001, "$a$ " * 3000]
)
def test_what_a_model_may_write_is_cut_quickly(text: str) -> None:
    begin = time.perf_counter()
    steps_of(text)
    assert time.perf_counter() - begin < 3
