"""The outermost settings that task generators take, and the first ones beyond, which they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strop.errors import ConfigurationError
from strop.recipes.agent.webrl import FromFailed
from strop.recipes.select.clpo import Reworded
from strop.recipes.select.eva import Evolved
from strop.recipes.select.serl import SelfInstruct
from strop.recipes.select.socratic_zero import FromFailures
from strop.recipes.select.sws import Weaknesses
from strop.recipes.select.teams_rl import Operations

LITTLE = 1e-3
TAKEN: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (Evolved, {"deeper": 0.0}),
    (Evolved, {"deeper": 1.0}),
    (FromFailed, {"tasks": 1}),
    (FromFailures, {"questions": 1, "target": 0.0, "width": LITTLE}),
    (FromFailures, {"target": 1.0}),
    (Operations, {"rate": LITTLE}),
    (Reworded, {"hard": 0.0, "medium": 0.0}),
    (Reworded, {"hard": 1.0, "medium": 1.0}),
    (SelfInstruct, {"fewest": 1, "overlap": 0.0}),
    (SelfInstruct, {"overlap": 1.0}),
    (Weaknesses, {"visits": 2, "exercises": 1, "votes": 1, "probes": 1}),
]
REFUSED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (Evolved, {"deeper": -LITTLE}),
    (Evolved, {"deeper": 1 + LITTLE}),
    (FromFailed, {"tasks": 0}),
    (FromFailures, {"questions": 0}),
    (FromFailures, {"target": -LITTLE}),
    (FromFailures, {"target": 1 + LITTLE}),
    (FromFailures, {"width": 0.0}),
    (Operations, {"rate": 0.0}),
    (Reworded, {"hard": -LITTLE}),
    (Reworded, {"hard": 0.5, "medium": 0.4}),
    (Reworded, {"medium": 1 + LITTLE}),
    (SelfInstruct, {"fewest": 0}),
    (SelfInstruct, {"overlap": -LITTLE}),
    (SelfInstruct, {"overlap": 1 + LITTLE}),
    (Weaknesses, {"visits": 1}),
    (Weaknesses, {"exercises": 0}),
    (Weaknesses, {"votes": 0}),
    (Weaknesses, {"probes": 0}),
]


@pytest.mark.parametrize(("kind", "settings"), TAKEN)
def test_taken(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    kind(**settings)


@pytest.mark.parametrize(("kind", "settings"), REFUSED)
def test_refused(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="needs"):
        kind(**settings)
