"""The outermost settings that budgets take, and the first ones beyond, which they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strop.control.budgets.fixed import Fixed
from strop.control.budgets.waves import AgainWhenLost
from strop.errors import ConfigurationError
from strop.recipes.rollout.brorl import Broadened
from strop.recipes.select.cures import ByDeviation
from strop.recipes.select.dars import Rebalanced
from strop.recipes.select.gdro import ShadowPrice
from strop.recipes.select.xrpo import UncertaintyReduction
from strop.recipes.system.dart import BySuccess
from strop.recipes.value.v0 import ByUtility
from strop.recipes.value.v0_5 import WhileRiskFalls

LITTLE = 1e-3
TAKEN: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (AgainWhenLost, {"size": 1, "more": 1}),
    (Broadened, {"size": 1, "broad": 1, "after": 0}),
    (ByDeviation, {"least": 1, "mean": 1 + LITTLE, "most": 2}),
    (BySuccess, {"size": 1, "least": 1, "easy": LITTLE}),
    (BySuccess, {"easy": 1.0}),
    (ByUtility, {"least": 1, "mean": 1 + LITTLE, "most": 2}),
    (Fixed, {"size": 1}),
    (Rebalanced, {"size": 2, "most": 2}),
    (ShadowPrice, {"least": 2, "mean": 2 + LITTLE, "most": 3, "bins": 1, "tries": 1, "rate": 1.0}),
    (ShadowPrice, {"rate": LITTLE}),
    (UncertaintyReduction, {"first": 2, "mean": 2 + LITTLE, "most": 3, "chunk": 1, "explore": 0.0, "tasks": 1}),
    (WhileRiskFalls, {"first": 2, "most": 2, "cost": 1e-9}),
]
REFUSED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (AgainWhenLost, {"size": 0}),
    (AgainWhenLost, {"more": -1}),
    (Broadened, {"size": 0}),
    (Broadened, {"size": 3, "broad": 2}),
    (Broadened, {"after": -1}),
    (ByDeviation, {"least": 0}),
    (ByDeviation, {"least": 8}),
    (ByDeviation, {"most": 8}),
    (BySuccess, {"least": 0}),
    (BySuccess, {"size": 4, "least": 5}),
    (BySuccess, {"easy": 0.0}),
    (BySuccess, {"easy": 1 + LITTLE}),
    (ByUtility, {"least": 0}),
    (ByUtility, {"least": 8}),
    (ByUtility, {"most": 8}),
    (Fixed, {"size": 0}),
    (Rebalanced, {"size": 1}),
    (Rebalanced, {"size": 3, "most": 2}),
    (ShadowPrice, {"least": 1}),
    (ShadowPrice, {"least": 4}),
    (ShadowPrice, {"most": 4}),
    (ShadowPrice, {"bins": 0}),
    (ShadowPrice, {"tries": 0}),
    (ShadowPrice, {"rate": 0.0}),
    (ShadowPrice, {"rate": 1 + LITTLE}),
    (UncertaintyReduction, {"first": 1}),
    (UncertaintyReduction, {"first": 8}),
    (UncertaintyReduction, {"most": 8}),
    (UncertaintyReduction, {"chunk": 0}),
    (UncertaintyReduction, {"explore": -LITTLE}),
    (UncertaintyReduction, {"tasks": 0}),
    (WhileRiskFalls, {"first": 1}),
    (WhileRiskFalls, {"first": 3, "most": 2}),
    (WhileRiskFalls, {"cost": 0.0}),
]


@pytest.mark.parametrize(("kind", "settings"), TAKEN)
def test_taken(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    kind(**settings)


@pytest.mark.parametrize(("kind", "settings"), REFUSED)
def test_refused(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="need"):
        kind(**settings)
