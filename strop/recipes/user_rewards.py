"""Rewards by name: `grade.py:closeness+style.py:short`, and `env` for what the environment itself says."""

from __future__ import annotations

from pathlib import Path

from strop.filter.rewards.python_function import PythonFunction
from strop.roles import Reward


def own_rewards(text: str, judged: tuple[Reward, ...]) -> tuple[Reward, ...]:
    """The rewards a text names, joined by +; they add up, and `rewards.0.weight=0.5` weighs the first."""
    parts = [text] if Path(text.rpartition(":")[0]).is_file() else text.split("+")  # which a file name may hold
    named = [judged if part.strip() == "env" else (PythonFunction(part.strip()),) for part in parts]
    return tuple(reward for rewards in named for reward in rewards)
