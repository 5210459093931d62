"""The table that a notebook shows: escaped, a row for each measurement, the newest first."""

from __future__ import annotations

from rich.console import Console

from strop.observe.live.notebook_display import NotebookTable
from strop.observe.live.progress_bar import ProgressBar, ShownStanding


def test_the_table_tells_where_the_run_stands_and_what_was_measured() -> None:
    standing = ShownStanding(steps=4)
    table = NotebookTable("<i>mine</i>", standing, Console(quiet=True))
    table.start()
    for step, metrics in enumerate(({"heldout": 0.25}, {"reward": 0.5}, {"reward": 0.5, "heldout": 0.75})):
        standing.stepped(step, metrics, {"seconds": 1.0, "tokens_per_second": 1200.0} if step else {})
        table.show("heldout" in metrics)
    shown = table.table()
    assert shown.startswith("<b>&lt;i&gt;mine&lt;/i&gt;</b> step 2 of 4, 0:0")
    assert shown.count("<tr>") == 3, "the names, two measurements, and nothing twice"
    assert "<tr><td>2</td><td>0.50</td><td>25% → 75%</td><td>1,200</td></tr>" in shown
    assert shown.index("25% → 75%") < shown.index("<tr><td>0</td><td></td><td>25%</td><td></td></tr>")
    table.stop()


def test_a_notebook_gets_the_table() -> None:
    bar = ProgressBar("grpo", 4, Console(force_jupyter=True, quiet=True))
    assert isinstance(bar._line, NotebookTable)
