"""A trainer of several ranks behind the same role: FSDP2 on torch.distributed, gloo on CPUs and nccl on GPUs.

Each rank is a local process that holds a slice of the weights and of the optimizer's moments (ZeRO, Rajbhandari et al.
2020). A batch is cut over them by tokens and gradients are summed, so a step is that of one rank but for rounding; what
it saves is what one rank saves, and either goes on from the other's checkpoint.
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
    """`inner` says how each rank trains; its `max_tokens` are those of one rank, give or take a rollout."""

    fills: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference"), Logprobs("proximal")})
    sends: ClassVar[bool] = True

    inner: TorchTrainer = field(default_factory=TorchTrainer)
    ranks: int = 2
    seconds: float = 600.0  # without an answer, or in one exchange between ranks, before they count as hung

    _crew: Crew | None = field(default=None, init=False, repr=False, compare=False)
    _names: Iterator[int] = field(default_factory=itertools.count, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ConfigurationError(f"Ranks needs ranks >= 1, got {self.ranks}")
        if self.inner.device not in ("cpu", "cuda"):  # each rank has a device of its own
            raise ConfigurationError(f'Ranks needs a device of "cpu" or "cuda", got {self.inner.device!r}')
        if self.inner.snapshots or self.inner.average_window:
            raise ConfigurationError(
                f"Ranks keeps no earlier weights: need snapshots=0 and average_window=0, got {self.inner.snapshots} "
                f"and {self.inner.average_window}"
            )
        if self.inner.lora:
            raise ConfigurationError(f"Ranks trains whole weights: need lora=0, got {self.inner.lora}")
        if self.inner.products != "plain":
            raise ConfigurationError(
                f'Ranks multiplies plain numbers: need products="plain", got {self.inner.products!r}'
            )
        if self.inner.bytes_per_weight not in (0, FLOAT32):
            raise ConfigurationError(
                f"Ranks holds weights in float32, cut over its ranks: need bytes_per_weight={FLOAT32}, or 0, got "
                f"{self.inner.bytes_per_weight}"
            )

    def problems(self, run: Run) -> list[str]:
        """Policy statistics are taken by a trainer of one rank only."""
        asked = statistics_needed(run)
        return [f"Ranks takes no policy statistics, asked for {listed(asked)}: use ranks=1"] if asked else []

    @property
    def max_tokens(self) -> int:
        """Of one forward pass on all ranks together."""
        return self.inner.max_tokens * self.ranks

    def open(self, model: Path, seed: int) -> None:
        if self.inner.device == "cuda" and self.ranks > torch.cuda.device_count():
            raise ConfigurationError(f"{self.ranks} ranks need as many GPUs, found {torch.cuda.device_count()}")
        if self._crew is None or not self._crew.is_alive:
            # weights pass through shared memory in one piece, while the piece before may still be in use
            room = 3 * sum(path.stat().st_size for path in Path(model).glob("*.safetensors"))
            self._crew = Crew(self.inner, self.ranks, self.seconds, room)
        self._all("open", model=str(Path(model).resolve()), seed=seed)

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Refused: rollouts would have to be sent to the ranks before they are packed."""
        raise ConfigurationError(
            f"Ranks takes no policy statistics of rollouts, asked for {listed(needs)}: use ranks=1"
        )

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Fill logprobs of reference and proximal where they are needed."""
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
        """One optimizer step over all batches; weights move only if every loss and the gradient are finite."""
        crew = self._ready()
        if not batches:
            raise ConfigurationError("a step needs at least 1 batch, got 0: every rollout failed or wrote nothing")
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
        """A copy, put together by the first rank."""
        path = self._new_file()
        self._all("weights", into=str(path))
        return _taken(path)

    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder, and beside it what is needed to go on to the same bits."""
        self._all("save", folder=str(folder.resolve()))

    def resume(self, folder: Path) -> None:
        self._all("resume", folder=str(folder.resolve()))

    def stacks(self) -> str:
        """What every rank is doing right now; may be asked from any thread."""
        crew = self._crew
        return crew.stacks() if crew is not None and crew.is_alive else "no process\n"

    async def close(self) -> None:
        """End the ranks; open() starts new ones."""
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _all(self, verb: str, **order: Any) -> None:
        """The same order for every rank."""
        self._ready().ask(verb, [order] * self.ranks)

    def _ready(self) -> Crew:
        if self._crew is None:
            raise ConfigurationError("Ranks has no model yet: call open(model, seed) first")
        return self._crew

    def _new_file(self) -> Path:
        """A name never used before: whoever still maps an older file keeps what it holds."""
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
    """What a rank wrote; the file is gone, the memory stays as long as a tensor needs it."""
    tensors = load_file(path)
    path.unlink()
    return tensors
