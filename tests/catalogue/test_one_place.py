"""A paper's whole code is in one file or folder: `python -m tests.catalogue.test_one_place` prints where it is not.

Code of a paper is what its recipe alone uses, directly or through other modules, and what nothing imports and its
docstring says is the paper's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from strop.catalogue.papers import find_papers, named_papers
from strop.catalogue.record import PACKAGE
from tests.import_graph import homes, importers, modules, owners

MOST_ELSEWHERE = 0.05  # share of the papers
CLASSICS = ("classics", "studies")  # their parts belong to rooms, whoever uses them
WHY = {
    "strop.environments.bundled.": "bundled environment: found in that folder by `env=`",
    "strop.environments.judging.": "environment that judges are asked about: found in that folder by LLM clients",
    "strop.standins.": "stand-in for an LLM: a mechanism knows nothing of it",
    "strop.recipes.": "second recipe of the paper",
}


def elsewhere(package: Path = PACKAGE) -> Mapping[str, list[str]]:
    """By paper, the modules of its code that are not in its file or folder."""
    found: dict[str, list[str]] = {}
    inside, alone, users = homes(package), dict(owners(package)), importers(package)
    alone |= {name: keys[0] for name, keys in named_papers(package).items() if len(keys) == 1 and not users[name]}
    for paper in find_papers(package):
        if paper.record.group in CLASSICS:
            continue
        home = paper.record.module
        own = [name for name, key in alone.items() if key == paper.key and not f"{name}.".startswith(f"{home}.")]
        if outside := [name for name in own if name not in inside or inside[name] == paper.key]:
            found[paper.key] = sorted(outside)
    return found


def why(module: str) -> str:
    return next((reason for place, reason in WHY.items() if module.startswith(place)), "")


def papers_of_classes() -> int:
    return sum(paper.record.group not in CLASSICS for paper in find_papers())


def test_a_papers_code_is_in_one_place() -> None:
    found = elsewhere()
    assert len(found) <= MOST_ELSEWHERE * papers_of_classes(), found
    assert not [(key, name) for key, names in found.items() for name in names if not why(name)], found


def test_code_elsewhere_is_found(tmp_path: Path) -> None:
    record = '"""One.\n\nTitle: One\nPaper: arXiv 2501.00001 (2025)\nClaim: More.\n"""\n'
    files = {
        "pyproject.toml": "",
        "strop/recipes/reward/one.py": f"{record}from strop.filter import apart, shared\n",
        "strop/recipes/reward/two/recipe.py": f"{record}from strop.recipes.reward.two.part import Part\n",
        "strop/recipes/reward/two/part.py": '"""Its part."""\nfrom strop.filter import shared\n',
        "strop/filter/__init__.py": "",
        "strop/filter/apart.py": "import strop.filter.behind\n",
        "strop/filter/behind.py": "",
        "strop/filter/shared.py": "",
        "strop/filter/unused.py": '"""More.\n\nPapers: two\n"""\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert elsewhere(tmp_path / "strop") == {
        "one": ["strop.filter.apart", "strop.filter.behind"],
        "two": ["strop.filter.unused"],
    }


def test_what_a_scoring_process_imports_is_light() -> None:
    """Files of papers' folders that are no recipes: a process that scores completions may import each alone."""
    names = [name for name in modules() if name.endswith((".reward", ".environment"))]
    code = (
        f"import importlib, sys\nfor name in {names}:\n    importlib.import_module(name)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(names) > 12 and done.stdout == "False\n", done.stderr


if __name__ == "__main__":
    apart, count = elsewhere(), papers_of_classes()
    for key, names in apart.items():
        for each in names:
            print(f"{key}: {each}: {why(each) or 'NO REASON'}")
    print(f"{count - len(apart)} of {count} papers in one file or folder: {1 - len(apart) / count:.1%}")
