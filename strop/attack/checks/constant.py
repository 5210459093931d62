"""Check of constant completions: rewards of completions that never change."""

from __future__ import annotations

from strop.attack.certificate.attacked_tasks import Examined
from strop.attack.certificate.certificate import CheckResult
from strop.attack.probe import probed

_SECONDS = 60.0
_SHOWN = 8


async def constant_completions(examined: Examined) -> CheckResult:
    """As before every run, with more time."""
    asked = examined.asked
    told = await probed(asked, seconds=_SECONDS)
    found = CheckResult("constant completions", told.tasks * len(told.pays), left_out=told.problem)
    found.what = ", ".join(each.name for each in told.pays)
    found.table = {each.name: f"{each.share:.0%} in full, {each.mean:.2f} on average" for each in told.faults[:_SHOWN]}
    for each in told.faults[:_SHOWN]:
        found.fault(each.told(), each.name)
    if len(told.faults) > _SHOWN:
        found.fault(f"{len(told.faults) - _SHOWN} other constant completions are paid too")
    if told.is_dominated:
        found.warn(f"one answer, {told.frequent!r}, solves {told.frequent_share:.0%} of {told.tasks} tasks")
    if told.is_cut and not told.problem:
        found.left_out = f"{told.wanted - told.tasks} of {told.wanted} tasks: {_SECONDS:g} seconds were over"
    return found
