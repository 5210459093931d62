"""GRPO on programs judged by tests that LLM clients write, whose precision and recall are measured beside.

Title: HardTests: Synthesizing High-Quality Test Cases for LLM Coding
Paper: arXiv 2505.24098 (2025)
Claim: Tests for 47,000 problems, with a precision 11.3 and a recall 17.5 points higher than those of other sets.
Reading: Plain inputs, special ones and ones that slow or careless programs fail, as many as the release asks for or
    fewer; a validator's program says which may be asked about, and an output counts where two different oracle programs
    give it. Rules stand for the model that writes all this, and one of three oracles is careless. is_hard=false leaves
    the last two kinds of inputs out, which lets more wrong programs pass. What the environment's own tests say is the
    truth that precision and recall are of; it pays nothing. A short supervised run comes before.
Left out: Judges for tasks with many right answers, and categories of problems.
Acts: fact/tests_kept < 1 and test_recall > 0 and reward/hard_tests > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.code_execution import Cases, Trials, cases_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, text_of
from strop.filter.judges.rubric import answer
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.success import is_right
from strop.text.llm_prompt import question
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Rollout, Task

# Tests that LLM clients write (HardTests, 2505.24098), kept where a validator allows them and oracles agree on them.
#
# Readings: what a validator or an oracle says is found by running its program in the sandbox. Two programs of the same
# text
# are one oracle; with one oracle alone its word counts.

_INPUTS = "Write inputs to test programs for this task with: a JSON list."
_VALID = "Write f(x) that says whether x is an input that this task allows."
_SOLVED = "Write a program for this task."
_AGREED = 2  # oracles that must give the same output
_TRUE = '["value", true]'


@dataclass(frozen=True)
class AgreedTests:
    """Who writes inputs, who validates them and who says what should come."""

    task_generators: tuple[LLMClient, ...]
    validator: LLMClient
    oracles: tuple[LLMClient, ...]

    def __post_init__(self) -> None:
        if not self.task_generators or not self.oracles:
            raise ConfigurationError(
                f"tests need a task generator and an oracle at least, got {len(self.task_generators)} and "
                f"{len(self.oracles)}"
            )

    async def __call__(self, task: Task, function: str, trials: Trials) -> tuple[Cases, int]:
        """The tests, and how many inputs were written for them."""
        written = await self._inputs(task)
        programs = await all_of(answer(each, question(_SOLVED, task=text_of(task))) for each in self.oracles)
        valid = await answer(self.validator, question(_VALID, task=text_of(task)))
        allowed = await trials.said(valid, function, [[each] for each in written])
        inputs = [each for each, word in zip(written, allowed, strict=False) if word == _TRUE]
        said = [await trials.said(text, function, [[each] for each in inputs]) for text in dict.fromkeys(programs)]
        outputs = [
            agreed([lines[place] for lines in said if place < len(lines)], len(said)) for place in range(len(inputs))
        ]
        kept = [(given, output) for given, output in zip(inputs, outputs, strict=True) if output is not None]
        if not kept:
            raise LLMClientError(f"no test of {len(written)} for task {task.id} is one that oracles agree on")
        return Cases(function, tuple([given] for given, _ in kept), tuple(json.loads(out)[1] for _, out in kept)), len(
            written
        )

    async def _inputs(self, task: Task) -> list[Any]:
        """Each once, in the order in which they were written; an answer that is no list gives none."""
        told = await all_of(answer(each, question(_INPUTS, task=text_of(task))) for each in self.task_generators)
        found = [each for text in told for each in _listed(text)]
        return [each for place, each in enumerate(found) if each not in found[:place]]


def agreed(said: Sequence[str], oracles: int) -> str | None:
    """What at least two oracles say, or the only one there is; what failed says nothing."""
    values = [each for each in said if _is_value(each)]
    if not values:
        return None
    (most, count), *rest = Counter(values).most_common()
    is_tied = bool(rest) and rest[0][1] == count
    return most if count >= min(_AGREED, oracles) and not is_tied else None


def _is_value(line: str) -> bool:
    """Whether a line says a value, whole and spelled as the sandbox spells it: what an oracle prints may be cut off."""
    try:
        return json.dumps(["value", json.loads(line)[1]]) == line
    except (ValueError, RecursionError, TypeError, LookupError):
        return False


def _listed(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


# HardTests (2505.24098): programs are paid where they pass all tests that were written and agreed on for their task.

_KEPT, _PASSED = "tests_kept", "passes_written"  # facts
_MOST = 512  # tasks whose tests are remembered: the same ones are written again, only later


@dataclass
class HardTests(Reward):
    """1 where a program passes every one of `tests`, else 0; its verdicts are compared with what the environment
    paid.
    """

    tests: AgreedTests
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

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
        """Nothing; says how well written tests tell right programs from wrong ones, where that can be said."""
        both = [
            (rollout.facts[_PASSED] > 0, is_right(sum(rollout.turn_rewards)))
            for group in groups
            for rollout in group.scored
            if _PASSED in rollout.facts
        ]
        return told(both)


def told(both: Sequence[tuple[bool, bool]]) -> Metrics:
    """Precision and recall of (passes, is right); 0 of 0 is missing."""
    hits = sum(passes and right for passes, right in both)
    counts = {"test_precision": sum(passes for passes, _ in both), "test_recall": sum(right for _, right in both)}
    return {name: hits / count for name, count in counts.items() if count}


_RULES = "strop.standins.test_cases"


def hardtests(
    setting: Setting = Setting(env="programs:1+programs:2"),
    is_hard: bool = True,  # with special and hacking inputs, beside plain ones
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = 20,  # supervised warm-up steps before RL
) -> Run:
    """Nothing but written tests pays; the environment's own measure them."""
    task_generators = ("direct", "special", "hacking") if is_hard else ("direct",)
    written, solved = (
        tuple(Procedural(f"{_RULES}:{name}") for name in names)
        for names in (task_generators, ("straight", "nested", "careless"))
    )
    run = setting.run("hardtests", GroupStandard(), (Clip(clip, clip),), reward_seconds=60.0)
    tests = AgreedTests(written, Procedural(f"{_RULES}:validator"), solved)
    run.rewards = (HardTests(tests, Trials(setting.isolation)),)
    run.warmup = shown(setting, "hardtests", warmup_steps)
    return run
