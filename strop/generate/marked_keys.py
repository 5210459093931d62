"""Random keys that also say which of several ways an engine shall sample a request; plain keys are never negative.

A strategy marks the keys of some attempts, and an engine that knows of ways takes the mark off again. An evaluation's
keys carry no mark, so it is always served plainly.
"""

from __future__ import annotations


def marked(key: int, way: int, ways: int) -> int:
    """A key below 0 that holds `way` of `ways`."""
    return -1 - (key * ways + way)


def read_mark(key: int, ways: int) -> tuple[int, int | None]:
    """The plain key, and its way, or None where it has no mark."""
    return (key, None) if key >= 0 else divmod(-1 - key, ways)
