"""Check of determinism: the same reward when called twice, in another order, alone, in a new process, a moment
later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from strop.attack.ask_rewards import AskedRewards, pay_of
from strop.attack.certificate.attacked_tasks import EQUAL, Examined, is_many
from strop.attack.certificate.certificate import CheckResult
from strop.attack.run_attack import KnownTask
from strop.types import Rollout

_TASKS = 12
_MOMENT = 1.3  # seconds: a clock that counts whole ones has moved
_MEANINGS = {
    "asked twice": "the same completion earns something else when it is scored again: randomness, or time",
    "in another order": "what a completion earns depends on its place in the group",
    "alone": "what a completion earns depends on what stands beside it",
    "in a new process": "what a completion earns depends on what was asked before",
    "a moment later": "what a completion earns depends on when it is asked about",
}

Pays = list[list[float | None]]  # by task and completion


async def steady(examined: Examined) -> CheckResult:
    """Pay is compared between the first asking and each other one."""
    found = CheckResult("the same pay for the same completion", what="; ".join(_MEANINGS))
    if not examined.known:
        found.left_out = examined.problem
        return found
    asked, known = examined.asked, examined.known[:_TASKS]
    rollouts = [await asked.episodes(each.task, _texts(examined, each)) for each in known]
    first = await _groups(asked, rollouts)
    others = {"asked twice": await _groups(asked, rollouts)}
    if not asked.is_compared:  # a reward that compares may look at all of them
        others["in another order"] = await _groups(asked, rollouts, is_reversed=True)
        others["alone"] = [[(await _group(asked, [one]))[0] for one in each] for each in rollouts]
    others["in a new process"] = await _anew(examined, known, rollouts)
    await asyncio.sleep(_MOMENT)
    others["a moment later"] = await _groups(asked, rollouts)
    _compare(found, first, others)
    return found


def _compare(found: CheckResult, first: Pays, others: dict[str, Pays]) -> None:
    count = sum(map(len, first))
    found.tried = count * (1 + len(others))
    for name, again in others.items():
        changed = sum(
            not _is_equal(*pair) for pairs in zip(first, again, strict=True) for pair in zip(*pairs, strict=True)
        )
        found.table[name] = f"{changed} of {count} changed"
        if is_many(changed, count) or changed >= 2:
            found.fault(f"{_MEANINGS[name]} ({changed} of {count} completions)")


def _texts(examined: Examined, known: KnownTask) -> list[str]:
    return [known.shown, known.target.right, known.target.wrong, "0", "", examined.frame.replace("@", "7")]


async def _groups(asked: AskedRewards, rollouts: Sequence[Sequence[Rollout]], is_reversed: bool = False) -> Pays:
    if not is_reversed:
        return [await _group(asked, each) for each in rollouts]
    return [(await _group(asked, each[::-1]))[::-1] for each in rollouts[::-1]][::-1]


async def _group(asked: AskedRewards, rollouts: Sequence[Rollout]) -> list[float | None]:
    return [pay_of(each) for each in await asked.paid(rollouts[0].task, rollouts)]


async def _anew(examined: Examined, known: Sequence[KnownTask], rollouts: Sequence[Sequence[Rollout]]) -> Pays:
    """The last task first, and of each the last completion first, one by one unless rewards compare."""
    asked, found = examined.again(), Pays()
    try:
        if asked.is_compared:
            return await _groups(asked, rollouts)
        for each in reversed(known):
            earned = [(await asked.earned(each.task, [text]))[0] for text in _texts(examined, each)[::-1]]
            found.append(earned[::-1])
        return found[::-1]
    finally:
        await asked.close()


def _is_equal(one: float | None, other: float | None) -> bool:
    return one is other or (one is not None and other is not None and abs(one - other) <= EQUAL)
