"""Probe of a run's rewards with constant completions before training; rewards that pay them are refused.

The probe leaves the run unchanged: rewards and stateful episodes are copied, and random streams restored.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch

from strop.attack.ask_rewards import AskedRewards
from strop.attack.probe import TASKS, Probed, probed
from strop.capabilities import Closes, Learns, Meets, Observes, Remembers, Stores, inside
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.launch.checks.reward_rehearsal import rehearsed
from strop.roles import Environment, LLMClient, Reward
from strop.run import Run

_SECONDS = 3.0  # for all episodes together
_SHOWN = 3  # completions


def probe_rewards(run: Run) -> list[str]:
    """Warnings about what the rewards pay; ConfigurationError where they pay constant completions like right
    answers.
    """
    if any(each.pays_blindly for each in inside(run.rewards, Reward)):
        return []
    found = [_probe(run, env, _SECONDS / len(envs)) for envs in [_different(run.envs)] for env in envs]
    if refusals := [each.refusal for each in found if each.refusal]:
        if not run.allow_constant_completions:
            raise ConfigurationError("\n".join(refusals))
        return refusals
    faults = [_fault(each) for each in found if each.faults]
    warnings = [warning for each in found for warning in _warnings(each)]
    if faults and not run.allow_constant_completions:
        raise ConfigurationError(
            "\n".join(faults)
            + "\nA policy would learn to say that and nothing else: mend what pays (strop attack tries "
            "more), take another episode, or train all the same with allow_constant_completions=true"
        )
    return [*faults, *warnings]


def _different(envs: tuple[Environment, ...]) -> list[Environment]:
    return list({repr(env): env for env in envs}.values())


def _probe(run: Run, env: Environment, seconds: float) -> Probed:
    name = f"{env.name}:{env.level}"
    if isinstance(env, Table) and not env.is_answered and any(each.is_relative for each in inside(run.rewards, Reward)):
        return Probed(name, problem="siblings are compared with each other, and no row says what is right")
    asking: list[object] = [*inside((run.rewards, env), Meets), *_models((run.rewards, env))]
    if asking:
        return Probed(name, problem=f"{type(asking[0]).__name__} asks a model, which costs and is not there yet")
    rewards, env = _copies(run.rewards, env)
    with _same_random_state():
        asked = AskedRewards(rewards, env, min(run.reward_seconds, _SECONDS), is_apart=False)
        return asyncio.run(_closed_after(asked, seconds))


async def _closed_after(asked: AskedRewards, seconds: float) -> Probed:
    try:
        told = await rehearsed(asked)
        if told.refusal:
            return Probed(asked.env.name, refusal=told.refusal)
        return replace(await probed(asked, TASKS, seconds), warning=told.warning)
    finally:
        await asked.close()


def _models(value: object) -> list[LLMClient]:
    """LLM clients that cost something: all but those that answer by rules."""
    return [each for each in inside(value, LLMClient) if not isinstance(each, Procedural | Canned)]


def _copies(rewards: tuple[Reward, ...], env: Environment) -> tuple[tuple[Reward, ...], Environment]:
    """Whatever keeps something, copied; an episode without a memory stands for itself, tables and all."""
    keeps = any(inside(env, kind) for kind in (Remembers, Stores, Learns, Observes, Closes))
    known = {} if keeps else {id(env): env}
    copied: tuple[tuple[Reward, ...], Environment] = deepcopy((rewards, env), known)
    return copied


@contextmanager
def _same_random_state() -> Iterator[None]:
    """Random numbers used within change none after it."""
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
    return f"rewards of {found.env} pay a completion that never changes: {told}{more}"


def _warnings(found: Probed) -> list[str]:
    warnings = [found.warning] if found.warning else []
    if found.problem:
        problem = f"constant completions were not tried in {found.env}: {found.problem}; strop attack tries them"
        return warnings or [problem]
    if found.is_dominated:
        warnings.append(f"one answer, {found.frequent!r}, solves {found.frequent_share:.0%} of tasks of {found.env}")
    if found.is_cut:
        warnings.append(
            f"constant completions were tried at {found.tasks} tasks of {found.env} in place of {found.wanted}, "
            "which is what a few seconds allow; strop attack tries more"
        )
    return warnings
