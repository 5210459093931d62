"""TensorBoard tracker of metrics, in the run folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.errors import ConfigurationError
from strop.types import Metrics

if TYPE_CHECKING:
    from strop.run import Run

_MISSING = "TensorBoard is not installed: pip install 'strop[tensorboard]'"


@dataclass
class TensorBoard:
    """Writes event files into `folder` of the run; view them with `tensorboard --logdir runs`."""

    folder: str = "tensorboard"
    _writer: Any = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        return [] if find_spec("tensorboard") else [_MISSING]

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigurationError(_MISSING) from None
        self._writer = SummaryWriter(str(folder / self.folder))
        self._writer.add_text("settings", "\n\n".join(f"{name}: {value}" for name, value in settings.items()))

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        for name, value in timing.items():
            self._writer.add_scalar(f"timing/{name}", value, step)

    def end(self) -> None:
        self._writer.close()
