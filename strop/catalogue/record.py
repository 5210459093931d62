"""Record of a paper, parsed from its recipe's module docstring: what it does in one line, then labelled lines.

    Imitate the rollouts that were right, and nothing else.

    Title: Teaching Large Language Models to Reason with Reinforcement Learning
    Paper: arXiv 2403.04642 (2024)
    Claim: what the paper says that it gains, in one sentence.
    Reading: where paper, release and this recipe differ, and what was not found.
    Left out: what the paper has and this recipe has not.
    Acts: kept_share < 1
    Break: share=0: no rollout is left out

Continuation lines are indented. `Acts:` names the metrics that its mechanism moves, and their neutral values, `Break:`
fields that take away only the idea; see acts.py. The key is the name of the file or folder, with - for _; where
that is not the paper's, `Key:` gives it.
"""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
_LABELLED = re.compile(r"^(Title|Paper|Claim|Reading|Left out|Acts|Break|Key|Papers): *(.*)$")
_ARXIV = re.compile(r"arXiv (\d{4}\.\d{4,5})")


@dataclass(frozen=True)
class Record:
    """Parsed record of a recipe."""

    name: str  # of the recipe, and of its file
    group: str  # the folder: the class of the paper
    line: str
    key: str
    title: str = ""  # empty where a recipe is no paper's
    paper: str = ""
    claim: str = ""
    reading: str = ""
    left_out: str = ""
    acts: str = ""  # which metrics show that its mechanism does something, see acts.py
    breaks: str = ""  # fields that take away only the idea, see acts.py
    also: tuple[str, ...] = ()  # keys of further papers whose recipe this is

    @property
    def module(self) -> str:
        return f"strop.recipes.{self.group}.{self.name}"

    @property
    def address(self) -> str:
        """Of the paper, where it is on arXiv."""
        found = _ARXIV.search(self.paper)
        return f"https://arxiv.org/abs/{found.group(1)}" if found else ""

    def says(self, word: str) -> bool:
        """Whether a word stands anywhere in it."""
        text = " ".join((self.name, self.key, self.line, self.title, self.paper, self.claim, self.reading))
        return word.lower() in text.lower()


def recipe_files(package: Path = PACKAGE) -> dict[str, Path]:
    """The file of every recipe by name; that of a paper in a folder of its own is the folder's `recipe.py`."""
    rooms = package / "recipes"
    files = [*rooms.glob("*/[!_]*.py"), *rooms.glob("*/*/recipe.py")]
    return {_home(path).stem: path for path in sorted(files, key=lambda path: _home(path).stem)}


def recipe_of(word: str, package: Path = PACKAGE) -> str:
    """The name of the recipe that a word means: its name or its paper's key, in any case, with - or _.

    The word itself where it means none, or is a file.
    """
    spelled = _spelled(word)
    if word.endswith(".py") or spelled in (files := recipe_files(package)):
        return word if word.endswith(".py") else spelled
    return next((name for name, path in files.items() if _spelled(read_record(path).key) == spelled), word)


def _spelled(word: str) -> str:
    return re.sub(r"[-_. ]+", "_", word.strip().lower())


def _home(path: Path) -> Path:
    """What bears the recipe's name: its file, or its folder."""
    return path.parent if path.stem == "recipe" else path


def records(package: Path = PACKAGE) -> dict[str, Record]:
    """What every recipe says of itself, by name."""
    return {name: read_record(path) for name, path in recipe_files(package).items()}


def read_record(path: Path) -> Record:
    """The record in a file, which is not imported."""
    text, home = docstring_of(path), _home(path)
    said = labelled(text)
    return Record(
        name=home.stem,
        group=home.parent.name,
        line=text.splitlines()[0] if text else "",
        key=said.get("Key", home.stem.replace("_", "-")),
        title=said.get("Title", ""),
        paper=said.get("Paper", ""),
        claim=said.get("Claim", ""),
        reading=said.get("Reading", ""),
        left_out=said.get("Left out", ""),
        acts=said.get("Acts", ""),
        breaks=said.get("Break", ""),
        also=keys_in(said),
    )


def docstring_of(path: Path) -> str:
    """A module's docstring; what follows is not parsed."""
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.STRING:
                return inspect.cleandoc(ast.literal_eval(token.string))
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                break
    return ""


def labelled(docstring: str) -> dict[str, str]:
    """The labelled lines of a docstring, those that go on joined."""
    found: dict[str, str] = {}
    label = ""
    for line in docstring.splitlines():
        if match := _LABELLED.match(line):
            label = match.group(1)
            found[label] = match.group(2).strip()
        elif label and line.startswith(" "):
            found[label] = f"{found[label]} {line.strip()}".strip()
        else:
            label = ""
    return found


def keys_in(said: dict[str, str]) -> tuple[str, ...]:
    """The keys after `Papers:`."""
    return tuple(key.strip() for key in said.get("Papers", "").rstrip(".").split(",") if key.strip())
