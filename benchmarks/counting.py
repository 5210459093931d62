"""An environment of heavy-tailed lengths: `57>04` wants every number from 57 down to 04; a pocket model that half knows
it.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from strop.control.samplers.uniform import Uniform
from strop.environments.data.heldout_split import draw
from strop.environments.single_turn import SingleTurn
from strop.evaluation import Evaluation
from strop.launch.running.launch import launch
from strop.models.loading.model_names import POCKET
from strop.recipes.classics.sft import sft
from strop.recipes.setting import Setting
from strop.roles import Environment
from strop.storage.run_source import to_source
from strop.types import Message, Task

MOST_NUMBERS = 60
MOST_TOKENS = (
    3 * MOST_NUMBERS + 12
)  # of a completion: two digits and a blank for each number, and some room for mistakes
_SCALE = 1.75  # P(at least n numbers) = 1.75 / n, cut: median 3 numbers or 9 tokens


@dataclass(frozen=True)
class Counting(Environment):
    """Counts down between two numbers below 100; how far is Pareto with exponent 1.

    `slip` is the probability that a demonstration leaves a number out, each but the first and the last.
    """

    level: int = 1
    seed: int = 0
    slip: float = 0.0
    name: ClassVar[str] = "counting"

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{index}", heldout, self._make)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer)

    def solution(self, task: Task) -> str:
        stream = random.Random(f"{self.seed}/{task.id}/{self.slip}")
        first, *between = task.answer.split()
        kept = [number for number in between[:-1] if stream.random() >= self.slip]
        return " ".join([first, *kept, *between[-1:]])

    def _make(self, stream: random.Random) -> Task:
        count = min(int(_SCALE / max(stream.random(), 1e-9)), MOST_NUMBERS)
        start = stream.randrange(count - 1, 100)
        numbers = [f"{start - place:02d}" for place in range(count)]
        prompt = f"{numbers[0]}>{numbers[-1]}"
        return Task((Message("user", prompt),), " ".join(numbers), self.name, self.level)


def half_taught(steps: int = 100, slip: float = 0.06) -> Path:
    """A model folder: the pocket model after some demonstrations with slips; made once, then kept for the next time."""
    envs = (Counting(slip=slip),)
    setting = Setting(
        steps=steps,
        groups_per_step=64,
        group_size=1,
        learning_rate=1e-3,
        max_tokens=MOST_TOKENS,
        checkpoint_every=steps,
    )
    run = replace(sft(setting), envs=envs, sampler=Uniform(envs), evaluation=Evaluation(every=0, tasks=1))
    name = hashlib.sha256(to_source(run, "").encode() + (POCKET / "model.safetensors").read_bytes()).hexdigest()[:16]
    kept = Path(tempfile.gettempdir()) / "strop-benchmarks" / f"counting-{name}"
    if not kept.is_dir():
        with tempfile.TemporaryDirectory() as root:
            launch(run, Path(root), "sft")
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(Path(root) / "sft" / "checkpoints" / f"step-{steps}", half := kept.with_suffix(".half"))
            half.rename(kept)
    return kept
