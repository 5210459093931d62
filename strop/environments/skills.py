"""Skills in a completion: steps of its working that another task may need, and may be seen to use."""

from __future__ import annotations

from strop.environments.format.think_tags import CLOSE, OPEN, between


def skills_of(completion: str) -> tuple[str, ...]:
    """Its steps that are equations, in their order; a completion without working has none."""
    return tuple(step for part in between(completion, OPEN, CLOSE) for step in part.split() if "=" in step.strip("="))
