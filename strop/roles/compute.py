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
    """Who produces tokens?"""

    has_weights: ClassVar[bool] = True  # or its logprobs are invented
    goes_on: ClassVar[bool] = True  # a completion asked for in pieces is the same completion; or each is one of its own

    def open(self, model: Path) -> None:
        """Read the architecture and the first weights from a Hugging Face folder."""
        ...

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` (the whole context); token at position p is drawn with random number (key, p)."""
        ...

    async def load(self, version: WeightVersion) -> str:
        """Take new weights between two decode steps and answer with the fingerprint of what is really loaded."""
        ...

    def forget(self) -> None:
        """Drop every kept prefix: from here on, bits do not depend on what was asked before."""
        ...

    def rest(self) -> None:
        """Weights are trained beside it now: give back what it holds for sequences, if that was planned."""
        return None

    def abort(self, key: int) -> None:
        """End the running request of this key; its completion comes back as far as it got."""
        ...


class Trainer(Protocol):
    """How do weights move? It knows no algorithm's name."""

    fills: ClassVar[frozenset[Need] | None] = None  # the needs it can fill; None: all
    makes_several: ClassVar[bool] = False  # optimizer steps of one, each from where the last one ended

    @fact
    def snapshots(self) -> int:
        """Earlier versions it keeps."""
        return 0

    @fact
    def average_window(self) -> int:
        """Versions that its averaged policy spans."""
        return 0

    @fact
    def warmup_steps(self) -> int:
        """Optimizer steps in which the learning rate rises."""
        return 0

    if TYPE_CHECKING:

        @property
        def max_tokens(self) -> int: ...  # of one forward pass

    def open(self, model: Path, seed: int) -> None: ...

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Write what the current policy thinks into each rollout's `policy_statistics`, before there is any
        advantage.
        """
        ...

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Fill what losses and correction need of other policies before the step (`training/requirements.py`)."""
        ...

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches."""
        ...

    def weights(self) -> dict[str, Tensor]: ...
    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder, and beside it what is needed to go on to the same bits."""
        ...

    def resume(self, folder: Path) -> None: ...


class View(Protocol):
    """What of a completion is hidden from a model that fills masks, when it is asked about its tokens?"""

    is_random: ClassVar[bool] = False  # every epoch hides something else, from the policies before it as well

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]: ...


class Channel(Protocol):
    """How do weights reach the engines? Proven by fingerprint."""

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None: ...
    async def publish(self, step: int) -> WeightVersion: ...
    async def proven(self) -> None:
        """Wait until engines hold the newest version, where training may go on before they do."""
        return None
