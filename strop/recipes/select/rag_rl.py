"""RAG-RL: GRPO with a curriculum over the number of distractor passages; rewards for the answer and for citations.

Title: RAG-RL: Advancing Retrieval-Augmented Generation via RL and Curriculum Learning
Paper: arXiv 2503.12759 (2025)
Claim: Joint F1 on MuSiQue of 61.4 with easy tasks first, 56.4 with a linear order and 53.8 with hard ones alone.
Reading: 5 for the answer, 5 times the recall of gold passages, less 2 for each other one, and 1 for the format.
    Passages are steps of worked solutions, cited by quoting them. By the paper's own control the order matters less
    than that easy tasks are mixed in. Its sizes were not found; GRPO's defaults replace them. The bundled model has
    never chosen among passages, so a short supervised run comes before; the paper's model needs none.
Acts: uneven > 0 and reward/citations != 0 with warmup_steps=1
Break: citations=0: quoted passages are worth nothing
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.bandit_metrics import shares
from strop.environments.bundled.passages import Cited, Passages, cited
from strop.environments.data.rows import columns_of
from strop.environments.data.table import Table
from strop.environments.format.think_tags import CLOSE, final_number
from strop.environments.judging.derived import Derived
from strop.environments.needs import EnvNeed
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError
from strop.recipes.environment_specs import is_answered, judged_by, own_of, wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, PassRateEstimator, Reward, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Rollout, Task

# RAG-RL's curricula (2503.12759): the order of levels is fixed before the run, and so is its shuffled control.
#
# Reading: the schedule counts sampled tasks, as the paper's counts samples; groups that gates drop count, too. After
# its end the schedule stays at its last level; a shuffled one starts again.

Shape: TypeAlias = Literal["max", "linear", "min-max"]


@dataclass
class Scheduled(Sampler):
    """Sampler whose task i of n is of level ceil(K i / n) (linear), of 1 and from the middle on K (min-max), or always
    K (max).

    `is_shuffled` is the control: the same levels equally often, in random order.
    """

    envs: tuple[Environment, ...]  # K levels, from easy to hard
    length: int  # n, in tasks
    shape: Shape = "min-max"
    is_shuffled: bool = False
    seed: int = 0  # of the shuffled order
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _order: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._arms = BanditArms(self.envs)
        if self.length < 1 or self.shape not in ("max", "linear", "min-max"):
            raise ConfigurationError(
                f"Scheduled needs length >= 1 and shape max, linear or min-max, got {self.length} and {self.shape!r}"
            )
        if self.is_shuffled:
            self._order = [int(place) for place in np.random.default_rng(self.seed).permutation(self.length)]

    def arm(self, number: int) -> int:
        """The level of the task with this number, both from 0 on."""
        place = self._order[number % self.length] if self.is_shuffled else min(number, self.length - 1)
        hardest = len(self.envs) - 1
        if self.shape == "linear":
            return -(-len(self.envs) * (place + 1) // self.length) - 1
        return 0 if self.shape == "min-max" and 2 * place < self.length else hardest

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self._num_sampled += 1
        return self._arms.take(self.arm(self._num_sampled - 1))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: share of each level in the batch."""
        return shares(self.envs, groups)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_sampled, "arms": self._arms.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_sampled = int(state["num_drawn"])
        self._arms.restore(state["arms"])


# Questions of a table with its columns `passages` and `gold`: the gold passages among others, numbered by chance.

_ASKED = "Cite the passages that you use by their numbers, as in [1]. Then answer."
_CITED = re.compile(r"\[(\d{1,3})\]")
_DISTRACTORS = (1, 3, 5, 8)  # levels of a table
_ANSWER = 5.0  # for a right answer
PASSAGES = EnvNeed(
    "passages",
    "add the columns `passages` (a list of texts) and `gold` (those that lead to the answer, by place or as texts) to "
    "each row, or use env=passages:LEVEL",
    is_met_by=lambda env, task: bool(_passages(task)[0]) or env.name.partition("-")[0] == Passages.name,
)


