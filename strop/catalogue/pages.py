"""Generated pages: docs/choose.md, docs/papers.md, docs/papers/KEY.md and docs/rooms/ROOM.md.

`python -m strop.catalogue` writes them; a test fails where they are out of date.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from strop.catalogue import choice
from strop.catalogue.acts import read_break
from strop.catalogue.fields import WrittenField, class_fields, recipe_parameters
from strop.catalogue.needs import needs_of
from strop.catalogue.papers import Paper, find_papers
from strop.catalogue.record import PACKAGE, Record, docstring_of, records

_MADE = "<!-- written by `make pages` from docstrings: change those -->\n"
_CHOICE = """\
`strop recommend` asks seven questions and names three recipes: why, what others measured, what was measured
here, and a command. This page has its answers for common settings. Effects here were measured on the pocket model,
with a control and a negative control; "undecided" and "does not hold" are shown as well. They say whether a mechanism
acts as claimed on small tasks, and nothing about your model: `strop compare` measures that."""


def write_pages(docs: Path, package: Path = PACKAGE) -> list[Path]:
    """Write every page that changed and remove those of nothing; returns what changed."""
    pages = {docs / name: text for name, text in all_pages(package).items()}
    there = {docs / "papers.md", *docs.glob("papers/*.md"), *docs.glob("rooms/*.md")}
    changed = [path for path, text in pages.items() if not path.is_file() or path.read_text() != text]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path])
    gone = [path for path in sorted(there - set(pages)) if path.is_file()]
    for path in gone:
        path.unlink()
    return changed + gone


def all_pages(package: Path = PACKAGE) -> dict[str, str]:
    """Every page by its name under docs/."""
    papers = find_papers(package)
    pages = {"papers.md": _MADE + list_of(papers, package)}
    pages |= {f"papers/{paper.key}.md": _MADE + page_of(paper, package, "../../") for paper in papers}
    if package == PACKAGE:
        pages["choose.md"] = _MADE + choice_page()
    return pages | {f"rooms/{name}.md": _MADE + text for name, text in room_pages(package).items()}


def choice_page() -> str:
    """docs/choose.md: which recipe for which setting."""
    known = records()
    lines = ["# Choose a recipe", "", _CHOICE, ""]
    lines += ["| your setting | first | second | third |", "|---|---|---|---|"]
    for title, answers in choice.SHOWN:
        names = [_linked(known[each.recipe]) for each in choice.recommended(choice.situation_of(answers))]
        lines.append(f"| {title} | {' | '.join(names)} |")
    for title, answers in choice.SHOWN:
        asked = choice.situation_of(answers)
        typed = " ".join(["strop recommend", *(f"{name}={said}" for name, said in answers.items())])
        lines += ["", f"## {title}", f"`{typed}`", ""]
        for each in choice.recommended(asked):
            record = known[each.recipe]
            lines += [f"**{each.recipe}**: {each.why}.", "", f"    {choice.command(asked, each)}", ""]
            lines += [f"- {line}" for line in choice.evidence(record)] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _linked(record: Record) -> str:
    return f"[{record.name}](papers/{record.key}.md)" if record.title else record.name


def list_of(papers: Iterable[Paper], package: Path = PACKAGE) -> str:
    """All papers by class."""
    groups: dict[str, list[Paper]] = {}
    for paper in papers:
        groups.setdefault(paper.record.group, []).append(paper)
    lines = ["# Papers in strop", ""]
    for group in sorted(groups, key=lambda name: (name != "classics", name)):
        lines += [f"## {group}", _first_line(package / "recipes" / group / "__init__.py"), ""]
        lines += ["| paper | claim | mechanisms | command | effect |", "|---|---|---|---|---|"]
        lines += [_row(paper) for paper in groups[group]]
        lines.append("")
    return "\n".join(lines)


def _row(paper: Paper) -> str:
    parts = ", ".join(module.rpartition(".")[2] for module in paper.mechanisms)
    verdict = paper.effect["verdict"] if paper.effect else ""
    link = f"[{paper.key}](papers/{paper.key}.md)"
    return _cells(link, paper.record.claim, parts, f"`strop train {paper.record.name}`", verdict)


def page_of(paper: Paper, package: Path = PACKAGE, root: str = "") -> str:
    """One paper: claim, reading, what is left out, what shows that it acts, command, fields, tests, effect."""
    record = paper.record
    source = f"[{record.paper}]({record.address})" if record.address else record.paper
    lines = [f"# {paper.key}", f"*{record.title}*, {source}. Class: {record.group}.", "", record.line, ""]
    for label, text in (("Claim", record.claim), ("Reading", record.reading), ("Left out", record.left_out)):
        lines += [f"**{label}.** {text}", ""] if text else []
    home = _file(record.module, package)
    needs = needs_of(record, home, package)
    lines += ["## What you bring", *(f"- {each}" for each in needs.lines()), ""]
    lines += [
        "```",
        f"{needs.demonstration(record.name)}  # bundled model and tasks",
        needs.command(record.name),
    ]
    lines += ["```", "", *_shown(record, root), *_table("Fields of its recipe", recipe_parameters(home))]
    for module in paper.mechanisms:
        lines += _mechanism(module, package, root) if module not in paper.recipes else _own(module, package, root)
    return "\n".join([*lines, *_tests(paper, root), *_effect(paper)]) + "\n"


def _shown(record: Record, root: str) -> list[str]:
    """What was shown and where: metrics that move, and the switch under which they rest."""
    lines = ["## What was shown", ""] if record.acts else []
    if record.acts:
        where = f"[test_acts]({root}tests/recipes/test_acts.py)"
        lines += [f"**Acts.** Within a few steps on bundled tasks ({where}), and looked at when any run ends:"]
        lines += [f"`{record.acts}`.", ""]
    if record.breaks:
        found, where = read_break(record.breaks), f"[test_breaks]({root}tests/recipes/test_breaks.py)"
        lines += [f"**Break.** `strop train {record.name} {found.words}` takes away only the idea: {found.meaning}."]
        lines += [
            "Then one of these metrics rests, over three seeds, on bundled tasks, and on a user's tables unless "
            f"{where} says that they are refused or that the mechanism cannot act on them.",
            "",
        ]
    return lines


def _mechanism(module: str, package: Path, root: str) -> list[str]:
    path = _file(module, package)
    name = str(path.relative_to(package.parent))
    kind = mechanism_of(path)
    if kind is None:
        return [f"## [{name}]({root}{name})", _first_line(path), ""]
    said = (ast.get_docstring(kind) or "").replace("\n\n", " ").replace("\n", " ")
    fields = _table("", class_fields(path, kind.name))
    return [f"## [{name}]({root}{name}): {kind.name}", _first_line(path), "", said, "", *fields]


def _own(module: str, package: Path, root: str) -> list[str]:
    """The mechanisms that stand in a recipe's own file or folder."""
    home = _file(module, package)
    lines: list[str] = []
    for path in sorted(home.parent.glob("[!_]*.py")) if home.stem == "recipe" else [home]:
        name = str(path.relative_to(package.parent))
        for kind in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
            if _is_dataclass(kind) and not kind.name.startswith("_"):
                said = (ast.get_docstring(kind) or "").replace("\n\n", " ").replace("\n", " ")
                lines += [
                    f"## [{name}]({root}{name}): {kind.name}",
                    said,
                    "",
                    *_table("", class_fields(path, kind.name)),
                ]
    return lines


