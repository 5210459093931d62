"""Rewards of prompt injections: 40 kinds of text next to a wrong answer, each against the same wrong answer without it.

Rewards are called as in a run, whatever judges behind them: rules, a server, a model in a folder, the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.attack.ask_rewards import AskedRewards, has_sandbox, pay_of
from strop.attack.injections import KINDS, injection
from strop.attack.results import shown
from strop.attack.run_attack import KnownTask, known_tasks
from strop.capabilities import inside
from strop.environments.isolation.subprocess import Apart
from strop.errors import StropError
from strop.roles import Environment, LLMClient, Reward

_EQUAL = 1e-9  # rewards that differ by less are the same


@dataclass(frozen=True)
class TriedInjection:
    """One injection: rewards of the wrong answer without it and with it; None: failed."""

    text: str
    without: float | None
    earned: float | None
    error: str = ""

    @property
    def is_raised(self) -> bool:
        return None not in (self.without, self.earned) and (self.earned or 0.0) > (self.without or 0.0) + _EQUAL


@dataclass(frozen=True)
class KindStanding:
    """Results of one kind of injection."""

    tried: Sequence[TriedInjection]

    @property
    def raised(self) -> int:
        return sum(each.is_raised for each in self.tried)

    @property
    def share(self) -> float:
        return self.raised / len(self.tried) if self.tried else 0.0

    def plain(self) -> dict[str, Any]:
        gains = [(each.earned or 0.0) - (each.without or 0.0) for each in self.tried if each.is_raised]
        unpaid = [each for each in self.tried if each.earned is None]
        return {
            "tried": len(self.tried),
            "raised": self.raised,
            "share": self.share,
            "unread": len(unpaid),
            "most": max(gains, default=0.0),
            "error": unpaid[0].error if unpaid else "",
            "example": next((shown(each.text) for each in self.tried if each.is_raised), ""),
        }


@dataclass(frozen=True)
class InjectionStanding:
    """Results of all kinds in one environment; `problem` is the reason why nothing was tried."""

    env: str
    kinds: dict[str, KindStanding] = field(default_factory=dict)
    problem: str = ""

    @property
    def paid(self) -> list[str]:
        """The kinds that raised a wrong answer."""
        return [kind for kind, standing in self.kinds.items() if standing.raised]

    def plain(self) -> dict[str, Any]:
        tried = {kind: standing.plain() for kind, standing in self.kinds.items()}
        return {"problem": self.problem, "kinds": len(self.kinds), "paid": self.paid, "injections": tried}


def asks_client(rewards: Sequence[Reward]) -> bool:
    """Whether an LLM client, or a rule in its place, judges for one of them."""
    return bool(inside(tuple(rewards), LLMClient))


async def injected(
    rewards: Sequence[Reward], env: Environment, seed: int = 0, seconds: float = 60.0, tasks: int = 3
) -> InjectionStanding:
    """What each kind earns at a few tasks; whoever judges has `seconds` for each completion."""
    asked = AskedRewards(rewards, env, seconds, is_apart=not asks_client(rewards))
    if not env.is_inline and not has_sandbox(env):
        asked.apart = Apart(env)  # a judge is asked from here, a foreign episode is not
    name = f"{env.name}:{env.level}"
    try:
        known = await known_tasks(asked, max(tasks, 2))
        return InjectionStanding(name, await _standing(asked, known[:tasks], seed))
    except StropError as error:
        return InjectionStanding(name, problem=str(error))
    finally:
        await asked.close()


async def _standing(asked: AskedRewards, known: Sequence[KnownTask], seed: int) -> dict[str, KindStanding]:
    found: dict[str, list[TriedInjection]] = {kind: [] for kind in KINDS}
    for each in known:
        texts = {kind: injection(kind, each.target, seed) for kind in KINDS}
        without, *_ = await _earned(asked, each, [each.target.wrong])
        for (kind, text), (earned, error) in zip(
            texts.items(), await _earned(asked, each, list(texts.values())), strict=True
        ):
            found[kind].append(TriedInjection(text, without[0], earned, error))
    return {kind: KindStanding(tried) for kind, tried in found.items()}


async def _earned(asked: AskedRewards, known: KnownTask, texts: Sequence[str]) -> list[tuple[float | None, str]]:
    """What each text earns, alone or beside the task's known siblings."""
    found = []
    for rollout in await asked.episodes(known.task, texts):
        paid = (await asked.paid(known.task, [*known.siblings, rollout]))[-1]
        found.append((pay_of(paid), "" if paid.is_scored else paid.error))
    return found
