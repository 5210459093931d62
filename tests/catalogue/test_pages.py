"""Generated pages are what the tree says now."""

from __future__ import annotations

from pathlib import Path

from strop.catalogue.pages import all_pages, write_pages

ROOT = Path(__file__).parent.parent.parent


def test_pages_are_not_stale() -> None:
    pages = {ROOT / "docs" / name: text for name, text in all_pages().items()}
    stale = [path.name for path, text in pages.items() if not path.is_file() or path.read_text() != text]
    gone = [path.name for folder in ("papers", "rooms") for path in (ROOT / "docs" / folder).glob("*.md")]
    stale += sorted(set(gone) - {path.name for path in pages})
    assert not stale, f"run `make pages` and commit docs/: {len(stale)} pages are stale, among them {stale[:5]}"


def test_pages_are_written_where_they_changed_and_removed_where_nothing_is_left(tmp_path: Path) -> None:
    first = write_pages(tmp_path)
    assert tmp_path / "papers.md" in first and not write_pages(tmp_path)
    (tmp_path / "papers" / "gone.md").write_text("of nothing")
    (tmp_path / "papers" / "grpo.md").write_text("old")
    assert {path.name for path in write_pages(tmp_path)} == {"gone.md", "grpo.md"}
    assert not (tmp_path / "papers" / "gone.md").exists()


def test_a_page_says_what_a_reader_wants() -> None:
    pages = all_pages()
    page = pages["papers/nft.md"]
    for part in ("**Claim.**", "**Reading.**", "strop train nft", "losses/nft.py", "`negative_floor`", "**Tests.**"):
        assert part in page
    assert "[nft](papers/nft.md)" in pages["papers.md"]
    assert "- [`clip`](../../strop/training/losses/clip.py): PPO's clipped" in pages["rooms/training-losses.md"]


def test_every_link_leads_somewhere() -> None:
    import re

    for name, text in all_pages().items():
        for target in re.findall(r"\]\((?!https)([^)]+)\)", text):
            assert (ROOT / "docs" / name).parent.joinpath(target).resolve().exists(), f"{name}: {target}"
