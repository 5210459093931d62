"""Step-level experiences extracted from rollouts by rules: action sequences, single actions, mistakes, repetitions."""

from __future__ import annotations

from collections.abc import Sequence

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import CLOSE, final_answer
from strop.generate.memory.store import Lesson, tells
from strop.recipes.replay.slea_rl.observed import observed
from strop.success import success
from strop.types import Rollout

GOLDEN, WARNINGS = ("method", "example"), ("mistake", "pattern")  # categories of the library
_FIRST, _LAST = 5, 3  # actions of a sequence that are kept


def strategies_of(rollout: Rollout) -> list[Lesson]:
    """Strategies of a successful rollout: its first actions in order, and each action at its observation."""
    score, done = success(rollout), _actions(rollout)
    found = [
        Lesson("first " + ", then ".join(text for _, text in done[:_FIRST]), prompt_of(rollout.task), "method", score)
    ]
    found += [Lesson(f"do {text}", seen, "example", 0.8 * score) for seen, text in done]
    return _allowed(rollout, found if done else [])


def warnings_of(rollout: Rollout) -> list[Lesson]:
    """Warnings of a failed rollout: its last actions, and an action repeated three times in a row."""
    done = _actions(rollout)
    if not done:
        return []
    texts = [text for _, text in done]
    found = [Lesson("avoid " + ", then ".join(texts[-_LAST:]), done[-1][0], "mistake", success(rollout))]
    same = [each for each, *others in zip(texts, texts[1:], texts[2:], strict=False) if set(others) == {each}]
    found += [Lesson(f"avoid {same[0]} again and again", prompt_of(rollout.task), "pattern", 0.5)] if same else []
    return _allowed(rollout, found)


def _actions(rollout: Rollout) -> list[tuple[str, str]]:
    """(observation, action) of each turn except the last, which is the answer; chains of thought are removed."""
    texts = [turn.message.content.rpartition(CLOSE)[2].strip() for turn in rollout.turns]
    seen = [prompt_of(rollout.task), *(observed(turn.told) for turn in rollout.turns[1:])]
    return [(each, text) for each, text in list(zip(seen, texts, strict=True))[:-1] if text]


def _allowed(rollout: Rollout, lessons: Sequence[Lesson]) -> list[Lesson]:
    """Lessons that contain neither the task's answer nor the rollout's."""
    given = final_answer(rollout.completion)
    return [lesson for lesson in lessons if not tells(lesson.text, rollout.task, given)]
