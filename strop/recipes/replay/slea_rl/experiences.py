"""Experiences of steps, taken from rollouts by rules: what was done where, what led to the end, what to avoid."""

from __future__ import annotations

from collections.abc import Sequence

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import CLOSE, final_answer
from strop.generate.memory.store import Lesson, tells
from strop.recipes.replay.slea_rl.observed import observed
from strop.success import success
from strop.types import Rollout

GOLDEN, WARNINGS = ("method", "example"), ("mistake", "pattern")  # shelves
_FIRST, _LAST = 5, 3  # actions of a sequence that are told


def strategies_of(rollout: Rollout) -> list[Lesson]:
    """Of one that succeeded: its actions in order, and each of them at its observation for a little less."""
    score, done = success(rollout), _actions(rollout)
    told = [
        Lesson("first " + ", then ".join(text for _, text in done[:_FIRST]), prompt_of(rollout.task), "method", score)
    ]
    told += [Lesson(f"do {text}", seen, "example", 0.8 * score) for seen, text in done]
    return _allowed(rollout, told if done else [])


def warnings_of(rollout: Rollout) -> list[Lesson]:
    """Of one that failed: its last actions, and whether it did the same thing three times on end."""
    done = _actions(rollout)
    if not done:
        return []
    texts = [text for _, text in done]
    told = [Lesson("avoid " + ", then ".join(texts[-_LAST:]), done[-1][0], "mistake", success(rollout))]
    same = [each for each, *others in zip(texts, texts[1:], texts[2:], strict=False) if set(others) == {each}]
    told += [Lesson(f"avoid {same[0]} again and again", prompt_of(rollout.task), "pattern", 0.5)] if same else []
    return _allowed(rollout, told)


def _actions(rollout: Rollout) -> list[tuple[str, str]]:
    """What was read and then done, in each turn but the last, which is the answer; without the thought before it."""
    texts = [turn.message.content.rpartition(CLOSE)[2].strip() for turn in rollout.turns]
    seen = [prompt_of(rollout.task), *(observed(turn.told) for turn in rollout.turns[1:])]
    return [(each, text) for each, text in list(zip(seen, texts, strict=True))[:-1] if text]


def _allowed(rollout: Rollout, lessons: Sequence[Lesson]) -> list[Lesson]:
    """Those that do not say the answer: the task's, or the one that was given."""
    given = final_answer(rollout.completion)
    return [lesson for lesson in lessons if not tells(lesson.text, rollout.task, given)]
