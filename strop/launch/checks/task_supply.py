"""Check that environments have enough different tasks for a step and for all groups in flight."""

from __future__ import annotations

from strop.capabilities import Repeats, inside
from strop.run import Run

_LOOKS = 4  # tasks of an endless environment that are looked at, for each that a step has


def shortage(run: Run) -> list[str]:
    """Groups in flight are rollouts of different tasks, or one task's lucky day counts several times."""
    if not run.envs or inside(run.sampler, Repeats):
        return []
    return [*_too_few(run), *_repeated(run)]


def _too_few(run: Run) -> list[str]:
    depth = (run.admission.lag + 1) * run.groups_per_step
    share = -(-depth // len(run.envs))
    sizes = {env.name: size for env in run.envs if (size := env.num_tasks()) is not None}
    return [
        f"{name} has {size} train tasks, and (lag + 1) * groups_per_step = {depth} groups are under way at once, "
        f"{share} of them its own: lower groups_per_step or lag, or add tasks"
        for name, size in sizes.items()
        if size < share
    ]


def _repeated(run: Run) -> list[str]:
    """An environment that claims to have no end is looked at."""
    share = -(-run.groups_per_step // len(run.envs))
    looks = range(_LOOKS * share)
    endless = [env for env in run.envs if env.num_tasks() is None]
    sizes = [(env, len({env.task(place).id for place in looks})) for env in endless]
    return [
        f"{env.name}:{env.level} repeats itself: {size} different train tasks among its first {len(looks)}, and a "
        f"step has {share} of its own: lower groups_per_step, or take other environments"
        for env, size in sizes
        if size < share
    ]
