"""Distributed trainer with one process per rank: FSDP2 on torch.distributed, gloo on CPUs and nccl on GPUs.

Each rank is a local process that holds a slice of the weights and of the optimizer's moments (ZeRO, Rajbhandari et al.
2020). A batch is split by tokens and gradients are summed, so a step equals that of one rank up to rounding;
checkpoints are those of one rank, and each can resume from the other's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from safetensors.torch import load_file
from torch import Tensor

from strop.backends import Objective
from strop.errors import ConfigurationError
from strop.models.optimizers.low_memory_adamw import FLOAT32
from strop.roles import Trainer
from strop.training.batch import Batch
from strop.training.machine.batch_transfer import write_batches
from strop.training.machine.rank_processes import Crew
from strop.training.machine.step_totals import refusal
from strop.training.objective import Objective as StepObjective
from strop.training.policy_stats import statistics_needed
from strop.training.requirements import Logprobs, Need, PolicyStatistic, listed
from strop.training.split_batch import BatchPart, split
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics
from strop.workers.pickled_parts import packed

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class Ranks(Trainer):
    """Data-parallel trainer; `inner` configures each rank, and its `max_tokens` are those of one rank, to within a
    rollout.
    """

    fills: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal")})
    sends: ClassVar[bool] = True

    inner: TorchTrainer = field(default_factory=TorchTrainer)
    ranks: int = 2
    seconds: float = (
        600.0  # seconds without an answer, or in one exchange between ranks, after which they count as hung
    )

    _crew: Crew | None = field(default=None, init=False, repr=False, compare=False)
    _names: Iterator[int] = field(default_factory=itertools.count, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ConfigurationError(f"Ranks needs ranks >= 1, got {self.ranks}")
        if self.inner.device not in ("cpu", "cuda"):  # each rank has a device of its own
            raise ConfigurationError(f'Ranks needs a device of "cpu" or "cuda", got {self.inner.device!r}')
        if self.inner.snapshots or self.inner.average_window:
            raise ConfigurationError(
                f"Ranks keeps no earlier weights: set snapshots=0 and average_window=0, got {self.inner.snapshots} "
                f"and {self.inner.average_window}"
            )
        if self.inner.lora:
            raise ConfigurationError(f"Ranks trains full weights: set lora=0, got {self.inner.lora}")
        if self.inner.matmul_precision != "plain":
            raise ConfigurationError(
                f'Ranks multiplies in full precision: set matmul_precision="plain", got {self.inner.matmul_precision!r}'
            )
        if self.inner.bytes_per_weight not in (0, FLOAT32):
            raise ConfigurationError(
                f"Ranks holds weights in float32, sharded over its ranks: set bytes_per_weight={FLOAT32}, or 0, got "
                f"{self.inner.bytes_per_weight}"
            )

    def problems(self, run: Run) -> list[str]:
        """Policy statistics need a trainer of one rank."""
        asked = statistics_needed(run)
        return [f"Ranks records no policy statistics, and {listed(asked)} are needed: set ranks=1"] if asked else []

    @property
    def max_tokens(self) -> int:
        """Tokens of one forward pass on all ranks together."""
        return self.inner.max_tokens * self.ranks

    def open(self, model: Path, seed: int) -> None:
        if self.inner.device == "cuda" and self.ranks > torch.cuda.device_count():
            raise ConfigurationError(f"{self.ranks} ranks need {self.ranks} GPUs, found {torch.cuda.device_count()}")
        if self._crew is None or not self._crew.is_alive:
            # weights pass through shared memory in one piece, while the previous piece may still be in use
            room = 3 * sum(path.stat().st_size for path in Path(model).glob("*.safetensors"))
            self._crew = Crew(self.inner, self.ranks, self.seconds, room)
        self._all("open", model=str(Path(model).resolve()), seed=seed)

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Refuse: rollouts would have to be sent to the ranks before they are packed."""
        raise ConfigurationError(f"Ranks records no policy statistics, and {listed(needs)} are needed: set ranks=1")

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Fill the logprobs of reference and proximal policy where they are needed."""
        crew = self._ready()
        if unknown := needs - self.fills:
            raise ConfigurationError(f"Ranks fills {listed(self.fills)}, not {listed(unknown)}")
        if not needs or not batches:
            return
        asked = sorted(need.policy for need in needs if isinstance(need, Logprobs))
        parts = [split(batch, self.ranks, "rollout") for batch in batches]
        into = [self._new_file() for _ in range(self.ranks)]
        with self._written(parts) as paths:
            orders = zip(paths, into, strict=True)
            crew.ask("annotate", [{"batches": str(path), "policies": asked, "into": str(out)} for path, out in orders])
        found = [_taken(path) for path in into]
        for index, batch in enumerate(batches):
            for policy in asked:
                of_ranks = zip(found, parts[index], strict=True)
                pieces = [tensors[f"{index}.{policy}"][: part.high - part.low] for tensors, part in of_ranks]
                batch.fill(policy, torch.cat(pieces))

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches; weights change only if every loss and the gradient are finite."""
        crew = self._ready()
        if not batches:
            raise ConfigurationError("a step needs at least 1 batch, got 0: every rollout failed or was empty")
        scope = objective.scope if isinstance(objective, StepObjective) else "group"
        rate = self.inner.learning_rate
        parts = {"objective": packed(objective, "the objective", "the ranks")}
        with self._written([split(batch, self.ranks, scope) for batch in batches]) as paths:
            answers = crew.ask("step", [{"batches": str(path), "learning_rate": rate} for path in paths], parts)
        first, loss = answers[0], sum(answers[0]["losses"])
        if "guilty" in first:
            guilty = [batches[index] for index in first["guilty"]]
            raise refusal(first["step"], len(batches), guilty or batches, loss, first["norm"])
        metrics = {name: 0.0 for answer in answers for name in answer["metrics"]}
        for answer in answers:
            for name, value in answer["metrics"].items():
                metrics[name] += value
        metrics |= {name: first[name] for name in ("step_scale",) if name in first}
        return {**metrics, "loss": loss, "grad_norm": first["norm"], "learning_rate": first["learning_rate"]}

    def weights(self) -> dict[str, Tensor]:
        """A copy of the full weights, gathered by the first rank."""
        path = self._new_file()
        self._all("weights", into=str(path))
        return _taken(path)

    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder with the state needed to resume bit for bit."""
        self._all("save", folder=str(folder.resolve()))

    def resume(self, folder: Path) -> None:
        self._all("resume", folder=str(folder.resolve()))

    def stacks(self) -> str:
        """Stack traces of every rank; may be called from any thread."""
        crew = self._crew
        return crew.stacks() if crew is not None and crew.is_alive else "no process\n"

    async def close(self) -> None:
        """End the ranks; open() starts new ones."""
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _all(self, verb: str, **order: Any) -> None:
        """Send the same command to every rank."""
        self._ready().ask(verb, [order] * self.ranks)

    def _ready(self) -> Crew:
        if self._crew is None:
            raise ConfigurationError("Ranks has no model: call open(model, seed) first")
        return self._crew

    def _new_file(self) -> Path:
        """A file name never used before: a process that still maps an older file keeps its content."""
        return self._ready().scratch / f"{next(self._names)}.safetensors"

    @contextmanager
    def _written(self, parts: Sequence[Sequence[BatchPart]]) -> Iterator[list[Path]]:
        """One file of batches for each rank."""
        paths = [self._new_file() for _ in range(self.ranks)]
        try:
            for path, of_rank in zip(paths, zip(*parts, strict=True), strict=True):
                write_batches(path, [part.batch for part in of_rank])
            yield paths
        finally:
            for path in paths:
                path.unlink(missing_ok=True)


def _taken(path: Path) -> dict[str, Tensor]:
    """The tensors that a rank wrote; the file is deleted, its memory stays until the last tensor is freed."""
    tensors = load_file(path)
    path.unlink()
    return tensors
