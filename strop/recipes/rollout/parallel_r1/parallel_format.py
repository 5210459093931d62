"""Parallel-thinking format of completions (Parallel-R1, 2509.07980): a block of paths, then a summary.

The paper's tags are words (<Parallel>, <Path>, <Summary>); here they are one character each, which the bundled model
learns in a few steps: `<think>{[3+4=7][3+4=7]}(7)</think>7`.
"""

from __future__ import annotations

from strop.environments.format.think_tags import CLOSE

OPEN_BLOCK, CLOSE_BLOCK = "{", "}"
OPEN_PATH, CLOSE_PATH = "[", "]"
OPEN_SUMMARY, CLOSE_SUMMARY = "(", ")"
_FEWEST = 2  # paths of a block


def block(paths: list[str]) -> str:
    """Paths as they stand behind what opened a block, up to where their summary begins."""
    return "".join(f"{OPEN_PATH}{path}{CLOSE_PATH}" for path in paths) + CLOSE_BLOCK + OPEN_SUMMARY


def num_valid_blocks(text: str) -> int:
    """How many blocks there are; 0 where one of them has fewer than two paths or no summary behind it."""
    parts = text.split(OPEN_BLOCK)[1:]
    return len(parts) if all(map(_is_valid, parts)) else 0


def _is_valid(part: str) -> bool:
    inside, closed, behind = part.partition(CLOSE_BLOCK)
    return bool(closed) and inside.count(OPEN_PATH) >= _FEWEST and behind.startswith(OPEN_SUMMARY)


def in_parallel(completion: str, paths: int) -> str:
    """A demonstration whose working is found on several paths and summed up as its answer."""
    working, closed, answer = completion.rpartition(CLOSE)
    opening, _, steps = working.rpartition(">")
    told = f"{OPEN_BLOCK}{block([steps] * paths)}{answer}{CLOSE_SUMMARY}"
    return f"{opening}>{told}{CLOSE}{answer}" if closed else completion
