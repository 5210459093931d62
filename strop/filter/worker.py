"""Reward worker process, which can be killed if a reward hangs, crashes or forks.

It receives the rewards first, then one group after the other; what it counted of its judges goes back with the scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from strop.capabilities import Opens, outermost
from strop.filter.reward_values import Fault, scored, tallying, to_json
from strop.roles import Reward
from strop.types import Group
from strop.workers.frames import Frame, Frames
from strop.workers.keeper import has_children
from strop.workers.pickled_parts import unpacked

_LEFT = Fault("left a process running", is_whole=True)


def serve(frames: Frames) -> None:
    """Load the rewards, say so, then score groups."""
    rewards = _loaded(frames.take(), frames)
    while rewards:
        question = frames.take()
        group: Group = unpacked(question.arrays["group"])
        before = [dict(rollout.facts) for rollout in group.rollouts]
        scores = asyncio.run(scored(rewards[question.head["index"]], group))
        try:
            facts = [_new(rollout.facts, known) for rollout, known in zip(group.rollouts, before, strict=True)]
        except (TypeError, ValueError, OverflowError) as error:
            facts = [{}] * len(scores)
            scores = [Fault(f"noted a fact that is no number: {error}", is_breach=True)] * len(scores)
        is_alone = not has_children()
        scores = scores if is_alone else [_LEFT] * len(scores)
        counts = [each.told() for each in tallying(rewards[question.head["index"]])]
        answer = {"scores": to_json(scores), "facts": facts, "counts": counts, "is_alone": is_alone}
        frames.answer(question, answer)


def _new(facts: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Facts that the rewards left on a rollout."""
    return {name: float(value) for name, value in facts.items() if known.get(name) != value}


def _loaded(setup: Frame, frames: Frames) -> list[Reward]:
    """The rewards, warmed up by their `open` where they have one; imports are not on any rollout's clock."""
    rewards: list[Reward] = []
    for index in range(len(setup.arrays)):
        try:
            rewards.append(unpacked(setup.arrays[str(index)]))
            for _, part in outermost(rewards[-1], Opens):
                part.open_resources()
        except Exception as error:
            frames.answer(setup, {"index": index, "error": f"{type(error).__name__}: {error}"})
            return []
    frames.answer(setup, {"ready": True})
    return rewards
