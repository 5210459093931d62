"""Command `python -m strop.catalogue`: regenerates the generated pages of docs/."""

from __future__ import annotations

import sys

from strop.catalogue.choice import SUMMARY, summary_text
from strop.catalogue.pages import write_pages
from strop.catalogue.papers import is_checkout
from strop.catalogue.record import PACKAGE

if __name__ == "__main__":
    if not is_checkout(PACKAGE.parent):
        sys.exit(f"pages are written in a checkout of the project, and {PACKAGE} is installed without one")
    SUMMARY.write_text(summary_text())
    changed = write_pages(PACKAGE.parent / "docs")
    print(f"{len(changed)} pages changed" if changed else "all pages are as they should be")
