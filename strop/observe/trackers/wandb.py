"""Weights & Biases tracker of metrics."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.errors import ConfigurationError
from strop.types import Metrics

if TYPE_CHECKING:
    from strop.run import Run

_MISSING = "Weights & Biases is not installed: pip install 'strop[wandb]'"


@dataclass
class Wandb:
    """Logs to a project. A resumed run continues the same one."""

    project: str = ""  # empty: what WANDB_PROJECT says, else strop; WANDB_ENTITY and WANDB_NAME are followed, too
    mode: str = ""  # online, offline or disabled; empty: what WANDB_MODE says, else online
    _run: Any = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        return [] if find_spec("wandb") else [_MISSING]

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        try:
            import wandb
        except ImportError:
            raise ConfigurationError(_MISSING) from None
        place = folder.resolve()
        try:
            self._run = wandb.init(
                project=self.project or os.environ.get("WANDB_PROJECT") or "strop",
                name=os.environ.get("WANDB_NAME") or place.name,
                id=hashlib.sha256(str(place).encode()).hexdigest()[:16],
                resume="allow",
                config=settings,
                dir=str(place),
                mode=self.mode or None,
            )
        except wandb.errors.Error as error:
            raise ConfigurationError(
                f"Weights & Biases: {error} Without an account, WANDB_MODE=offline keeps metrics in {place}/wandb"
            ) from None

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        timed = {f"timing/{name}": value for name, value in timing.items()}
        self._run.log({**metrics, **timed}, step=step)

    def end(self) -> None:
        self._run.finish()
