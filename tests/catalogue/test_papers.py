"""The tree is read, not registered: what a docstring names is found, with its recipes, tests and results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from strop.catalogue.papers import find_papers, homeless
from strop.catalogue.record import docstring_of, labelled, records


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with mechanisms, recipes of three papers, what all recipes share, a test and a result."""
    files = {
        "pyproject.toml": "",
        "strop/training/losses/clip.py": '"""Clips.\n\nPapers: alpha\n"""\n',
        "strop/training/losses/clip_more.py": '"""Clips more."""\n',
        "strop/control/admissions/lag.py": '"""An admission.\n\nPapers: beta-2\n"""\n',
        "strop/recipes/setting.py": '"""Shared."""\nfrom strop.control.admission.lag import Lag\n',
        "strop/recipes/classics/alpha.py": '"""1.\n\nTitle: The "A"\n    paper\nPaper: arXiv 2501.00001 (2025)\n"""\n',
        "strop/recipes/classics/plain.py": '"""Nobody\'s."""\nfrom strop.training.losses.clip import Clip\n',
        "strop/recipes/system/beta_2.py": '"""Two.\n\nTitle: Beta\nClaim: Twice\n    as fast.\n"""\n',
        "strop/recipes/system/second.py": '"""Also two.\n\nPapers: beta-2\n"""\n',
        "strop/recipes/system/one_gamma.py": '"""Three.\n\nKey: 1-gamma\nTitle: Gamma\n"""\n',
        "tests/training/test_clip.py": "from strop.training.losses.clip import Clip\n",
        "tests/training/test_more.py": "from strop.training.losses.clip_more import More\n",
        "tests/test_recipes.py": 'build(recipe_named("one_gamma"))\n',
        "effects/results/alpha.json": json.dumps({"verdict": "holds", "difference": 0.1, "arms": {}}),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "strop"


def test_a_paper_is_joined_with_what_exists(tree: Path) -> None:
    _, alpha, beta = find_papers(tree)
    assert alpha.record.title == 'The "A" paper'
    assert alpha.record.address == "https://arxiv.org/abs/2501.00001"
    assert alpha.mechanisms == ("strop.training.losses.clip",)
    assert alpha.tests == ("tests/training/test_clip.py",)
    assert alpha.effect == {"verdict": "holds", "difference": 0.1}
    assert beta.key == "beta-2" and beta.record.claim == "Twice as fast." and beta.effect is None


def test_a_recipe_counts_only_if_it_bears_the_key_or_names_it(tree: Path) -> None:
    """`plain` uses alpha's loss and every recipe beta's admission: neither is theirs."""
    _, alpha, beta = find_papers(tree)
    assert alpha.recipes == ("strop.recipes.classics.alpha",)
    assert beta.recipes == ("strop.recipes.system.beta_2", "strop.recipes.system.second")


def test_a_setting_of_existing_parts_has_its_recipe_as_mechanism(tree: Path) -> None:
    gamma = find_papers(tree)[0]
    assert gamma.key == "1-gamma"
    assert gamma.mechanisms == gamma.recipes == ("strop.recipes.system.one_gamma",)
    assert gamma.tests == ("tests/test_recipes.py",)


def test_an_installed_package_says_that_it_has_no_tests(tree: Path) -> None:
    assert find_papers(tree)[1].tests
    (tree.parent / "pyproject.toml").unlink()
    assert [paper.tests for paper in find_papers(tree)] == [None, None, None]


def test_a_key_without_a_home_is_found(tree: Path) -> None:
    assert homeless(tree) == {}
    (tree / "stray.py").write_text('"""Stray.\n\nPapers: delta\n"""\n')
    assert homeless(tree) == {"delta": "strop.stray"}


def test_labelled_lines_go_on_where_they_are_indented() -> None:
    text = "What it does.\n\nTitle: A\n    b\nClaim: c\nnot of it\nReading: d\n\n    nor this\n"
    assert labelled(text) == {"Title": "A b", "Claim": "c", "Reading": "d"}


def test_only_the_docstring_of_a_file_is_read(tmp_path: Path) -> None:
    """Help lists all recipes: their code would take longer to parse than everything else."""
    for text, said in (('# A\n\nr"""One.\n\n    Two.\n    """\n)', "One.\n\nTwo."), ("a = 'b'\n", ""), ("", "")):
        (tmp_path / "file.py").write_text(text)
        assert docstring_of(tmp_path / "file.py") == said


def test_every_paper_of_the_project_has_a_whole_record() -> None:
    assert homeless() == {}
    found = records()
    papers = [each for each in found.values() if each.title]
    assert len({each.key for each in papers}) == len(papers) >= 74
    for each in found.values():
        assert each.line.endswith(".") and len(each.line) <= 117, f"{each.name}: one sentence in the first line"
        assert bool(each.title) == bool(each.paper) == bool(each.claim), f"{each.name}: title, paper and claim together"
    for each in papers:
        assert each.group != "studies", f"{each.name} is a paper's, so it belongs to its class"
        assert re.fullmatch(r"arXiv \d{4}\.\d{4,5} \(20\d\d\)", each.paper), f"{each.name}: {each.paper}"
        if each.name != "sapo_sharing":  # two papers call themselves so, and the other one's recipe was there first
            assert each.key.replace("-", "_").replace(".", "_") == each.name or each.key[0].isdigit(), each.name


def test_papers_of_the_project_name_their_own_recipes_only() -> None:
    papers = {paper.key: paper for paper in find_papers()}
    assert papers["grpo"].recipes == ("strop.recipes.classics.grpo",)
    assert papers["areal"].recipes == ("strop.recipes.system.areal",)
    assert "strop.filter.gates.successes_only" in papers["expert-iteration"].mechanisms
    assert {"key", "title", "mechanisms", "recipes", "tests", "effect"} <= set(papers["grpo"].as_json())
    untested = [key for key, paper in papers.items() if not paper.tests]
    assert not untested, f"no test is about {untested}"
