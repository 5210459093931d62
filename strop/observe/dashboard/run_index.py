"""Index of the watched runs by name: one run, or those of a folder; names in requests are only looked up in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from strop.errors import ConfigurationError, nearest
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import address
from strop.observe.dashboard.report_selection import KeptRollouts
from strop.observe.run_files.run_info import find_runs
from strop.storage.run_folder import RunFolder


@dataclass
class RunIndex:
    """Runs by name. `root` is a run folder or a folder of such; `kept` is the content of a static file."""

    root: Path
    kept: KeptRollouts | None = None
    _known: dict[str, LiveRun] = field(default_factory=dict, init=False, repr=False)

    def runs(self) -> dict[str, LiveRun]:
        """All that are there now, the latest last; those known before keep what was read of them."""
        is_run = (self.root / "recipe.py").is_file()
        folders = [RunFolder(self.root.resolve())] if is_run else find_runs(self.root)
        self._known = {f.path.name: self._known.get(f.path.name) or LiveRun(f) for f in folders}
        return self._known

    def run(self, name: str) -> LiveRun:
        """The run of this name, the latest where none is named."""
        runs = self.runs()
        if not runs:
            raise ConfigurationError(f"no runs in {self.root}: start one with strop train")
        found = runs.get(name) if name else list(runs.values())[-1]
        if found is None:
            raise ConfigurationError(f"no run {name!r} in {self.root}: {nearest(name, list(runs))}")
        return found

    def href(self, page: str, **given: object) -> Markup:
        """The attribute that leads to a page; empty where a file does not hold it."""
        if self.kept is None:
            return Markup(' href="{}"').format(address(page, **given))
        place = self.kept.place(page, given)
        return Markup(' href="#/{}"').format(place) if place else Markup("")

    def to_rollouts(self, run: LiveRun) -> Callable[[str], Markup]:
        """The attribute that leads to a rollout of a run, by its id."""
        return lambda name: self.href("rollout", run=run.name, id=name)
