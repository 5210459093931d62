"""Whether worlds have enough different tasks for a step, and for all groups that are under way at once."""

from __future__ import annotations

from strop.capabilities import Repeats, inside
from strop.run import Run

_LOOKS = 4  # tasks of an endless world that are looked at, for each that a step has


def shortage(run: Run) -> list[str]:
    """Groups in flight are attempts at different tasks, or one task's lucky day counts several times."""
    if not run.worlds or inside(run.sampler, Repeats):
        return []
    return [*_too_few(run), *_repeated(run)]


def _too_few(run: Run) -> list[str]:
    depth = (run.pace.lag + 1) * run.groups_per_step
    share = -(-depth // len(run.worlds))
    sizes = {world.name: size for world in run.worlds if (size := world.num_tasks()) is not None}
    return [
        f"{name} has {size} train tasks, and (lag + 1) * groups_per_step = {depth} groups are under way at once, "
        f"{share} of them its own: lower groups_per_step or lag, or add tasks"
        for name, size in sizes.items()
        if size < share
    ]


def _repeated(run: Run) -> list[str]:
    """A world that claims to have no end is looked at."""
    share = -(-run.groups_per_step // len(run.worlds))
    looks = range(_LOOKS * share)
    endless = [world for world in run.worlds if world.num_tasks() is None]
    sizes = [(world, len({world.task(place).id for place in looks})) for world in endless]
    return [
        f"{world.name}:{world.level} repeats itself: {size} different train tasks among its first {len(looks)}, and a "
        f"step has {share} of its own: lower groups_per_step, or take other worlds"
        for world, size in sizes
        if size < share
    ]
