"""Plans: how a reply's working will go, without its results, between <plan> and </plan> before it."""

from __future__ import annotations

import re

from strop.environments.format.think_tags import CLOSE, OPEN, between

PLAN, PLANNED = "<plan>", "</plan>"


def planned(reply: str) -> str:
    """A reply with its plan before it; where it shows no working there is none to plan."""
    plan = plan_of(reply)
    return f"{PLAN}{plan}{PLANNED}{reply}" if plan else reply


def plan_of(reply: str) -> str:
    """The left side of each step of the working, with ? for the result of the step before: `47+12 ?+30`."""
    working = between(reply, OPEN, CLOSE)
    before, found = "", list[str]()
    for step in working[0].split() if working else ():
        left, _, result = step.partition("=")
        found.append(re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", "?", left, count=1) if before else left)
        before = result
    return " ".join(found)
