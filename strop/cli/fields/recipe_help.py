"""Output of `strop train --help` and `strop recipes`: recipes by class, read from their files without an import."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.catalogue.record import PACKAGE, Record, docstring_of, records
from strop.cli.fields.arguments import DEFAULT_RECIPE
from strop.errors import ConfigurationError, nearest

# common recipes, simplest first
_FIRST = ("pocket", "grpo", "dr_grpo", "rloo", "ppo", "dapo", "dpo", "sft", "expert_iteration", "areal", "smollm2")
_OPTIONS = (
    ("--name NAME", "name of the run folder; default RECIPE-seedN"),
    ("--runs DIR", "folder of all run folders; default runs"),
    ("--resume RUN", "resume a run from its newest checkpoint; steps=N extends it"),
    ("--place WHERE", "where engines run: inline (default), process or ray"),
    ("--engines N", "number of engines with --place process or ray"),
    ("--track NAMES", "also log to tensorboard, wandb, trackio, mlflow or swanlab, comma-separated"),
    ("--dry-run", "check everything and print the run; start nothing"),
    ("--quiet", "print only the result"),
    ("--debug", "show the traceback of an error"),
)


def show_recipes() -> None:
    """Print common recipes, then the classes of all recipes with their counts."""
    console, known = Console(highlight=False), records()
    console.print("[bold]strop train[/] \\[RECIPE] \\[FIELD=VALUE ...] \\[OPTIONS]")
    console.print("Example: [bold]strop train grpo steps=50 env=arithmetic:3[/]\n")
    few = table("Common recipes")
    for name in _FIRST:
        tag = " [green](default)[/]" if name == DEFAULT_RECIPE else ""
        few.add_row(f"[bold cyan]{name}[/]{tag}", escape(known[name].line))
    console.print(few)
    classes = table(f"All {len(known)} recipes", "", "")
    for group in groups(known.values()):
        count = sum(record.group == group for record in known.values())
        classes.add_row(f"[cyan]{group}[/]", str(count), escape(class_line(group)))
    console.print()
    console.print(classes)
    console.print("\n[bold]strop recipes[/] CLASS lists a class, [bold]strop recipes[/] WORD searches descriptions.")
    console.print("RECIPE may also be a Python file that defines `run` or a function that returns a Run.\n")
    show_options(console)
    console.print("\nFields of a recipe: [bold]strop train grpo --help[/]")


def list_recipes(asked: str) -> None:
    """Print the recipes of a class, those whose description contains a word, or all after common choices."""
    console, known = wide_console(), records()
    if not asked:
        from strop.cli.commands.recommend import show_choice

        show_choice(console)
    found = [each for each in known.values() if not asked or each.group == asked.lower()]
    found = found or [each for each in known.values() if each.says(asked)]
    if not found:
        raise ConfigurationError(
            f"no class or recipe matches {asked!r}: {nearest(asked, {*groups(known.values()), *known})}"
        )
    for group in groups(found):
        rows = table(group, escape(class_line(group)), is_cut=True)
        for record in found:
            if record.group == group:
                rows.add_row(f"[cyan]{record.name}[/]", escape(record.line))
        console.print(rows)
        console.print()


def wide_console() -> Console:
    """Console with one line per row: cut at the terminal's edge, complete when piped."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def groups(known: Iterable[Record]) -> list[str]:
    """Classes of recipes, classics first and studies last."""
    names = {record.group for record in known}
    return sorted(names, key=lambda name: (name != "classics", name == "studies", name))


def class_line(group: str) -> str:
    """One-line description of a class of recipes."""
    return docstring_of(PACKAGE / "recipes" / group / "__init__.py").partition("\n")[0]


def show_options(console: Console) -> None:
    rows = table("Options")
    for option, meaning in _OPTIONS:
        rows.add_row(f"[cyan]{option}[/]", meaning)
    console.print(rows)


def table(*titles: str, is_cut: bool = False) -> Table:
    """Table without rules; `is_cut` keeps each row to one line."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", title_justify="left")
    for title in titles if len(titles) > 1 else (*titles, ""):
        made.add_column(title, overflow="ellipsis" if is_cut else "fold", no_wrap=is_cut)
    return made
