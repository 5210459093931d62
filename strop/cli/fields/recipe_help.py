"""What `strop train --help` and `strop recipes` say: recipes by class, read from their files without importing any."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.catalogue.record import PACKAGE, Record, docstring_of, records
from strop.cli.fields.arguments import DEFAULT_RECIPE
from strop.errors import ConfigurationError, nearest

# what a beginner may want, in the order of wanting it
_FIRST = ("pocket", "grpo", "dr_grpo", "rloo", "ppo", "dapo", "dpo", "sft", "expert_iteration", "areal", "smollm2")
_OPTIONS = (
    ("--name NAME", "of the run folder; default RECIPE-seedN"),
    ("--runs DIR", "where run folders are made; default runs"),
    ("--resume RUN", "go on with a run from its newest checkpoint; steps=N gives it more steps"),
    ("--place WHERE", "where engines compute: inline (default), process or ray"),
    ("--engines N", "how many engines share the work, where they are placed"),
    ("--track NAMES", "also log to tensorboard, wandb or trackio"),
    ("--dry-run", "check everything and show the run; nothing is started"),
    ("--quiet", "print the result only"),
    ("--debug", "show the traceback of an error"),
)


def show_recipes() -> None:
    """A beginner's few, then the classes of all recipes with their numbers."""
    console, known = Console(highlight=False), records()
    console.print("[bold]strop train[/] \\[RECIPE] \\[FIELD=VALUE ...] \\[OPTIONS]")
    console.print("as in [bold]strop train grpo steps=50 env=arithmetic:3[/]\n")
    few = table("To begin with")
    for name in _FIRST:
        mark = " [green](default)[/]" if name == DEFAULT_RECIPE else ""
        few.add_row(f"[bold cyan]{name}[/]{mark}", escape(known[name].line))
    console.print(few)
    classes = table(f"All {len(known)} recipes", "", "")
    for group in groups(known.values()):
        count = sum(record.group == group for record in known.values())
        classes.add_row(f"[cyan]{group}[/]", str(count), escape(class_line(group)))
    console.print()
    console.print(classes)
    console.print("\n[bold]strop recipes[/] CLASS or WORD lists or searches them. A recipe may also be")
    console.print("a Python file that defines `run` or a function that returns a Run.\n")
    show_options(console)
    console.print("\nFields of a recipe: [bold]strop train grpo --help[/]")


def list_recipes(asked: str) -> None:
    """Recipes of a class, or those that say a word; all of them where nothing is asked."""
    console, known = wide_console(), records()
    found = [each for each in known.values() if not asked or each.group == asked.lower()]
    found = found or [each for each in known.values() if each.says(asked)]
    if not found:
        raise ConfigurationError(f"no recipe says {asked!r}: {nearest(asked, {*groups(known.values()), *known})}")
    for group in groups(found):
        rows = table(group, escape(class_line(group)), is_cut=True)
        for record in found:
            if record.group == group:
                rows.add_row(f"[cyan]{record.name}[/]", escape(record.line))
        console.print(rows)
        console.print()


def wide_console() -> Console:
    """One line for each row: cut at the edge of a terminal, and whole where a program reads it."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def groups(known: Iterable[Record]) -> list[str]:
    """Classes, the classics first and what is no paper's last."""
    names = {record.group for record in known}
    return sorted(names, key=lambda name: (name != "classics", name == "studies", name))


def class_line(group: str) -> str:
    """What a class of recipes is about."""
    return docstring_of(PACKAGE / "recipes" / group / "__init__.py").partition("\n")[0]


def show_options(console: Console) -> None:
    rows = table("Options")
    for option, meaning in _OPTIONS:
        rows.add_row(f"[cyan]{option}[/]", meaning)
    console.print(rows)


def table(*titles: str, is_cut: bool = False) -> Table:
    """Rows without lines between them; `is_cut` keeps each to one line."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", title_justify="left")
    for title in titles if len(titles) > 1 else (*titles, ""):
        made.add_column(title, overflow="ellipsis" if is_cut else "fold", no_wrap=is_cut)
    return made
