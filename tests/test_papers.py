"""The tree is read, not registered: what a docstring names is found, with its recipes, tests and results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from strop.papers import Paper, find_papers, unlisted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with a mechanism, a sibling whose name starts alike, recipes, a test and a result."""
    files = {
        "strop/papers.tsv": 'key\tclass\ttitle\nalpha\tX\tThe "Alpha" paper\nbeta\tX\tBeta\ngamma\tX\tGamma\n',
        "strop/train/losses/clip.py": '"""Clips.\n\nPapers: alpha, beta\n"""\n',
        "strop/train/losses/clip_more.py": '"""Clips more."""\n',
        "strop/recipes/setting.py": '"""Shared."""\n',
        "strop/recipes/first.py": '"""One."""\nfrom strop.train.losses.clip import Clip\ndef first(): pass\n',
        "strop/recipes/second.py": '"""Two.\n\nPapers: beta\n"""\ndef second(): pass\n',
        "strop/recipes/third.py": '"""Three."""\nfrom strop.train.losses import clip_more\ndef third(): pass\n',
        "tests/train/test_clip.py": "from strop.train.losses.clip import Clip\n",
        "tests/train/test_more.py": "from strop.train.losses.clip_more import More\n",
        "effects/results/alpha.json": json.dumps({"verdict": "holds", "difference": 0.1, "arms": {}}),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "strop"


def test_a_paper_is_joined_with_what_exists(tree: Path) -> None:
    alpha, beta, gamma = find_papers(tree)
    assert alpha.title == 'The "Alpha" paper'
    assert alpha.mechanisms == ("strop.train.losses.clip",)
    assert alpha.recipes == ("strop.recipes.first",)
    assert alpha.tests == ("tests/train/test_clip.py",)
    assert alpha.effect == {"verdict": "holds", "difference": 0.1}
    assert beta.recipes == ("strop.recipes.first", "strop.recipes.second")
    assert gamma == Paper("gamma", "Gamma", (), (), (), None)


def test_what_recipes_share_counts_for_all_of_them(tree: Path) -> None:
    (tree / "recipes" / "setting.py").write_text('"""Shared."""\nfrom strop.train.losses.clip import Clip\n')
    (tree / "recipes" / "second.py").write_text('"""Two."""\nimport strop.recipes.setting\ndef second(): pass\n')
    alpha = find_papers(tree)[0]
    assert alpha.recipes == ("strop.recipes.first", "strop.recipes.second")


def test_an_installed_package_has_no_tests(tree: Path, tmp_path: Path) -> None:
    assert find_papers(tree, checkout=tmp_path / "elsewhere")[0].tests == ()


def test_a_key_that_is_not_listed_is_found(tree: Path) -> None:
    assert unlisted(tree) == {}
    (tree / "stray.py").write_text('"""Stray.\n\nPapers: delta\n"""\n')
    assert unlisted(tree) == {"delta": "strop.stray"}


def test_the_project_itself() -> None:
    papers = find_papers()
    assert unlisted() == {}
    assert len({paper.key for paper in papers}) == len(papers) > 200
    found = {paper.key: paper for paper in papers}
    assert "strop.filter.gates.successes" in found["expert-iteration"].mechanisms
    assert "strop.recipes.objective.expert_iteration" in found["expert-iteration"].recipes
    assert set(asdict(papers[0])) == {"key", "title", "mechanisms", "recipes", "tests", "effect"}
