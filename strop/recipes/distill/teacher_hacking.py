"""Teacher hacking: distillation by forward KL to a teacher, while the distance to the teacher's own oracle is measured.

Title: On Teacher Hacking in Language Model Distillation
Paper: arXiv 2502.02671 (2025)
Claim: Distillation on a fixed set of answers hacks the teacher: its distance falls while that to the oracle rises;
    fresh answers or more prompts prevent it.
Reading: Distances are exact forward KLs at the tokens of each training batch before the step; the paper measures on
    held-out prompts. Fixed answers are the environments' own to a few tasks, repeated; fresh ones are sampled from the
    student at those tasks. The result is in hacking.json. The oracle has no gradient.
Left out: The teacher's own distillation from the oracle's answers (any run of strop makes one), answers sampled by the
    teacher, reverse and Jensen-Shannon distances.
Acts: forward_kl > 0 and golden/forward_kl > 0 with teacher=MODEL, oracle=MODEL
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError, nearest
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.roles import Agent, Loss
from strop.run import Run
from strop.storage.run_folder import RunFolder, read_rows
from strop.training.advantages.constant import Constant
from strop.training.batch import Batch, Output
from strop.training.losses.exact_kl import ExactKl
from strop.types import Metrics

# Power-law check (2502.02671): without hacking, distances fall as a power of the steps.


def power_law(steps: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """c and k of values = c * steps^-k, by least squares of their logarithms."""
    slope, height = np.polyfit(np.log(steps), np.log(values), 1)
    return float(np.exp(height)), float(-slope)


def departs(steps: Sequence[float], values: Sequence[float], early: float = 0.5, tolerance: float = 0.25) -> bool:
    """Whether the last value is off the power law of the first share `early` by more than a factor e^tolerance."""
    count = max(int(early * len(steps)), 2)
    if len(steps) <= count:
        return False
    scale, exponent = power_law(steps[:count], values[:count])
    return bool(abs(np.log(values[-1]) - np.log(scale * steps[-1] ** -exponent)) > tolerance)


def turned(proxy: Sequence[float], golden: Sequence[float], window: int) -> int | None:
    """Index of the golden minimum if it is `window` or more before the end and the proxy fell since; else None."""
    lowest = int(np.argmin(golden)) if len(golden) else 0
    is_behind = len(golden) - 1 - lowest >= window
    return lowest if is_behind and proxy[-1] < proxy[lowest] else None


# The result of a distillation, hacking.json (2502.02671).
#
# A student hacks its teacher if its distance to the teacher still falls while its distance to the oracle rises.
# Reading: distances are those of each batch before it is trained on, averaged over `window` steps.

_BEHIND = 3  # points after the golden minimum; with 10, no run of 100 steps could be detected


@dataclass
class HackingReport:
    """Tracker that writes hacking.json at the end, from the run's metrics file, so that it covers resumed runs."""

    proxy: str  # metric of the distance to the teacher
    golden: str  # metric of the distance to the oracle
    window: int = 10  # steps per point; hacking needs a golden minimum 3 points before the last
    _folder: Path | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigurationError(f"HackingReport needs window >= 1, got {self.window}")

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        pass  # `end` reads all steps

    def end(self) -> None:
        assert self._folder is not None
        rows = [row for row in read_rows(RunFolder(self._folder).metrics) if self.proxy in row and self.golden in row]
        if rows:
            (self._folder / "hacking.json").write_text(json.dumps(self.judged(rows), indent=1) + "\n")

    def judged(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The content of hacking.json."""
        points = [rows[first : first + self.window] for first in range(0, len(rows), self.window)]
        steps = [float(point[-1]["step"]) for point in points]
        proxy, golden = ([float(np.mean([row[n] for row in p])) for p in points] for n in (self.proxy, self.golden))
        lowest = turned(proxy, golden, _BEHIND)
        is_lawful = min(proxy) > 0 and not departs(steps, proxy)
        return {
            "is_hacked": lowest is not None,
            "golden_minimum_at": None if lowest is None else int(steps[lowest]),
            "proxy_follows_a_power_law": is_lawful,
            "proxy": proxy[-1],
            "golden": golden[-1],
        }


# The golden measure (2502.02671): a loss that only reports metrics.


@dataclass(frozen=True)
class MetricsOnly(Loss):
    """Loss of 0 without a gradient, with the metrics of `inner` under `name/`."""

    inner: Loss
    name: str = "watched"  # prefix of its metrics

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigurationError("MetricsOnly needs a name, or its metrics would replace those of a loss")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        with torch.no_grad():
            _, metrics = self.inner(output, batch)
        return torch.zeros_like(output.logprobs), {f"{self.name}/{name}": value for name, value in metrics.items()}


_ANSWERS: dict[str, Agent] = {"fixed": Demonstrate(least=1.0), "fresh": Chat()}


def teacher_hacking(
    setting: Setting = Setting(group_size=1, groups_per_step=32, learning_rate=3e-4),
    *,
    teacher: str,  # folder of the teacher, with the same vocabulary
    oracle: str,  # folder of the oracle that the teacher approximates, with the same vocabulary
    answers: str = "fixed",  # fixed: the environments' own answers, repeated; fresh: the student's
    tasks: int = OfEndless(64),  # tasks of each environment, repeated; all of a table
) -> Run:
    """Distillation with the metrics `forward_kl` (proxy) and `golden/forward_kl`."""
    if answers not in _ANSWERS:
        raise ConfigurationError(f"teacher_hacking has no answers={answers!r}: {nearest(answers, _ANSWERS)}")
    proxy = ExactKl("forward", named_model("teacher", teacher), weight=1.0)
    golden = MetricsOnly(ExactKl("forward", named_model("oracle", oracle)), "golden")
    run = setting.run("teacher_hacking", Constant(), (proxy, golden), agent=_ANSWERS[answers])
    return replace(
        run,
        sampler=Few(run.envs, covering(run.envs, tasks)),
        trackers=(HackingReport("forward_kl", "golden/forward_kl"),),
    )
