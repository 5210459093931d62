"""Rollouts included in a static report, and the rule by which they were selected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from strop.observe.report.transcripts import telling
from strop.storage.ledger.browser import LedgerBrowser, Wanted
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder

_STEPS = 5  # of which rollouts are kept
_DRAWN = 64  # rollouts of a step among which they are chosen
_OF_STEP = 4
_LEFT_OUT = 2  # rollouts of every fate without training
_TOKENS = 30_000  # in all: each is a hundred bytes of a page, and stands there twice where a sibling is beside it


@dataclass(frozen=True)
class KeptRollouts:
    """Rollouts by id; `words` say how many of how many, and which."""

    ids: tuple[str, ...] = ()
    words: str = ""

    def place(self, page: str, given: dict[str, object]) -> str:
        """Of a page within the file; empty: it is not there."""
        others = {name for name, value in given.items() if name != "run" and value not in ("", None)}
        if page == "rollout":
            return f"rollout/{quote(str(given['id']))}" if given["id"] in self.ids else ""
        return "" if others or page in ("", "compare") else page


def keep(folder: RunFolder) -> KeptRollouts:
    """The most telling ones: of steps from the first to the last, and of what was left out."""
    if not folder.ledger.is_file():
        return KeptRollouts()
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        steps = _spread(ledger.trained_steps(), ledger.rated_steps())
        found = {name: tokens for step in steps for name, tokens in _of_step(ledger, step)}
        number = sum(ledger.counts().values())
    finally:
        ledger.close()
    found |= dict(_left_out(folder))
    kept = tuple(_within(found))
    words = f"{len(kept):,} of {number:,} rollouts are in this file: "
    words += f"of steps {', '.join(f'{step:,}' for step in sorted(steps))} the best at a task, and the worst where it "
    words += "is paid less; "
    words += f"and the last {_LEFT_OUT} of every fate without training. All of them: strop watch {folder.path}"
    return KeptRollouts(kept, words)


def _spread(steps: list[int], rated: list[int]) -> list[int]:
    """The first, the last, then those between at equal distances, or the nearest of which ratios are known."""
    if len(steps) <= _STEPS:
        return steps[:1] + steps[1:][::-1]
    inner = [steps[(len(steps) - 1) * part // (_STEPS - 1)] for part in range(1, _STEPS - 1)]
    near = [min([step, *rated], key=lambda each: (each not in rated, abs(each - step))) for step in inner]
    return list(dict.fromkeys([steps[0], steps[-1], *near]))


def _of_step(ledger: Ledger, step: int) -> Iterator[tuple[str, int]]:
    for rollout in telling(ledger.sample(step, _DRAWN), _OF_STEP):
        yield rollout.id, rollout.num_tokens


def _left_out(folder: RunFolder) -> Iterator[tuple[str, int]]:
    with LedgerBrowser(folder.ledger) as browser:
        for fate in ("gated", "failed", "waiting"):
            for row in browser.page(Wanted(fate=fate), "newest", False, None, _LEFT_OUT):
                yield row.id, row.tokens


def _within(found: dict[str, int]) -> Iterator[str]:
    """As many as the file has room for, and one at least."""
    left = _TOKENS
    for name, tokens in found.items():
        if tokens <= left or left == _TOKENS:
            yield name
            left -= tokens
