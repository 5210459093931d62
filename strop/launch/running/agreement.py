"""Consistency check of a resumed run: metrics files and ledger must cover every step up to the newest checkpoint.

A killed run leaves more than that (later steps, perhaps half a line), which is discarded and computed again. It never
leaves less: then a file was deleted, truncated or mixed with another run's, and resuming would leave a gap.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from strop.errors import CheckpointError
from strop.observe.run_files.jsonl_journals import path_of
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows

_SHOWN = 5  # steps


def check_agreement(folder: RunFolder, changed_anyway: bool) -> None:
    """Refuse to go on where steps are missing; `changed_anyway`: say so and leave the hole."""
    if not (saved := checkpoint.listed(folder.checkpoints)):
        return
    last = int(saved[-1].name.removeprefix("step-"))
    if not (found := [*_of_journals(folder, last), *([] if changed_anyway else _of_ledger(folder, last))]):
        return
    if changed_anyway:
        return print(f"warning: {'; '.join(found)}: it stays so", file=sys.stderr)
    whole = [path for path in saved[:-1] if not any(_missing_in(folder, int(path.name.removeprefix("step-"))))]
    back = f"remove checkpoints after {whole[-1].name}, up to which nothing is missing, " if whole else ""
    raise CheckpointError(
        f"{folder.path} goes on after step {last}, and {'; '.join(found)}. Put back what was there, {back}or go on "
        f"without it: strop train --resume {folder.path} --changed-anyway"
    )


def _missing_in(folder: RunFolder, last: int) -> Iterator[str]:
    yield from _of_journals(folder, last)
    yield from _of_ledger(folder, last)


def _of_journals(folder: RunFolder, last: int) -> Iterator[str]:
    rows = read_rows(folder.metrics)
    for path, steps in ((folder.metrics, [row["step"] for row in rows]), (folder.timing, _steps(folder))):
        known = [step for step in steps if step <= last]
        if missing := _without(known, last):
            yield f"{path} has no row of {_told(missing)}"
        elif known != sorted(set(known)):
            yield f"{path} has rows of a step twice, or in another order"
    measured = {row["step"] for row in rows if "heldout" in row and row["step"] <= last}
    if missing := sorted(measured - {row["step"] for row in read_rows(path_of(folder))}):
        yield f"{path_of(folder)} has no row of {_told(missing)}"


def _steps(folder: RunFolder) -> list[int]:
    return [row["step"] for row in read_rows(folder.timing)]


def _of_ledger(folder: RunFolder, last: int) -> Iterator[str]:
    versions, trained = _known_to(folder)
    if last not in versions:
        yield f"{folder.ledger} knows nothing of step {last}, which is saved: it was deleted or is another run's"
    elif missing := sorted({*_without(list(versions), last), *_without([0, *trained], last)}):
        yield f"{folder.ledger} knows nothing of {_told(missing)}"


def _known_to(folder: RunFolder) -> tuple[dict[int, str], list[int]]:
    """Versions and trained steps of the ledger; none where there is no ledger."""
    if not folder.ledger.is_file():
        return {}, []
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        return ledger.fingerprints(), ledger.trained_steps()
    finally:
        ledger.close()


def _without(known: Sequence[int], last: int) -> list[int]:
    return sorted(set(range(last + 1)) - set(known))


def _told(steps: Sequence[int]) -> str:
    more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps[:_SHOWN]))}{more}"
