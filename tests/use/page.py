"""Generated page docs/use.md: the matrix, how many recipes of each class act, and why others are refused.

`python -m tests.use.page` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from strop.catalogue.record import Record, records
from tests.use.cells import ACTS, RED, REFUSED, Cell
from tests.use.matrix import Key, every_cell, read_results
from tests.use.situations import SITUATIONS

PAGE = Path(__file__).parents[2] / "docs" / "use.md"
_MADE = "<!-- written by `make use` from tests/use/results.json -->\n"
_LETTERS = {ACTS: "acts", REFUSED: "·"} | {verdict: f"**{verdict}**" for verdict in RED}
_MEANINGS = """\
| situation | what the user brings |
|---|---|
| 1 numbers | a JSONL file of prompts with numbers as answers |
| 2 LaTeX | answers in LaTeX, `answer=math` |
| 3 own reward | prompts without answers, and a reward of their own that states no range |
| 4 own scale | rewards of their own from -1 to 1, and from 1 to 10, in two runs |
| 5 preferences | `chosen` and `rejected` |
| 6 code | prompts with `tests`, as `assert` lines |
| 7 prose | a `solution` in prose beside each answer |
| 8 own env | an environment of their own with several turns and a tool, `env=FILE.py:NAME` |
| 9 stubs | an endpoint for each named part: judge, teacher, task generator, simulator |
| 10 other model | a model of another family with another tokenizer and a plain chat template |
"""


def page_of(found: Mapping[Key, Cell], known: Mapping[str, Record]) -> str:
    """The whole page."""
    intro = (
        "# Recipes on your own data\n\n"
        "Recipes are started for a few steps in ten situations of a user, on a model of a user; `not run` counts the "
        "cells that nobody has played yet. It *acts* where "
        "the metrics that its record names (`Acts:`) leave their neutral values, with `*` after a supervised warm-up "
        "that was asked for (`warmup_steps=20`); `·` is a run that was refused before "
        "it began, with a sentence that says what is missing.\n\nWords in bold are defects: *silent* ran without "
        "acting, *partly* left some of these metrics at rest, *stopped* ended with an error on the way, *traceback* "
        "and *late* speak for themselves, *held-out* trained on held-out rows, *sign* pushed right rollouts down.\n"
    )
    parts = [_MADE + intro, _MEANINGS, _situations(found), _classes(found, known), _matrix(found, known)]
    return "\n".join([*parts, _defects(found), _refusals(found)])


def _situations(found: Mapping[Key, Cell]) -> str:
    verdicts = (ACTS, REFUSED, *RED)
    lines = [
        "## By situation\n",
        f"| situation | {' | '.join(verdicts)} | not run |",
        "|---" * (len(verdicts) + 2) + "|",
    ]
    for situation in SITUATIONS:
        keys = [key for key in every_cell() if key[1] == situation.number]
        counted = Counter(found[key].verdict for key in keys if key in found)
        cells = [str(counted[verdict]) for verdict in verdicts]
        missing = len(keys) - sum(counted.values())
        lines.append(f"| {situation.number} {situation.name} | {' | '.join(cells)} | {missing} |")
    return "\n".join(lines) + "\n"


def _classes(found: Mapping[Key, Cell], known: Mapping[str, Record]) -> str:
    lines = ["## By class\n", "Cells that act, of all of the class.\n"]
    lines += [f"| class | {' | '.join(each.name for each in SITUATIONS)} | all |", "|---" * (len(SITUATIONS) + 2) + "|"]
    for group in sorted({known[name].group for name, _ in every_cell()}):
        keys = [key for key in every_cell() if known[key[0]].group == group]
        acting = Counter(key[1] for key in keys if key in found and found[key].verdict == ACTS)
        cells = [str(acting[each.number]) for each in SITUATIONS]
        lines.append(f"| {group} | {' | '.join(cells)} | {acting.total()} of {len(keys)} |")
    return "\n".join(lines) + "\n"


def _matrix(found: Mapping[Key, Cell], known: Mapping[str, Record]) -> str:
    lines = ["## All\n", f"| recipe | class | {' | '.join(str(each.number) for each in SITUATIONS)} |"]
    lines.append("|---" * (len(SITUATIONS) + 2) + "|")
    for name in sorted({name for name, _ in every_cell()}):
        cells = [_letters(found.get((name, each.number))) for each in SITUATIONS]
        link = f"[{name}](papers/{known[name].key}.md)" if known[name].title else name
        lines.append(f"| {link} | {known[name].group} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _letters(cell: Cell | None) -> str:
    return _LETTERS[cell.verdict] + "*" * (cell.verdict == ACTS and bool(cell.said)) if cell else ""


def _defects(found: Mapping[Key, Cell]) -> str:
    red = [(key, found[key]) for key in every_cell() if key in found and found[key].is_red]
    lines = [f"| {name} | {number} | {cell.verdict} | {_plain(cell.said)} |" for (name, number), cell in red]
    return "\n".join(
        [f"## Defects: {len(red)}\n", "| recipe | situation | what | why |", "|---|---|---|---|", *lines, ""]
    )


def _refusals(found: Mapping[Key, Cell]) -> str:
    """Sentences of refusals with the recipes that give them."""
    by_reason: dict[str, dict[str, None]] = {}
    for key in every_cell():
        if key in found and found[key].verdict == REFUSED:
            by_reason.setdefault(_plain(found[key].said).replace(key[0], "RECIPE"), {})[key[0]] = None
    ordered = sorted(by_reason.items(), key=lambda each: (-len(each[1]), each[0]))
    lines = [f"| {reason} | {', '.join(names)} |" for reason, names in ordered]
    return "\n".join(["## Refusals\n", "| sentence | recipes |", "|---|---|", *lines, ""])


def _plain(text: str) -> str:
    """Text that breaks no table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def write_page() -> None:
    PAGE.write_text(page_of(read_results(), records()))


if __name__ == "__main__":
    write_page()
