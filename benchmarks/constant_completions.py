"""Which families of reasoning-gym pay constant completions: writes the table of `docs/reasoning-gym.md`.

`python benchmarks/constant_completions.py`, about ten minutes on two cores; names after it probe these families alone
and print their rows.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from reasoning_gym.factory import DATASETS

from strop.attack.ask_rewards import AskedRewards
from strop.attack.probe import Probed, probed
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import StropError
from strop.filter.rewards.from_environment import Checked

PAGE = Path(__file__).parent.parent / "docs" / "reasoning-gym.md"
_SECONDS, _DEADLINE = 15.0, 10.0
_SHOWN = 4


@dataclass(frozen=True)
class Family:
    """A family and what came of its probe; `problem` says why there was none."""

    name: str
    probed: Probed

    @property
    def row(self) -> str:
        found = self.probed.faults
        told = ", ".join(f"`{each.name}` {each.share if each.paid else each.mean:.0%}" for each in found[:_SHOWN])
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        paid = sum(each.paid > 0 for each in found)
        how = "in full" if paid else "in part"
        return f"| {self.name} | {told}{more} | {how} | {self.probed.tasks} |"


def probe(name: str) -> Family:
    """One family, by its own scorer."""

    async def work() -> Probed:
        env = ReasoningGym(name)
        asked = AskedRewards((Checked((env,)),), env, _DEADLINE, is_apart=False)
        try:
            return await probed(asked, seconds=_SECONDS)
        finally:
            await asked.close()

    try:
        return Family(name, asyncio.run(work()))
    except StropError as error:
        return Family(name, Probed(name, problem=str(error)))


def page(families: Sequence[Family]) -> Iterator[str]:
    paying = [each for each in families if each.probed.faults]
    missed = [each for each in families if each.probed.problem]
    dominated = [each for each in families if each.probed.is_dominated]
    cut = [each for each in families if each.probed.is_cut and not each.probed.problem]
    yield "# Families of reasoning-gym that pay constant completions\n"
    yield (
        f"Written by `python benchmarks/constant_completions.py`, with reasoning-gym {version('reasoning-gym')}: "
        f"{len(families)} families, default configurations, up to 50 tasks each and {_SECONDS:g} seconds.\n"
    )
    yield (
        f"{len(paying)} of them pay a completion that never changes. Training on them is refused, by the same probe "
        "before every run, unless `allow_constant_completions=true`; [what is tried](certificate.md).\n"
    )
    yield "| family | completions, and their share | paid | tasks |\n|---|---|---|---|"
    yield from (each.row for each in paying)
    yield "\n*In full*: the share of tasks that pay the completion what a right answer earns, though it is none."
    yield "*In part*: what it earns on average there, of what a right answer does.\n"
    if dominated:
        yield (
            "One answer solves more than 90% of the tasks tried: "
            + ", ".join(
                f"{each.name} (`{each.probed.frequent}`, {each.probed.frequent_share:.0%})" for each in dominated
            )
            + ".\n"
        )
    if cut:
        yield (
            "Fewer than 50 tasks in that time: "
            + ", ".join(f"{each.name} ({each.probed.tasks})" for each in cut)
            + ".\n"
        )
    if missed:
        yield "Not probed:\n"
        yield from (f"- {each.name}: {_short(each.probed.problem)}" for each in missed)


def _short(problem: str) -> str:
    if "is not from" in problem:
        return (
            "its items are other ones in every process, so its scorer cannot know the task; strop fails every rollout"
        )
    return problem


def main(names: Sequence[str]) -> None:
    found = []
    for name in names or sorted(DATASETS):
        found.append(probe(name))
        told = found[-1].probed
        print(found[-1].row if told.faults else f"{name}: {told.problem or f'sound at {told.tasks} tasks'}", flush=True)
    if not names:
        PAGE.write_text("\n".join(page(found)).rstrip() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