def _table(title: str, fields: Iterable[WrittenField]) -> list[str]:
    rows = [_cells(f"`{each.name}`", f"`{each.default}`" if each.default else "", each.comment) for each in fields]
    head = [f"## {title}"] if title else []
    return [*head, "| field | default | |", "|---|---|---|", *rows, ""] if rows else []


def _cells(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _tests(paper: Paper, root: str) -> list[str]:
    if paper.tests is None:
        return ["**Tests** and measured effects are not installed; they are in a checkout of the project.", ""]
    links = [f"[{Path(name).stem}]({root}{name})" for name in paper.tests]
    return [f"**Tests.** {', '.join(links) or 'none'}", ""]


def _effect(paper: Paper) -> list[str]:
    if (effect := paper.effect) is None:
        return [] if paper.tests is None else ["**Effect.** Not measured."]
    metrics = f"{effect['difference']:+.3f} (95% interval {effect['low']:+.3f} to {effect['high']:+.3f})"
    return [
        f"**Effect: {effect['verdict']}.** {effect['claim']} Measured: {effect['metric']} {metrics}, "
        f"{len(effect['seeds'])} seeds; again with `strop effect {paper.key}`."
    ]


def room_pages(package: Path = PACKAGE) -> dict[str, str]:
    """A page for each folder of the package: the first line of every file; recipes have their own pages."""
    folders = sorted({path.parent for path in package.rglob("*.py")} - {package})
    rooms = [each for each in folders if each.relative_to(package).parts[0] != "recipes" and _files(each)]
    return {"-".join(each.relative_to(package).parts): _room(each, package) for each in rooms}


def _room(folder: Path, package: Path) -> str:
    name = folder.relative_to(package.parent)
    lines = [f"# {name}", _first_line(folder / "__init__.py"), ""]
    lines += [f"- [`{path.stem}`](../../{name}/{path.name}): {_first_line(path)}" for path in _files(folder)]
    return "\n".join(lines) + "\n"


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]


def _first_line(path: Path) -> str:
    """The first sentence of a module, or what stands before its first full stop at the end of a line."""
    first = (docstring_of(path) if path.is_file() else "").split("\n\n")[0]
    lines = first.splitlines()
    ends = next((number for number, line in enumerate(lines) if line.endswith(".")), len(lines) - 1)
    return " ".join(line.strip() for line in lines[: ends + 1])


def _file(module: str, package: Path) -> Path:
    path = package.parent / module.replace(".", "/")
    if path.is_dir():
        return path / ("recipe.py" if path.parent.parent.name == "recipes" else "__init__.py")
    return path.with_suffix(".py")


def mechanism_of(path: Path) -> ast.ClassDef | None:
    """The dataclass that a file is about: the one that begins like its name, else the last public one."""
    kinds = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    public = [node for node in kinds if not node.name.startswith("_") and _is_dataclass(node)]
    named = [node for node in public if node.name.lower().startswith(path.stem.replace("_", ""))]
    found = named or public
    return found[-1] if found else None


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
