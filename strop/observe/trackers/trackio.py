"""trackio tracker of metrics, stored on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.errors import ConfigurationError
from strop.types import Metrics

if TYPE_CHECKING:
    from strop.run import Run

_MISSING = "trackio is not installed: pip install 'strop[trackio]'"


@dataclass
class Trackio:
    """Logs to a project; view it with `trackio show`. A resumed run continues the same one."""

    project: str = "strop"
    _run: Any = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        return [] if find_spec("trackio") else [_MISSING]

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        try:
            import trackio
        except ImportError:
            raise ConfigurationError(_MISSING) from None
        self._run = trackio.init(project=self.project, name=folder.resolve().name, config=settings, resume="allow")

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        timed = {f"timing/{name}": value for name, value in timing.items()}
        self._run.log({**metrics, **timed}, step=step)

    def end(self) -> None:
        self._run.finish()
