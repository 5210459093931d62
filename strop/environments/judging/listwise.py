"""Listwise judging task (SPCT, 2504.02495): give each shown completion a score, the best one the highest.

A completion writes principles and a critique as its chain of thought, then a whole number from 0 to 10 for each
completion shown. It is right if the best one's score is strictly the highest. A single completion is shown with the
question whether it is right, and its score must be 1 or 0.

Papers: spct
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.environments.judging.derived import Derived
from strop.environments.judging.wrong_completions import wrong_completions
from strop.environments.needs import COMPARISONS, EnvNeed
from strop.environments.single_turn import Solves
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.text.llm_prompt import compact
from strop.types import Message, Task

WANTED = "Score each completion from 0 to 10."
_GOOD, _BAD = 9, 2  # scores that are shown
_SCORE = re.compile(r"10|[0-9]")
_COMPLETION = re.compile(r"^([0-9]+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Ranking(Derived):
    """Prompts with `completions` of a task, exactly one right, in random order; if only one is shown, it is right half
    the time.
    """

    completions: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.env, Solves) or self.completions < 1:
            raise ConfigurationError(
                f"Ranking needs an environment that knows right completions and completions >= 1, got {self.env.name} "
                f"and "
                f"{self.completions}"
            )

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (COMPARISONS,)

    @property
    def envs(self) -> tuple[Environment, ...]:
        return (self.env,)

    @property
    def name(self) -> str:
        return f"ranking-{self.env.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        assert isinstance(self.env, Solves)
        inner = self.env.task(index, heldout)
        stream = random.Random(f"ranking/{inner.id}")
        shown = [self.env.solution(inner), *wrong_completions(self.env, inner, stream, max(self.completions - 1, 1))]
        places = stream.sample(range(len(shown)), self.completions)
        asked = question_about(prompt_of(inner), [shown[place] for place in places])
        best = places.index(0) if 0 in places else -1
        secret = json.dumps({"best": best, "count": self.completions, "worked": working(self.env.solution(inner))})
        return Task((Message("user", asked),), secret, self.name, inner.level)

    def check(self, task: Task, completion: str) -> float:
        secret = json.loads(task.answer)
        scores = scores_in(completion, secret["count"])
        return float(scores is not None and is_best(scores, secret["best"]))

    def answer(self, completion: str) -> str:
        scores = scores_in(completion, self.completions)
        return "" if scores is None else " ".join(map(str, scores))

    def solution(self, task: Task) -> str:
        """The task worked out as a critique, then the scores."""
        secret = json.loads(task.answer)
        if secret["count"] == 1:
            scores = [1 + secret["best"]]
        else:
            scores = [_GOOD if place == secret["best"] else _BAD for place in range(secret["count"])]
        return f"{OPEN}{secret['worked']}{CLOSE}{' '.join(map(str, scores))}"


def is_best(scores: Sequence[int], best: int) -> bool:
    """Whether the best completion's score is strictly the highest; of a single completion, whether it is its label."""
    if len(scores) == 1:
        return scores[0] == 1 + best
    return all(scores[best] > score for place, score in enumerate(scores) if place != best)


def question_about(
    task: str, completions: Sequence[str], form: Callable[..., str] = compact, wanted: str = WANTED
) -> str:
    """What a judge reads; every completion is one line, so that none can pass for two."""
    lines = [f"{number}: {working(completion)}" for number, completion in enumerate(completions)]
    return form(wanted, task=task, completion="\n".join(lines))


def completions_in(text: str) -> list[str]:
    """The completions of such a question again, for judges that are rules."""
    return [completion for _, completion in _COMPLETION.findall(text)]


def working(completion: str) -> str:
    """A completion in one line, without the tags of its working."""
    return " ".join(completion.replace(OPEN, " ").replace(CLOSE, " ").split())


def scores_in(completion: str, count: int) -> list[int] | None:
    """The scores of `count` completions; None where anything else stands there."""
    words = final_answer(completion).replace(",", " ").split()
    is_whole = len(words) == count and all(_SCORE.fullmatch(word) for word in words)
    return [int(word) for word in words] if is_whole else None
