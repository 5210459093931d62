"""Pairwise judging task in tags (MSRL, 2603.25108): the better of two texts, or of two captions of images or videos.

`<type>image generation</type><think>...</think><answer>B</answer>`. A caption replaces the image or video: in the
question for understanding tasks, in both completions for generation tasks. Image completions are answers alone; video
completions keep their chain of thought. For texts no type is given.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import NamedTuple

from strop.environments.format.think_tags import CLOSE, OPEN, between, final_answer
from strop.environments.judging.derived import Derived
from strop.environments.judging.listwise import working
from strop.environments.judging.preferences import Preferences, asked_of, completions_of
from strop.errors import ConfigurationError
from strop.types import Task

TEXT = ""
CAPTIONS = ("image understanding", "image generation", "video understanding", "video generation")
LABELS = "AB"
_ASKED = "better?"


class PairVerdict(NamedTuple):
    """Parsed fields of a pairwise judgement; empty if missing."""

    kind: str
    label: str
    is_laid_out: bool  # perhaps a type, the working and a label, each between its tags, and nothing else


@dataclass(frozen=True)
class BetterOfTwo(Derived):
    """Pairs of `Preferences` shown as A and B in random order; only the label is checked."""

    env: Preferences
    kind: str = TEXT  # or one of CAPTIONS

    def __post_init__(self) -> None:
        if self.env.completions != 2 or self.kind not in (TEXT, *CAPTIONS):
            raise ConfigurationError(
                f"BetterOfTwo needs 2 completions and one of the kinds {', '.join(CAPTIONS)} or none, got "
                f"{self.env.completions} and {self.kind!r}"
            )

    @property
    def name(self) -> str:
        return f"{self.kind.replace(' ', '-') or 'text'}-{self.env.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        pair = self.env.task(index, heldout)
        completions = completions_of(pair)
        place = random.Random(f"better/{self.kind}/{pair.id}").randrange(2)
        shown = completions if place == 0 else completions[::-1]
        *before, last = asked_of(pair)
        asked = replace(last, content=_question(self.kind, last.content, shown))
        secret = {"label": LABELS[place], "kind": self.kind, "worked": working(completions[0])}
        return Task((*before, asked), json.dumps(secret), self.name, pair.level)

    def check(self, task: Task, completion: str) -> float:
        return float(told(completion).label == truth_of(task).label)

    def answer(self, completion: str) -> str:
        label = told(completion).label
        return label if label in tuple(LABELS) else ""

    def solution(self, task: Task) -> str:
        """The better completion as a thought, then its label."""
        kind, label, _ = truth_of(task)
        typed = f"<type>{kind}</type>" if kind else ""
        return f"{typed}{OPEN}{json.loads(task.answer)['worked']}{CLOSE}<answer>{label}</answer>"


def truth_of(task: Task) -> PairVerdict:
    """What should be said of a task's pair."""
    secret = json.loads(task.answer)
    return PairVerdict(secret["kind"], secret["label"], is_laid_out=True)


def told(completion: str) -> PairVerdict:
    """A type before the working and a label behind it; two of either are none, and so is one without its tags."""
    before, after = completion.partition(OPEN)[0], final_answer(completion)
    kind, label = _tagged(before, "type"), _tagged(after, "answer")
    is_thought = completion.count(OPEN) == completion.count(CLOSE) == 1
    is_laid_out = is_thought and (not before.strip() or _is_all(before, "type")) and _is_all(after, "answer")
    return PairVerdict(" ".join(kind.lower().replace("_", " ").replace("-", " ").split()), label.upper(), is_laid_out)


def _question(kind: str, asked: str, completions: list[str]) -> str:
    """Completions are one line each, so that none can pass for two."""
    medium, _, use = kind.partition(" ")
    said = [final_answer(completion) if medium == "image" else working(completion) for completion in completions]
    prefix = f"{medium} " if use == "generation" else ""
    lines = [f"{prefix}{label}: {text}" for label, text in zip(LABELS, said, strict=True)]
    return "\n".join([f"{medium}: {asked}" if use == "understanding" else asked, *lines, _ASKED])


def _tagged(text: str, tag: str) -> str:
    opening, closing = f"<{tag}>", f"</{tag}>"
    found = between(text, opening, closing)
    return found[0].strip() if found and text.count(opening) == text.count(closing) == 1 else ""


def _is_all(text: str, tag: str) -> bool:
    return bool(_tagged(text, tag)) and text.strip().startswith(f"<{tag}>") and text.strip().endswith(f"</{tag}>")
