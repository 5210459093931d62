"""Constant completions are tried on a run's rewards before it begins, and a run whose rewards pay them is refused.

Nothing of the run is touched: rewards and environments with a memory are copied, and random streams put back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import torch

from strop.attack.asked import AskedRewards
from strop.attack.probe import TASKS, Probed, probed
from strop.capabilities import Closes, Learns, Meets, Observes, Remembers, Stores, inside
from strop.errors import ConfigurationError
from strop.generate.llm_clients.canned import Canned
from strop.generate.llm_clients.procedural import Procedural
from strop.roles import Adviser, Reward, World
from strop.run import Run

_SECONDS = 3.0  # for all environments together
_SHOWN = 3  # completions


def probe_rewards(run: Run) -> list[str]:
    """Doubts about what the rewards pay; ConfigurationError where they pay constant completions like right answers."""
    if any(each.pays_blindly for each in inside(run.rewards, Reward)):
        return []
    found = [_probe(run, world, _SECONDS / len(worlds)) for worlds in [_different(run.worlds)] for world in worlds]
    faults = [_fault(each) for each in found if each.faults]
    doubts = [doubt for each in found for doubt in _doubts(each)]
    if faults and not run.allow_constant_completions:
        raise ConfigurationError(
            "\n".join(faults)
            + "\nA policy would learn to say that and nothing else: mend what pays (strop attack tries "
            "more), take another environment, or train all the same with allow_constant_completions=true"
        )
    return [*faults, *doubts]


def _different(worlds: tuple[World, ...]) -> list[World]:
    return list({repr(world): world for world in worlds}.values())


def _probe(run: Run, world: World, seconds: float) -> Probed:
    name = f"{world.name}:{world.level}"
    asking: list[object] = [*inside((run.rewards, world), Meets), *_models((run.rewards, world))]
    if asking:
        return Probed(name, problem=f"{type(asking[0]).__name__} asks a model, which costs and is not there yet")
    rewards, world = _copies(run.rewards, world)
    with _same_chance():
        asked = AskedRewards(rewards, world, min(run.reward_seconds, _SECONDS), is_apart=False)
        return asyncio.run(_closed_after(asked, seconds))


async def _closed_after(asked: AskedRewards, seconds: float) -> Probed:
    try:
        return await probed(asked, TASKS, seconds)
    finally:
        await asked.close()


def _models(value: object) -> list[Adviser]:
    """Advisers that cost something: all but those that answer by rules."""
    return [each for each in inside(value, Adviser) if not isinstance(each, Procedural | Canned)]


def _copies(rewards: tuple[Reward, ...], world: World) -> tuple[tuple[Reward, ...], World]:
    """Whatever keeps something, copied; an environment without a memory stands for itself, tables and all."""
    keeps = any(inside(world, kind) for kind in (Remembers, Stores, Learns, Observes, Closes))
    known = {} if keeps else {id(world): world}
    copied: tuple[tuple[Reward, ...], World] = deepcopy((rewards, world), known)
    return copied


@contextmanager
def _same_chance() -> Iterator[None]:
    """What is drawn within changes no draw after it."""
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])


def _fault(found: Probed) -> str:
    told = "; ".join(each.told() for each in found.faults[:_SHOWN])
    others = len(found.faults) - _SHOWN
    more = f", and {others} other constant completions" if others > 0 else ""
    return f"rewards of {found.world} pay a completion that never changes: {told}{more}"


def _doubts(found: Probed) -> list[str]:
    if found.problem:
        return [f"constant completions were not tried in {found.world}: {found.problem}; strop attack tries them"]
    doubts = []
    if found.is_dominated:
        doubts.append(f"one answer, {found.frequent!r}, solves {found.frequent_share:.0%} of tasks of {found.world}")
    if found.is_cut:
        doubts.append(
            f"constant completions were tried at {found.tasks} tasks of {found.world} in place of {found.wanted}, "
            "which is what a few seconds allow; strop attack tries more"
        )
    return doubts
