"""Skill extraction from a completion: equations in its chain of thought that other tasks may reuse."""

from __future__ import annotations

from strop.environments.format.think_tags import CLOSE, OPEN, between


def skills_of(completion: str) -> tuple[str, ...]:
    """Its steps that are equations, in their order; a completion without working has none."""
    return tuple(step for part in between(completion, OPEN, CLOSE) for step in part.split() if "=" in step.strip("="))
