"""Roles that compute: engines sample, trainers update weights, channels deliver weights, views mask completions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from strop.backends import Completion, Objective, WeightVersion, fact
from strop.types import Group, IntArray, Metrics, Sampling

if TYPE_CHECKING:
    from torch import Tensor

    from strop.training.batch import Batch
    from strop.training.canvases import Glance, WrittenCanvas
    from strop.training.requirements import Need, PolicyStatistic


class Engine(Protocol):
    """Inference engine: samples tokens."""

    has_weights: ClassVar[bool] = True  # False: its logprobs are invented
    goes_on: ClassVar[bool] = True  # requested in pieces, a completion is the same; False: pieces are independent

    def open(self, model: Path) -> None:
        """Read the architecture and the first weights from a Hugging Face folder."""
        ...

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` (the whole context); the token at position p is sampled with random number (key, p)."""
        ...

    async def load(self, version: WeightVersion) -> str:
        """Load new weights between two decode steps and return the fingerprint of what is really loaded."""
        ...

    def forget(self) -> None:
        """Drop every cached prefix: from here on, bits do not depend on earlier requests."""
        ...

    def rest(self) -> None:
        """Weights are trained on the same GPU now: release the memory of sequences, if that was planned."""
        return None

    def abort(self, key: int) -> None:
        """End the running request of this key; its completion is returned as far as it got."""
        ...


class Trainer(Protocol):
    """Optimizer steps of a policy's weights; independent of algorithms."""

    fills: ClassVar[frozenset[Need] | None] = None  # the needs it can fill; None: all
    makes_several: ClassVar[bool] = False  # splits one step into several optimizer steps

    @fact
    def snapshots(self) -> int:
        """Number of earlier versions it keeps."""
        return 0

    @fact
    def average_window(self) -> int:
        """Window of its averaged policy, in versions."""
        return 0

    @fact
    def warmup_steps(self) -> int:
        """Optimizer steps of learning-rate warm-up."""
        return 0

    if TYPE_CHECKING:

        @property
        def max_tokens(self) -> int: ...  # of one forward pass

    def open(self, model: Path, seed: int) -> None: ...

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Compute the requested policy statistics of each rollout, before advantages."""
        ...

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Fill what losses and correction need of other policies before the step (`training/requirements.py`)."""
        ...

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches."""
        ...

    def weights(self) -> dict[str, Tensor]: ...
    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder, plus the state needed to resume to the same bits."""
        ...

    def resume(self, folder: Path) -> None: ...


class View(Protocol):
    """Masks of a completion in the forward passes of a masked diffusion model."""

    is_random: ClassVar[bool] = False  # every epoch masks other tokens, for earlier policies as well

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]: ...


class Channel(Protocol):
    """Delivery of weights to engines, proven by fingerprint."""

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None: ...
    async def publish(self, step: int) -> WeightVersion: ...
    async def proven(self) -> None:
        """Wait until engines hold the newest version, where training may go on before they do."""
        return None
