"""HardTests: GRPO on programs judged by LLM-written tests, with the tests' precision and recall measured.

Title: HardTests: Synthesizing High-Quality Test Cases for LLM Coding
Paper: arXiv 2505.24098 (2025)
Claim: Tests for 47,000 problems, with a precision 11.3 and a recall 17.5 points higher than those of other sets.
Reading: Inputs are plain, special, or written to fail slow or careless programs, as many as the release asks for or
    fewer. A validator program decides which inputs the task allows, and an output counts if two different oracle
    programs return it. Rules stand in for the model that writes all this, and one of three oracles is careless.
    is_hard=false leaves out the last two kinds of inputs, which lets more wrong programs pass. Precision and recall are
    measured against the environment's own tests, which give no reward. A short supervised warm-up comes first.
Left out: Judges for tasks with many right answers, and categories of problems.
Acts: fact/tests_kept < 1 and test_recall > 0 and reward/hard_tests > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.code.cases import Cases, cases_of
from strop.environments.code_execution import Trials
from strop.environments.needs import TESTS, EnvNeed
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, text_of
from strop.filter.judges.rubric import answer
from strop.recipes.named_parts import named_parts
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.test_cases import careless, direct, hacking, nested, special, straight, written_validator
from strop.success import reaches
from strop.text.llm_prompt import question, without_reasoning
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import ZERO_TO_ONE, Group, Metrics, Rollout, ScoreRange, Task

# Tests written by LLM clients (HardTests, 2505.24098), kept if a validator allows the input and oracles agree.
#
# Reading: programs of validators and oracles run in the sandbox. Two programs of equal text are one oracle; a single
# oracle decides alone.

_INPUTS = "Write inputs to test programs for this task with: a JSON list."
_VALID = "Write f(x) that says whether x is an input that this task allows."
_SOLVED = "Write a program for this task."
_AGREED = 2  # oracles that must give the same output
_TRUE = '["value", true]'


@dataclass(frozen=True)
class AgreedTests:
    """LLM clients that write test inputs, validate them, and write programs whose outputs are expected."""

    task_generators: tuple[LLMClient, ...]
    validator: LLMClient
    oracles: tuple[LLMClient, ...]

    def __post_init__(self) -> None:
        if not self.task_generators or not self.oracles:
            raise ConfigurationError(
                f"AgreedTests needs at least 1 task generator and 1 oracle, got {len(self.task_generators)} and "
                f"{len(self.oracles)}"
            )

    async def __call__(self, task: Task, function: str, trials: Trials) -> tuple[Cases, int]:
        """The tests, and the number of inputs written for them."""
        written = await self._inputs(task)
        programs = await all_of(answer(each, question(_SOLVED, task=text_of(task))) for each in self.oracles)
        valid = await answer(self.validator, question(_VALID, task=text_of(task)))
        allowed = await trials.said(valid, function, [[each] for each in written])
        inputs = [each for each, word in zip(written, allowed, strict=False) if word == _TRUE]
        printed = [await trials.said(text, function, [[each] for each in inputs]) for text in dict.fromkeys(programs)]
        outputs = [
            agreed([lines[place] for lines in printed if place < len(lines)], len(printed))
            for place in range(len(inputs))
        ]
        kept = [(value, output) for value, output in zip(inputs, outputs, strict=True) if output is not None]
        if not kept:
            raise LLMClientError(f"the oracles agree on none of {len(written)} tests for task {task.id}")
        cases = Cases(function, tuple([value] for value, _ in kept), tuple(json.loads(out)[1] for _, out in kept))
        return cases, len(written)

    async def _inputs(self, task: Task) -> list[Any]:
        """Distinct inputs, in the order in which they were written; an answer that is not a list has none."""
        answers = await all_of(answer(each, question(_INPUTS, task=text_of(task))) for each in self.task_generators)
        found = [each for text in answers for each in _listed(text)]
        return [each for place, each in enumerate(found) if each not in found[:place]]


def agreed(printed: Sequence[str], oracles: int) -> str | None:
    """The output of at least two oracles, or of the only one; failed programs do not count. None: no agreement."""
    values = [each for each in printed if _is_value(each)]
    if not values:
        return None
    (most, count), *rest = Counter(values).most_common()
    is_tied = bool(rest) and rest[0][1] == count
    return most if count >= min(_AGREED, oracles) and not is_tied else None


def _is_value(line: str) -> bool:
    """Whether a line is a complete value in the sandbox's own format: an oracle's output may be truncated."""
    try:
        return json.dumps(["value", json.loads(line)[1]]) == line
    except (ValueError, RecursionError, TypeError, LookupError):
        return False


def _listed(text: str) -> list[Any]:
    spoken = without_reasoning(text)
    try:
        found = json.loads(spoken[spoken.index("[") : spoken.rindex("]") + 1])
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


# HardTests (2505.24098): a program is rewarded if it passes all agreed tests of its task.

_KEPT, _PASSED = "tests_kept", "passes_written"  # facts
_MOST = 512  # tasks whose tests are cached; the oldest are dropped and written again when needed


@dataclass
class HardTests(Reward):
    """1 if a program passes all of `tests`, else 0; metrics compare it with the environment's own reward."""

    tests: AgreedTests
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TESTS,)
    is_inline: ClassVar[bool] = True  # awaits the sandbox
    _known: dict[str, tuple[Cases, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        cases, written = await self._cases(group.task)
        return await all_of(self._score(rollout, cases, written) for rollout in group.rollouts)

    async def _cases(self, task: Task) -> tuple[Cases, int]:
        if task.id not in self._known:
            found = await self.tests(task, cases_of(task).function, self.trials)
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[task.id] = found
        return self._known[task.id]

    async def _score(self, rollout: Rollout, cases: Cases, written: int) -> float:
        trial = await self.trials.of(rollout.completion, cases)
        rollout.facts |= {_KEPT: len(cases.inputs) / written, _PASSED: float(trial.is_right)}
        return float(trial.is_right)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report precision and recall of the written tests against the environment's own; keeps no state."""
        both = [
            (rollout.facts[_PASSED] > 0, reaches(sum(rollout.turn_rewards)))
            for group in groups
            for rollout in group.scored
            if _PASSED in rollout.facts
        ]
        return precision_and_recall(both)


def precision_and_recall(both: Sequence[tuple[bool, bool]]) -> Metrics:
    """Precision and recall of pairs (passes, is right); 0 / 0 is left out."""
    hits = sum(passes and right for passes, right in both)
    counts = {"test_precision": sum(passes for passes, _ in both), "test_recall": sum(right for _, right in both)}
    return {name: hits / count for name, count in counts.items() if count}


def hardtests(
    setting: Setting = Setting(env="programs:1+programs:2"),
    generator: str = "rules",  # writes inputs, solutions and a validator (a named part)
    is_hard: bool = True,  # with special and hacking inputs in addition to plain ones
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = BundledOnly(20),  # supervised warm-up steps before RL
) -> Run:
    """Only the written tests give rewards; the environment's own tests measure them."""
    task_generators = (direct, special, hacking) if is_hard else (direct,)
    written, solved, (validator,) = (
        tuple(named_parts("generator", generator, setting, *rules, envs=("programs",)))
        for rules in (task_generators, (straight, nested, careless), (written_validator,))
    )
    run = setting.run("hardtests", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    tests = AgreedTests(written, validator, solved)
    run.rewards = (HardTests(tests, Trials(setting.isolation)),)
    run.warmup = shown(setting, "hardtests", warmup_steps)
    return run