@dataclass(frozen=True)
class PassageRows(Derived):
    """A table's questions below their gold passages and `distractors` others, or as many as the row has."""

    distractors: int = 1

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PASSAGES,)

    @property
    def envs(self) -> tuple[Environment, ...]:
        return (self.env,)

    @property
    def name(self) -> str:
        return f"{Passages.name}-{self.env.name}"

    @property
    def level(self) -> int:
        return self.distractors

    @property
    def is_inline(self) -> bool:  # type: ignore[override]
        return self.env.is_inline

    @property
    def pays(self) -> bool:
        return self.env.pays

    def episode(self) -> SingleTurn:
        return SingleTurn(self, self.pays)

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.env.task(index, heldout)
        gold, others = _passages(inner)
        stream = random.Random(f"passages/{self.distractors}/{inner.id}")
        texts = [*gold, *stream.sample(others, min(self.distractors, len(others)))]
        stream.shuffle(texts)
        listed = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))
        *before, last = inner.messages
        asked = replace(last, content=f"{listed}\n\n{last.content}\n\n{_ASKED}")
        numbers = [number for number, text in enumerate(texts, 1) if text in gold]
        return Task(
            (*before, asked),
            inner.answer,
            self.name,
            self.level,
            columns=json.dumps(columns_of(inner) | {_GOLD: numbers}),
        )

    def check(self, task: Task, completion: str) -> float:
        return self.env.check(task, completion)

    def answer(self, completion: str) -> str:
        return self.env.answer(completion)

    def solution(self, task: Task) -> str:
        assert isinstance(self.env, Table)
        cited = ", ".join(f"[{number}]" for number in columns_of(task)[_GOLD])
        return f"As {cited} says.\n{self.env.solution(task)}"


def _levels(env: Environment) -> Sequence[Environment]:
    return [PassageRows(env, count) for count in _DISTRACTORS] if isinstance(env, Table) else [env]


_GOLD = "gold_numbers"


def _passages(task: Task) -> tuple[list[str], list[str]]:
    """Gold passages of a row and its others; nothing where it does not say both."""
    columns = columns_of(task)
    texts, gold = columns.get("passages"), columns.get("gold")
    if not isinstance(texts, list) or not isinstance(gold, list):
        return [], []
    found = [text for place, text in enumerate(texts) if place in gold or text in gold]
    return found, [text for text in texts if text not in found]


def _cited(rollout: Rollout) -> Cited:
    """What a rollout cites: by number in tasks of a table."""
    if rollout.task.source == Passages.name:
        return cited(rollout.task, rollout.completion)
    gold, said = set(columns_of(rollout.task)[_GOLD]), set(map(int, _CITED.findall(rollout.completion)))
    return Cited(len(said & gold), len(gold), len(said - gold))


# RAG-RL's citation reward (2503.12759): the share of gold passages quoted, less a price for each other one.
#
# Reading: the paper also rewards the format; here that is a chain of thought followed by a number, worth `form`.


@dataclass(frozen=True)
class Citations(Reward):
    """Reward recall * (gold quoted / gold) - price * (others quoted) + form; in tasks with passages, 0 elsewhere."""

    recall: float = 5.0  # for all gold passages
    price: float = 2.0  # of each distractor
    form: float = 1.0  # for a chain of thought and a number
    weight: float = 1.0

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PASSAGES,)

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        has_passages = group.task.source.startswith(Passages.name)
        return [self._paid(rollout) if has_passages else 0.0 for rollout in group.rollouts]

    def _paid(self, rollout: Rollout) -> float:
        found = _cited(rollout)
        is_own = rollout.task.source == Passages.name
        is_formed = CLOSE in rollout.completion and final_number(rollout.completion) != "" if is_own else found.gold > 0
        return self.recall * found.gold / found.of - self.price * found.wrong + self.form * is_formed


def rag_rl(
    setting: Setting = Setting(env="passages:1+passages:3+passages:5+passages:8"),
    shape: Shape = "min-max",  # or linear, or max: the hardest level alone
    is_shuffled: bool = False,  # control: the same levels in random order
    kl: float = 0.04,  # weight of the KL penalty to the reference
    citations: float = 1.0,  # weight of the reward for quoted passages; 0: none
    warmup_steps: int = BundledOnly(6),  # of supervised training first
) -> Run:
    """Environments from easy to hard; the schedule ends with the last batch of the last step."""
    run = setting.run("rag_rl", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean())
    asked, has_answers = run.rewards, is_answered(run.envs)
    if any(isinstance(env, Table) for env in run.envs):
        wrap_envs(run, _levels)
    run.rewards = asked  # a user's own stay: the questions are theirs
    length = setting.steps * setting.groups_per_step
    run.sampler = Scheduled(run.envs, length, shape, is_shuffled, setting.seed)
    own = own_of(run, has_answers) or (judged_by(run.envs),)
    answers = (replace(each, weight=_ANSWER * each.weight) for each in own)  # type: ignore[type-var]
    run.rewards = (*answers, *([Citations(weight=citations)] if citations else []))
    run.warmup = shown(setting, "rag_rl", warmup_steps)
    return run
