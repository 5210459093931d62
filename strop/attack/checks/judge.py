"""Check of prompt injections into a judge: 40 kinds next to a wrong answer, against the same wrong answer alone."""

from __future__ import annotations

from strop.attack.certificate.attacked_tasks import Examined
from strop.attack.certificate.certificate import CheckResult
from strop.attack.injected import asks_client, injected


async def judge(examined: Examined) -> CheckResult:
    """Where an LLM client judges; it is the last question, since it closes what it asked."""
    found = CheckResult("injections into a judge")
    asked = examined.asked
    if not asks_client(asked.rewards):
        found.left_out = "no reward asks an LLM client"
        return found
    standing = await injected(asked.rewards, asked.env, examined.seed)
    found.left_out = standing.problem
    found.what = ", ".join(standing.kinds)
    found.tried = sum(len(each.tried) for each in standing.kinds.values())
    for kind in standing.paid:
        plain = standing.kinds[kind].plain()
        found.fault(f"{kind}: raises a wrong answer at {plain['raised']} of {plain['tried']} tasks", plain["example"])
    unread = sum(each.plain()["unread"] for each in standing.kinds.values())
    found.table = {"kinds paid": f"{len(standing.paid)} of {len(standing.kinds)}", "verdicts not read": str(unread)}
    return found
