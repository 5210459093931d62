"""Train/held-out split of generated tasks by the hash of the prompt, the same for every seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

from strop.errors import ConfigurationError
from strop.types import Task

HELDOUT_ONE_IN = 10
_MOST_TRIES = 20_000


def is_heldout(text: str) -> bool:
    """Which side a text is on; the same on every machine, in every environment and for every seed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % HELDOUT_ONE_IN == 0


def prompt_of(task: Task) -> str:
    """What is asked: the first thing the user says, so that a later "try again" changes nothing."""
    return next(message.content for message in task.messages if message.role == "user")


def draw(key: str, heldout: bool, make: Callable[[random.Random], Task]) -> Task:
    """The first task of the wanted side in the stream that `key` names."""
    stream = random.Random(f"{key}/{'heldout' if heldout else 'train'}")
    for _ in range(_MOST_TRIES):
        task = make(stream)
        if is_heldout(prompt_of(task)) == heldout:
            return task
    raise ConfigurationError(
        f"no {'held-out' if heldout else 'train'} task among {_MOST_TRIES} draws for {key}: the environment has too "
        f"few tasks"
    )


def require_level(name: str, level: int, lowest: int, highest: int) -> None:
    """Refuse a level the environment does not have."""
    if not lowest <= level <= highest:
        raise ConfigurationError(f"{name} has levels {lowest} to {highest}, got {level}")
