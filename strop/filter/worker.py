"""The process in which rewards run, so that one that hangs, dies or forks can be killed.

It is told the rewards first, and then one group after the other; see `killable/pipes.py` for how.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence

from strop.abilities import Opens, outermost
from strop.filter.keeper import fork_kept, has_children
from strop.filter.marks import Fault, marked, to_json
from strop.killable.pipes import Pipes
from strop.processes.limits import limit_memory
from strop.roles import Reward

_LEFT = Fault("left a process running", is_whole=True)


def main() -> None:
    """Load the rewards, say so, then mark groups until stdin ends."""
    fork_kept()
    limit_memory()
    pipes = Pipes.take()
    setup = pipes.read()
    if setup is None:
        return
    sys.path[:] = setup["path"]
    rewards = _loaded(setup["rewards"], pipes)
    while rewards is not None and (request := pipes.read()) is not None:
        index, group = request
        marks = marked(rewards[index], group)
        is_alone = not has_children()
        pipes.answer({"marks": to_json(marks if is_alone else [_LEFT] * len(marks)), "is_alone": is_alone})


def _loaded(pickled: Sequence[bytes], pipes: Pipes) -> list[Reward] | None:
    """The rewards, warmed up by their `open` where they have one; imports are not on any attempt's clock."""
    rewards: list[Reward] = []
    for body in pickled:
        try:
            rewards.append(pickle.loads(body))
            for _, part in outermost(rewards[-1], Opens):
                part.open()
        except Exception as error:
            pipes.answer({"index": len(rewards) - 1, "error": f"{type(error).__name__}: {error}"})
            return None
    pipes.answer({"ready": True})
    return rewards


if __name__ == "__main__":
    main()
