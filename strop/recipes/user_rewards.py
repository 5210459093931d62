"""Parser of reward names: `grade.py:closeness+style.py:short`, and `env` for the environment's own reward."""

from __future__ import annotations

from pathlib import Path

from strop.filter.rewards.python_function import PythonFunction
from strop.roles import Reward


def own_rewards(text: str, judged: tuple[Reward, ...]) -> tuple[Reward, ...]:
    """The rewards named in a text, joined by +; their weighted sum counts, `rewards.0.weight=0.5` weights the first."""
    parts = [text] if Path(text.rpartition(":")[0]).is_file() else text.split("+")  # a file name may contain +
    named = [judged if part.strip() == "env" else (PythonFunction(part.strip()),) for part in parts]
    return tuple(reward for rewards in named for reward in rewards)
