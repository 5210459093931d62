"""Proof of delivery: whoever loads a version answers with the fingerprint of what it really holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from strop.errors import DeliveryError
from strop.roles import Engine
from strop.types import WeightVersion


async def deliver(version: WeightVersion, engines: Sequence[Engine]) -> None:
    """Let every engine load a version; one that answers with other weights stops the run."""
    answers = await asyncio.gather(*(engine.load(version) for engine in engines))
    for number, (engine, answer) in enumerate(zip(engines, answers, strict=True)):
        check(version, answer, f"engine {number} ({type(engine).__name__})")


def check(version: WeightVersion, answer: str, name: str) -> None:
    """Raise unless the answer is the fingerprint of this version."""
    if answer != version.fingerprint:
        raise DeliveryError(
            f"{name} samples from weights {answer} after step {version.step}, "
            f"whose published weights are {version.fingerprint}"
        )
