"""`strop compare` (strop.cli.compare): equal tokens, intervals over seeds, a page that needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from strop.cli.compare import compare, over_seeds, plan_of
from strop.errors import ConfigurationError
from strop.observe.overlay import interval
from tests.models import save_pocket_like

FIELDS = ["groups_per_step=2", "group_size=4", "max_tokens=8", "heldout_tasks=4", "heldout_every=2"]


def test_two_recipes_over_two_seeds(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    words = ["grpo", "rloo", f"model={model}", *FIELDS]
    summary = compare(words, seeds=2, tokens=300, jobs=1, root=tmp_path, name="both")
    assert list(summary["recipes"]) == ["grpo", "rloo"]
    for found in summary["recipes"].values():
        assert len(found["by_seed"]) == 2 and all(tokens >= 300 for tokens in found["tokens_generated"])
    assert summary["recipes"]["grpo"]["against_first"] is None
    assert json.loads((tmp_path / "both" / "summary.json").read_text()) == summary
    page = (tmp_path / "both" / "compare.html").read_text()
    assert page.count("<svg") == 4 and page.count('class="band"') == 8
    assert not re.search(r'(src|href)="(?!data:)', page) and "<script" not in page
    with pytest.raises(ConfigurationError, match="holds a comparison already"):
        plan_of(words, 2, 300, tmp_path, "both")


def test_mistakes_show_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 2 different recipes, got grpo"):
        plan_of(["grpo", "world=guess:1"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="rloo"):
        plan_of(["grpo", "rlooo"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="clip"):
        plan_of(["grpo", "rloo", "clipp=1"], 1, 100, tmp_path, "")
    assert not list(tmp_path.iterdir())


def test_intervals() -> None:
    """Student with 2 degrees of freedom: 4.303 * .1 / sqrt(3)."""
    mean, low, high = over_seeds([0.4, 0.5, 0.6])
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - 4.303 * 0.1 / 3**0.5, 0.5 + 4.303 * 0.1 / 3**0.5))
    assert over_seeds([0.4]) == (0.4, None, None)
    assert interval((0.5, 0.25, 0.75)) == "50.0% (25.0 to 75.0)" and interval((0.1, None, None), True) == "+10.0%"
