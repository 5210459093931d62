"""MLflow and SwanLab trackers of metrics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.errors import ConfigurationError
from strop.types import Metrics

if TYPE_CHECKING:
    from strop.run import Run

_MISSING = "{} is not installed: pip install 'strop[{}]'"


@dataclass
class MLflow:
    """Logs to an experiment, where MLFLOW_TRACKING_URI says or in ./mlruns. A resumed run continues the same one."""

    experiment: str = "strop"
    _run_id: str = field(default="", init=False, repr=False, compare=False)
    _client: Any = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        return [] if find_spec("mlflow") else [_MISSING.format("MLflow", "mlflow")]

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        try:
            import mlflow
        except ImportError:
            raise ConfigurationError(_MISSING.format("MLflow", "mlflow")) from None
        self._client, place = mlflow.MlflowClient(), str(folder.resolve())
        found = self._client.get_experiment_by_name(self.experiment)
        number = found.experiment_id if found else self._client.create_experiment(self.experiment)
        before = self._client.search_runs([number], filter_string=f"tags.strop_folder = '{_digest(place)}'")
        tags = {"strop_folder": _digest(place)}
        made = before[0] if before else self._client.create_run(number, run_name=folder.resolve().name, tags=tags)
        self._run_id = made.info.run_id
        for name, value in {} if before else settings.items():
            self._client.log_param(self._run_id, name, value)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        for name, value in _named(metrics, timing).items():
            self._client.log_metric(self._run_id, name, value, step=step)

    def end(self) -> None:
        self._client.set_terminated(self._run_id)


@dataclass
class SwanLab:
    """Logs to a project. A resumed run continues the same one; SWANLAB_MODE=offline keeps it on this machine."""

    project: str = "strop"
    _run: Any = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        return [] if find_spec("swanlab") else [_MISSING.format("SwanLab", "swanlab")]

    def open(self, folder: Path, settings: dict[str, Any]) -> None:
        try:
            import swanlab
        except ImportError:
            raise ConfigurationError(_MISSING.format("SwanLab", "swanlab")) from None
        place = folder.resolve()
        (place / "swanlab").mkdir(exist_ok=True)
        self._run = swanlab.init(
            project=self.project,
            experiment_name=place.name,
            config=settings,
            logdir=str(place / "swanlab"),
            id=_digest(str(place))[:21],
            resume="allow",
        )

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self._run.log(_named(metrics, timing), step=step)

    def end(self) -> None:
        self._run.finish()


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()[:32]


def _named(metrics: Metrics, timing: Metrics) -> Metrics:
    return {**metrics, **{f"timing/{name}": value for name, value in timing.items()}}
