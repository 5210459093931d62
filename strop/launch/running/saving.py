"""Schedule of checkpoints, and their retention: the newest, and the best by held-out accuracy."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from strop.observe.run_files.best_checkpoint import BestCheckpoint
from strop.observe.run_files.jsonl_journals import path_of
from strop.run import Run
from strop.run_state import Progress
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder


@dataclass
class Saving:
    """Called between two steps, when nothing else can happen; `best` may have requested the same checkpoint just
    before.
    """

    run: Run
    folder: RunFolder
    ledger: Ledger
    progress: Progress
    best: BestCheckpoint = field(init=False)
    _saved: int = -1  # the last step that was

    def __post_init__(self) -> None:
        self.best = BestCheckpoint(self.folder, self)

    def __call__(self, step: int) -> None:
        if step != self._saved:
            self.ledger.sync()
            self._sync_journals()
            checkpoint.write(self.folder.checkpoints, step, self.run, {"tally": self.progress.tally.state()})
            self._saved = step
        checkpoint.prune(self.folder.checkpoints, self.run.keep_checkpoints, self.best.kept)

    def _sync_journals(self) -> None:
        """A power cut may take lines after a checkpoint, and none before it."""
        for path in (self.folder.metrics, self.folder.timing, path_of(self.folder)):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
