"""What all tests stand on."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Libraries and tests are half a million objects that stay: each run that is launched would look through them."""
    gc.collect()
    gc.freeze()
