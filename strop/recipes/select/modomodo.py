"""MoDoMoDo: GRPO on the mixture of environments that maximizes a quadratic model fitted to pilot runs.

Title: MoDoMoDo: Multi-Domain Data Mixtures for Multimodal LLM Reinforcement Learning
Paper: arXiv 2505.24871 (2025)
Claim: 5.24 % better on average outside of what was trained than an even mixture.
Reading: Pilots are runs of `strop train modomodo weights=...` with the same environments: each alone, all but one, all,
    and some between. A quadratic in the weights is fitted to their held-out accuracy over all environments, and
    training uses its maximum. The paper trains by GRPO on images; here by GRPO on what the bundled model can do. A
    finite environment starts again at its end, where the paper's run ends.
Left out: Pilots of several seeds, and outcomes outside the mixed environments.
Acts: uneven > 0
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strop.control.samplers.fixed_mixture import Mixture
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean

# The best mixture of environments from pilot runs (MoDoMoDo, 2505.24871): the maximum of a fitted quadratic.
#
# Reading: weights sum to 1, so the paper's constant and linear terms are quadratic ones, too. The m(m + 1) / 2
# coefficients of w'Qw are all parameters, and as many different pilots are needed. The paper finds the maximum by
# CMA-ES; here every face of the simplex is solved, which is exact and takes 2^m small systems.

_MOST_ENVS = 12  # 4095 faces of the simplex
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Pilot:
    """Mixture and held-out accuracy of a finished run."""

    envs: tuple[str, ...]
    weights: tuple[float, ...]
    score: float


@dataclass(frozen=True, eq=False)
class Surface:
    """Quadratic model score ~ w'Qw over mixtures w that sum to 1."""

    quadratic: NDArray[np.float64]  # [m, m], symmetric

    @classmethod
    def fitted(cls, pilots: Sequence[Pilot]) -> Surface:
        """Least squares over all pilots."""
        if len({pilot.envs for pilot in pilots}) != 1:
            raise ConfigurationError(f"need pilots of the same environments, got {sorted({p.envs for p in pilots})}")
        count = len(pilots[0].weights)
        pairs = list(combinations_with_replacement(range(count), 2))
        mixtures = np.array([_normed(pilot.weights) for pilot in pilots])  # [N, m]
        design = np.stack([mixtures[:, i] * mixtures[:, j] for i, j in pairs], axis=1)  # [N, m(m + 1) / 2]
        if (rank := int(np.linalg.matrix_rank(design))) < len(pairs):
            raise ConfigurationError(
                f"{count} environments need {len(pairs)} different mixtures, and the {len(pilots)} pilots have rank "
                f"{rank}: "
                "run each environment alone, all but one, all, and some between"
            )
        found = np.linalg.lstsq(design, np.array([pilot.score for pilot in pilots]), rcond=None)[0]
        quadratic = np.zeros((count, count))
        for (i, j), value in zip(pairs, found, strict=True):
            quadratic[i, j] += value / 2
            quadratic[j, i] += value / 2
        return cls(quadratic)

    def score(self, weights: Sequence[float]) -> float:
        mixture = _normed(weights)
        return float(mixture @ self.quadratic @ mixture)

    def best(self) -> tuple[float, ...]:
        """The maximum over the simplex, found as a stationary point of one of its faces (corners included)."""
        count = len(self.quadratic)
        if count > _MOST_ENVS:
            raise ConfigurationError(
                f"the best mixture can be found for at most {_MOST_ENVS} environments, got {count}"
            )
        faces = [list(face) for size in range(1, count + 1) for face in combinations(range(count), size)]
        found = [point for face in faces if (point := self._stationary(face)) is not None]
        return max(found, key=self.score)

    def _stationary(self, face: list[int]) -> tuple[float, ...] | None:
        """The point of equal slopes within a face; None if it is outside the face or not unique."""
        size = len(face)
        system = np.ones((size + 1, size + 1))
        system[:size, :size], system[size, size] = 2 * self.quadratic[np.ix_(face, face)], 0.0
        if np.linalg.matrix_rank(system) <= size:
            return None
        inside = np.linalg.solve(system, np.eye(size + 1)[size])[:size]
        if inside.min() < -_ROUNDING:
            return None
        weights = np.zeros(len(self.quadratic))
        weights[face] = inside.clip(0)
        return tuple(float(weight) for weight in weights)


def pilots_in(folder: Path) -> list[Pilot]:
    """The finished runs with a `Mixture` in a folder, scored by held-out accuracy over all their environments."""
    runs = [RunFolder(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
    found = [pilot for run in runs if run.summary.is_file() and (pilot := _pilot(run)) is not None]
    if not found:
        raise ConfigurationError(
            f"{folder} has no finished run of a mixture: make some with strop train modomodo weights=1,0,0 and others"
        )
    return found


def _pilot(folder: RunFolder) -> Pilot | None:
    summary, sampler = json.loads(folder.summary.read_text()), from_source(folder.recipe).sampler
    if not summary["is_complete"] or not isinstance(sampler, Mixture):
        return None
    envs = tuple(f"{env.name}:{env.level}" for env in sampler.envs)
    return Pilot(envs, sampler.weights, float(summary["heldout_after"]))


def _normed(weights: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(weights, dtype=np.float64)
    return np.asarray(values / values.sum())


def modomodo(
    setting: Setting = Setting(env="arithmetic:4+countdown:3+compose:1"),
    pilots: str = "",  # folder of the pilot runs; empty: use `weights`
    weights: tuple[float, ...] = (2.0, 1.0, 1.0),  # of the environments, in order, where there are no pilots
    kl: float = 0.04,  # weight of the KL penalty to the reference
) -> Run:
    """The best mixture by the model of the pilots, or `weights`."""
    run = setting.run("modomodo", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean(), by_category=True)
    chosen = Surface.fitted(pilots_in(Path(pilots))).best() if pilots else weights
    run.sampler = Mixture(run.envs, chosen, setting.seed)
    return run
