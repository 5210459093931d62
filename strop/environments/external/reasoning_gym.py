"""Adapter for datasets of the reasoning-gym package (Open-Thought) by name, with their own generators and scorers.

Scorers are foreign code that may be slow or hang, so the episode returns no reward: reward these tasks with
`Checked(envs=(...))`, which runs scorers in a killable process. Scorers that call `eval` see only answers that
`safe_answers.py` accepts.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import reasoning_gym
from reasoning_gym.factory import CURRICULA, DATASETS

from strop.environments.data.heldout_split import is_heldout
from strop.environments.external.safe_answers import is_plain
from strop.environments.format.think_tags import between, final_answer
from strop.environments.wrappers.around import Unpaid
from strop.errors import ConfigurationError, DataError, nearest
from strop.roles import Environment
from strop.types import Message, Task

_BLOCK = 256  # candidates per task: with one in ten held out, 0.9^256 is the probability to find none
_INSTRUCTION = "Give the final answer between <answer> and </answer>."


@dataclass(frozen=True)
class ReasoningGym(Environment):
    """reasoning-gym environment; level 0 is the default configuration, level n step n of the curriculum; `config`
    overrides both.
    """

    dataset: str = "chain_sum"
    seed: int = 0
    level: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    chunk: int = 4096  # some datasets prepare all their items at once, so that an endless one comes in chunks

    pays: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            raise ConfigurationError(
                f"reasoning-gym has no dataset {self.dataset!r}; {nearest(self.dataset, DATASETS)}"
            )
        known = [known.name for known in dataclasses.fields(DATASETS[self.dataset][1])]
        for name in self.config:
            if name not in known or name in ("seed", "size"):
                raise ConfigurationError(f"{self.dataset} has no setting {name!r} here; {nearest(name, known)}")
        self._check_level()

    @property
    def name(self) -> str:
        return f"reasoning_gym/{self.dataset}"

    def task(self, index: int, heldout: bool = False) -> Task:
        """The first item of its own block whose text is on the right side."""
        for place in range(index * _BLOCK, (index + 1) * _BLOCK):
            entry = self._entry(heldout, place)
            if is_heldout(entry["question"]) == heldout:
                return self._task(entry, heldout, place)
        side = "held-out" if heldout else "train"
        raise DataError(f"no {side} task among {_BLOCK} of reasoning-gym's {self.dataset}: it has too few tasks")

    def episode(self) -> Unpaid:
        return Unpaid()

    def check(self, task: Task, completion: str) -> float:
        """The dataset's own score of what stands between answer tags, or else after the working."""
        entry, answer = self.item(task), self.answer(completion)
        seen = answer if is_plain(answer, entry["metadata"]) else None  # scored as no answer
        return float(self._data(False, 0).score_answer(seen, entry))

    def answer(self, completion: str) -> str:
        """As it was written: which spellings are equal is each dataset's own affair."""
        tagged = between(completion, "<answer>", "</answer>")
        return tagged[-1].strip() if tagged else final_answer(completion)

    def item(self, task: Task) -> dict[str, Any]:
        """The dataset's item behind a task, with all it knows."""
        side, place = task.id.rsplit("-", 2)[1:]
        entry = self._entry(side == "heldout", int(place))
        if self._question(entry) != task.messages[-1].content:
            raise ValueError(f"task {task.id} is not from {self!r}")
        return entry

    def __getstate__(self) -> dict[str, Any]:
        return {kept.name: getattr(self, kept.name) for kept in dataclasses.fields(self)}  # chunks are made again

    def _task(self, entry: Mapping[str, Any], heldout: bool, place: int) -> Task:
        """A task whose id leads back to its item, because scorers need more of it than the answer."""
        messages = (Message("user", self._question(entry)),)
        plain = Task(messages, str(entry["answer"] or ""), self.name, self.level)
        return dataclasses.replace(plain, id=f"{plain.id}-{'heldout' if heldout else 'train'}-{place}")

    def _question(self, entry: Mapping[str, Any]) -> str:
        return f"{entry['question']}\n{_INSTRUCTION}"

    def _entry(self, heldout: bool, place: int) -> dict[str, Any]:
        chunk, inside = divmod(place, self.chunk)
        entry: dict[str, Any] = self._data(heldout, chunk)[inside]
        return entry

    @cached_property
    def _chunks(self) -> dict[tuple[bool, int], Any]:
        return {}

    def _data(self, heldout: bool, chunk: int) -> Any:
        """A chunk of one side; the last few are kept."""
        if (heldout, chunk) not in self._chunks:
            while len(self._chunks) >= 4:
                self._chunks.pop(next(iter(self._chunks)))
            self._chunks[heldout, chunk] = self._make(heldout, chunk)
        return self._chunks[heldout, chunk]

    def _make(self, heldout: bool, chunk: int) -> Any:
        """An item is drawn with seed + index, so that chunks are a chunk's length of seeds apart."""
        text = f"{self.dataset}/{self.seed}/{'heldout' if heldout else 'train'}"
        origin = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") // 2  # numpy takes seeds below 2^32
        settings = {**self._settings, "seed": (origin + chunk * self.chunk) % 2**32, "size": self.chunk}
        try:
            return reasoning_gym.create_dataset(self.dataset, **settings)
        except (AssertionError, ValueError) as error:
            raise ConfigurationError(f"reasoning-gym's {self.dataset} refuses its configuration: {error}") from error

    @cached_property
    def _settings(self) -> dict[str, Any]:
        if not self.level:
            return dict(self.config)
        curriculum = CURRICULA[self.dataset]()
        curriculum.set_global_level(self.level)
        return {**vars(curriculum.generate_configuration()), **self.config}

    def _check_level(self) -> None:
        steps = CURRICULA[self.dataset]().attributes.values() if self.dataset in CURRICULA else ()
        highest = max((len(step.levels) - 1 for step in steps), default=0)
        if not 0 <= self.level <= highest:
            raise ConfigurationError(f"{self.dataset} has levels 0 to {highest}, got {self.level}")
