"""Generated pages are what the tree says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strop.catalogue.pages import all_pages, write_pages

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return all_pages()


def test_pages_are_not_stale(made: dict[str, str]) -> None:
    pages = {ROOT / "docs" / name: text for name, text in made.items()}
    stale = [path.name for path, text in pages.items() if not path.is_file() or path.read_text() != text]
    gone = [path.name for folder in ("papers", "rooms") for path in (ROOT / "docs" / folder).glob("*.md")]
    stale += sorted(set(gone) - {path.name for path in pages})
    assert not stale, f"run `make pages` and commit docs/: {len(stale)} pages are stale, among them {stale[:5]}"


def test_pages_are_written_where_they_changed_and_removed_where_nothing_is_left(tmp_path: Path) -> None:
    recipe = tmp_path / "strop" / "recipes" / "classics" / "grpo.py"
    recipe.parent.mkdir(parents=True)
    recipe.write_text('"""Groups.\n\nTitle: Of groups\nClaim: It learns.\n"""\n')
    docs, package = tmp_path / "docs", tmp_path / "strop"
    assert write_pages(docs, package) == [docs / "papers.md", docs / "papers" / "grpo.md"]
    assert not write_pages(docs, package)
    written = (docs / "papers" / "grpo.md").read_text()
    (docs / "papers" / "gone.md").write_text("of nothing")
    (docs / "papers" / "grpo.md").write_text("old")
    assert {path.name for path in write_pages(docs, package)} == {"gone.md", "grpo.md"}
    assert not (docs / "papers" / "gone.md").exists() and (docs / "papers" / "grpo.md").read_text() == written


def test_a_page_says_what_a_reader_wants(made: dict[str, str]) -> None:
    page = made["papers/nft.md"]
    for part in ("**Claim.**", "**Reading.**", "strop train nft", "objective/nft.py", "`negative_floor`", "**Tests.**"):
        assert part in page
    assert "[nft](papers/nft.md)" in made["papers.md"]
    assert "- [`clip`](../../strop/training/losses/clip.py): PPO's clipped" in made["rooms/training-losses.md"]


def test_every_link_leads_somewhere(made: dict[str, str]) -> None:
    for name, text in made.items():
        for target in re.findall(r"\]\((?!https)([^)]+)\)", text):
            assert (ROOT / "docs" / name).parent.joinpath(target).resolve().exists(), f"{name}: {target}"
