"""The outermost settings that samplers take, and the first ones beyond, which they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strop.control.samplers.alp_gmm import LearningProgress
from strop.control.samplers.few import Few
from strop.control.samplers.fixed_mixture import Mixture
from strop.control.samplers.learnability import Learnability
from strop.control.samplers.nearest_to_target import Nearest
from strop.control.samplers.prioritized_level_replay import LevelReplay
from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.acereason_nemotron import Unsolved
from strop.recipes.select.adcl_egsr import Resorted
from strop.recipes.select.cures import VarianceWeighted
from strop.recipes.select.dots_rr import NearTarget
from strop.recipes.select.dps import Dynamics
from strop.recipes.select.drive import Hardest
from strop.recipes.select.dump import UpperConfidence
from strop.recipes.select.gain_rl import AngleRanked
from strop.recipes.select.qwenlong_l1 import LengthPhases
from strop.recipes.select.rag_rl import Scheduled
from strop.recipes.select.sec import LevelBandit
from strop.recipes.select.vade import Thompson

ENVS = (Arithmetic(1), Arithmetic(2))
INNER = Uniform(ENVS)
LITTLE = 1e-3
TAKEN: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (AngleRanked, {"spread": LITTLE, "stride": 0.0, "most": 0.0, "tasks": 1}),
    (Dynamics, {"keep": 0.0, "tasks": 1}),
    (Dynamics, {"keep": 1.0}),
    (Few, {"count": 1}),
    (Hardest, {"size": 4, "sizes": (2, 1), "steps": (1,)}),
    (Learnability, {"kept": 1, "others": 0.0}),
    (Learnability, {"others": 1.0}),
    (LearningProgress, {"window": 2, "others": 0.0}),
    (LearningProgress, {"others": 1.0}),
    (LengthPhases, {"caps": (5, 9), "steps": (1,), "carried": 0.0, "most": 0.0}),
    (LengthPhases, {"caps": (5,), "steps": (), "carried": 0.999, "most": 1.0}),
    (LevelBandit, {"rate": LITTLE, "temperature": LITTLE}),
    (LevelBandit, {"rate": 1.0}),
    (LevelReplay, {"softness": LITTLE, "stale": 0.0, "start": LITTLE}),
    (LevelReplay, {"stale": 1.0, "start": 1.0}),
    (Mixture, {"weights": (0.0, LITTLE)}),
    (NearTarget, {"pool": 1, "count": 1, "uniform": 0, "target": 0.0, "temperature": LITTLE / 2, "every": 1}),
    (NearTarget, {"pool": 1, "count": 2, "uniform": 1, "target": 1.0}),
    (Nearest, {"count": 1, "candidates": 1, "target": 0.0, "pool": 0}),
    (Nearest, {"target": 1.0, "pool": 1}),
    (Resorted, {"size": 2, "batches": 1}),
    (Resorted, {"size": 2, "batches": 4}),
    (Scheduled, {"length": 1}),
    (Thompson, {"power": 0.0, "tasks": 1}),
    (UpperConfidence, {"window": 1, "temperature": LITTLE}),
    (VarianceWeighted, {"temperature": LITTLE, "tasks": 1}),
]
REFUSED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (AngleRanked, {"spread": 0.0}),
    (AngleRanked, {"stride": -LITTLE}),
    (AngleRanked, {"most": -LITTLE}),
    (Dynamics, {"keep": -LITTLE}),
    (Dynamics, {"keep": 1 + LITTLE}),
    (Few, {"count": 0}),
    (Hardest, {"size": 4, "sizes": (2, 1), "steps": (0,)}),
    (Learnability, {"kept": 0}),
    (Learnability, {"others": 1 + LITTLE}),
    (LearningProgress, {"window": 1}),
    (LearningProgress, {"others": 1 + LITTLE}),
    (LengthPhases, {"caps": (5, 9), "steps": (0,)}),
    (LengthPhases, {"caps": (5,), "steps": (), "carried": 1.0}),
    (LengthPhases, {"caps": (5,), "steps": (), "most": 1 + LITTLE}),
    (LevelBandit, {"rate": 0.0}),
    (LevelBandit, {"rate": 1 + LITTLE}),
    (LevelBandit, {"temperature": 0.0}),
    (LevelReplay, {"softness": 0.0}),
    (LevelReplay, {"stale": 1 + LITTLE}),
    (LevelReplay, {"start": 0.0}),
    (LevelReplay, {"start": 1 + LITTLE}),
    (Mixture, {"weights": (1.0, -LITTLE)}),
    (Mixture, {"weights": (0.0, 0.0)}),
    (NearTarget, {"uniform": -1}),
    (NearTarget, {"pool": 1, "count": 3, "uniform": 0}),
    (NearTarget, {"count": 4, "uniform": 4}),
    (NearTarget, {"target": -LITTLE}),
    (NearTarget, {"target": 1 + LITTLE}),
    (NearTarget, {"temperature": 0.0}),
    (NearTarget, {"every": 0}),
    (Nearest, {"count": 0}),
    (Nearest, {"candidates": 0}),
    (Nearest, {"pool": -1}),
    (Nearest, {"target": -LITTLE}),
    (Nearest, {"target": 1 + LITTLE}),
    (Resorted, {"size": 2, "batches": 0}),
    (Resorted, {"size": 2, "batches": 5}),
    (Scheduled, {"length": 0}),
    (Thompson, {"power": -LITTLE}),
    (UpperConfidence, {"window": 0}),
    (UpperConfidence, {"temperature": 0.0}),
    (VarianceWeighted, {"temperature": 0.0}),
]
AROUND: list[tuple[Callable[..., Any], dict[str, Any], bool]] = [
    (Unsolved, {"most": 0.0}, True),
    (Unsolved, {"most": 1.0}, True),
    (Unsolved, {"most": -LITTLE}, False),
    (Unsolved, {"most": 1 + LITTLE}, False),
    (WithWritten, {"share": LITTLE, "band": (0.0, 0.0)}, True),
    (WithWritten, {"share": 1.0, "band": (1.0, 1.0)}, True),
    (WithWritten, {"share": 0.0}, False),
    (WithWritten, {"share": 1 + LITTLE}, False),
    (WithWritten, {"band": (-LITTLE, 1.0)}, False),
    (WithWritten, {"band": (0.0, 1 + LITTLE)}, False),
    (WithWritten, {"band": (0.5, 0.4)}, False),
]


@pytest.mark.parametrize(("kind", "settings"), TAKEN)
def test_taken(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    kind(ENVS, **settings)


@pytest.mark.parametrize(("kind", "settings"), REFUSED)
def test_refused(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="need"):
        kind(ENVS, **settings)


@pytest.mark.parametrize(("kind", "settings", "is_taken"), AROUND)
def test_those_around_another_sampler(kind: Callable[..., Any], settings: dict[str, Any], is_taken: bool) -> None:
    if is_taken:
        kind(INNER, **settings)
        return
    with pytest.raises(ConfigurationError, match="needs"):
        kind(INNER, **settings)


def test_stages_of_one_step() -> None:
    assert Staged((INNER, INNER), (1,)).next(0, None) is not None  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        Staged((INNER, INNER), (0,))
