"""Probe with constant completions: a reward that pays one of them like correct answers teaches the policy to always
give it.

A constant completion may earn as much as the tasks where it is the correct answer explain, so a yes/no question may pay
`yes` on half of its tasks. Its rewards on all other tasks are unexplained.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from strop.attack.ask_rewards import AskedRewards
from strop.attack.constants import ConstantCompletion, constants, frame_of, is_same, most_frequent
from strop.attack.run_attack import prompt_text
from strop.attack.untrusted_tasks import shown
from strop.capabilities import Demonstrates
from strop.environments.format.think_tags import final_answer
from strop.errors import RewardError, StropError
from strop.filter.rewards.from_environment import Checked
from strop.generate.rollout import describe
from strop.roles import Environment
from strop.stats.intervals import wilson_low
from strop.types import Rollout, Task

TASKS = 50
_SLACK = 0.05  # share of tasks at which a constant may be right by chance, without equalling the answer that is known
_SLACK_OF_ANSWERS = 0.15  # the same for one that is the answer of other tasks
_PARTLY = 0.5  # of what right answers earn, on average: clearly more than a wrong one should
_DOMINATES = 0.9
_EQUAL = 1e-9
_RIGHT = 3  # ordinary completions that are right; the others are wrong


@dataclass(frozen=True)
class ConstantPay:
    """Rewards of one constant completion on tasks where it is not the answer."""

    name: str
    tasks: int  # at which it is not the answer, and it is known what right answers earn
    paid: int  # of them, those that paid it what a right answer earns
    mean: float  # of what it earned there, with a wrong answer as 0 and a right one as 1
    probed: int  # tasks in all
    is_some_answer: bool = False  # of other tasks, so that it may be nearly right, or right too, at these
    is_prompt: bool = False  # which may well hold a part of the answer
    is_cut: bool = False  # fewer tasks than wanted were tried, so that the share is uncertain

    @property
    def share(self) -> float:
        """Of all tasks, those that paid it in full and nothing explains it."""
        return self.paid / self.probed if self.probed else 0.0

    @property
    def is_fault(self) -> bool:
        slack = _SLACK_OF_ANSWERS if self.is_some_answer else _SLACK
        least = min(max(2.0, slack * self.probed), self.probed)
        is_partly = self.mean >= _PARTLY and self.tasks >= least and not self.is_prompt
        # of few tasks a few may be luck: no run is refused because the machine was busy
        is_sure = not self.is_cut or wilson_low(self.paid, self.probed) > slack
        return self.tasks > 0 and ((self.paid >= least and is_sure) or is_partly)

    def told(self) -> str:
        if self.paid:
            return f"{self.name!r} is paid like a right answer on {self.paid} of {self.probed} tasks ({self.share:.0%})"
        return f"{self.name!r} earns {self.mean:.2f} of what a right answer does"


@dataclass(frozen=True)
class Probed:
    """Results of all constant completions in one environment; `problem` is the reason why they were not tried."""

    env: str
    tasks: int = 0
    wanted: int = 0
    pays: tuple[ConstantPay, ...] = ()
    frequent: str = ""  # the answer that most tasks have
    frequent_share: float = 0.0
    apart: int = 0  # tasks at which a right answer earned more than a wrong one
    problem: str = ""
    refusal: str = ""  # why nothing can be learned from these rewards
    warning: str = ""

    @property
    def faults(self) -> list[ConstantPay]:
        return sorted((each for each in self.pays if each.is_fault), key=lambda each: (-each.share, -each.mean))

    @property
    def is_cut(self) -> bool:
        return self.tasks < self.wanted

    @property
    def is_dominated(self) -> bool:
        return self.tasks >= 10 and bool(self.frequent) and self.frequent_share > _DOMINATES


@dataclass(frozen=True)
class _Pay:
    """Reward of one constant completion on one task."""

    is_answer: bool
    earned: float | None


@dataclass(frozen=True)
class _Told:
    """Results of one task: rewards of a correct and of a wrong answer, and of each constant completion."""

    right: float
    wrong: float
    known: bool  # whether that right answer is one
    pays: list[_Pay]

    @property
    def is_apart(self) -> bool:
        return self.right > self.wrong + _EQUAL


async def probed(asked: AskedRewards, most: int = TASKS, seconds: float = 3.0) -> Probed:
    """ConstantCompletion completions at `most` tasks, or as many as fit in that time."""
    name = f"{asked.env.name}:{asked.env.level}"
    try:
        return await _probed(asked, name, most, seconds)
    except StropError as error:
        return Probed(name, problem=str(error))
    except Exception as error:  # of an episode that is not ours: no reason to end before anything began
        return Probed(name, problem=describe(error))


async def _probed(asked: AskedRewards, name: str, most: int, seconds: float) -> Probed:
    wanted = min(most, asked.env.num_tasks() or most)
    tasks, right = await _right(asked, wanted, seconds / 2)
    begun = time.monotonic()
    answers = [asked.answer(each.completion) for each in right]
    frequent, share = most_frequent(answers)
    said = constants(frame_of(right[0].completion, answers[0]), frequent)
    told = list[_Told]()
    plain = [not any(is_same(answer, each.value) for each in said) for answer in answers]
    for place, task in enumerate(tasks):
        other = _other(place, answers, plain)
        ordinary = await _ordinary(asked, task, answers[place], right[place], None if other is None else right[other])
        if not told and (problem := _too_slow(await _alone(asked, task, ordinary), len(said), seconds)):
            return Probed(name, problem=problem)
        begun = begun if told else time.monotonic()  # what starts a process is no answer
        told.append(await _asked_at(asked, task, answers[place], ordinary, said))
        if time.monotonic() - begun > seconds:
            break
    apart = sum(each.is_apart for each in told)
    pays = tuple(_pays(said, told, _most(asked), len(told) < wanted))
    return Probed(name, len(told), wanted, pays, frequent, share, apart)


async def _right(asked: AskedRewards, wanted: int, seconds: float) -> tuple[list[Task], list[Rollout]]:
    """Tasks, with what is right there as far as somebody says; at least two, where there are."""
    tasks, right, until = list[Task](), list[Rollout](), math.inf
    for index in range(wanted):
        tasks.append(asked.env.task(index))
        right.append(await shown(asked.apart, tasks[-1], asked.seconds))
        if not right[-1].is_scored:
            raise RewardError(f"it fails an ordinary answer: {right[-1].error}")
        if index == 0:
            until = time.monotonic() + seconds  # from here on: what starts a process is no task
        elif time.monotonic() > until:
            break
    return tasks, right


def _other(place: int, answers: Sequence[str], plain: Sequence[bool]) -> int | None:
    """The next task that has another answer, if possible one that is not among the constants."""
    order = sorted([*range(place + 1, len(answers)), *range(place)], key=lambda each: not plain[each])
    return next((each for each in order if not is_same(answers[each], answers[place])), None)


async def _ordinary(
    asked: AskedRewards, task: Task, answer: str, right: Rollout, other: Rollout | None
) -> list[Rollout]:
    """A right answer, worked out and in two ways bare, and that of another task, likewise."""
    wrong = [] if other is None else [other.completion, final_answer(other.completion)]
    return [right, *await asked.episodes(task, [answer, final_answer(right.completion), *wrong])]


async def _alone(asked: AskedRewards, task: Task, ordinary: Sequence[Rollout]) -> float:
    """Seconds that one completion takes, once whatever has to start has started."""
    await asked.paid(task, ordinary)
    begun = time.monotonic()
    await asked.earned(task, [ordinary[0].completion], ordinary)
    return time.monotonic() - begun


def _too_slow(alone: float, count: int, seconds: float) -> str:
    if alone * count <= seconds:
        return ""
    return f"one completion takes {alone:.2g} s, and {count} for each task would take too long"


async def _asked_at(
    asked: AskedRewards, task: Task, answer: str, ordinary: Sequence[Rollout], said: Sequence[ConstantCompletion]
) -> _Told:
    prompt = prompt_text(task)
    paid = await asked.paid(task, ordinary)
    rights = [each.reward for each in paid[:_RIGHT] if each.is_scored]
    if not rights:
        raise RewardError(f"it fails an ordinary answer: {paid[0].error}")
    texts = [each.said(prompt) for each in said]
    earned = await asked.earned(task, texts, ordinary)
    lowest = min(each for each in (*earned, max(rights)) if each is not None)
    wrong = max((each.reward for each in paid[_RIGHT:] if each.is_scored), default=lowest)
    is_known = (bool(answer) and _is_known(asked.env)) or max(rights) > max(wrong, lowest)
    pays = [
        _Pay(is_same(each.value, answer) or is_same(asked.answer(text), answer), pay)
        for each, text, pay in zip(said, texts, earned, strict=True)
    ]
    return _Told(max(rights), wrong, is_known, pays)


def _is_known(env: Environment) -> bool:
    """Whether somebody says what is right; an episode of others keeps whatever it likes as a task's answer."""
    return env.is_inline or not env.pays or isinstance(env.episode(), Demonstrates)


def _most(asked: AskedRewards) -> float:
    """What the rewards pay at most, where that is known: an environment's own check goes from 0 to 1."""
    is_check = all(isinstance(each, Checked) for each in asked.rewards)
    return sum(each.weight for each in asked.rewards) if is_check else -math.inf


def _pays(
    said: Sequence[ConstantCompletion], told: Sequence[_Told], most: float, is_cut: bool
) -> Iterator[ConstantPay]:
    owing = _owing(told, most)
    for place, constant in enumerate(said):
        kept = [(each, each.pays[place]) for each in owing if not each.pays[place].is_answer]
        ratios = [_ratio(each, pay.earned) for each, pay in kept]
        mean = sum(ratios) / len(ratios) if ratios else 0.0
        paid = sum(ratio >= 1.0 - _EQUAL for ratio in ratios)
        is_some_answer = any(each.pays[place].is_answer for each in told)
        yield ConstantPay(constant.name, len(kept), paid, mean, len(told), is_some_answer, constant.is_prompt, is_cut)


def _owing(told: Sequence[_Told], most: float) -> list[_Told]:
    """Tasks at which it is known what a right answer earns; those that tell answers apart, where half of them do."""
    seen = [pay.earned for each in told for pay in each.pays if pay.earned is not None]
    top, bottom = max(seen, default=0.0), min(seen, default=0.0)
    top = max(top, most)
    scaled = [each if each.known else replace(each, right=top, wrong=bottom) for each in told]
    apart = [each for each in scaled if each.is_apart]
    return apart if 2 * len(apart) >= len(told) else [each for each in scaled if each.right > min(bottom, 0.0) + _EQUAL]


def _ratio(told: _Told, earned: float | None) -> float:
    """What a completion earned, from 0 for what a wrong one does to 1 for what a right one does."""
    if earned is None:
        return 0.0
    if not told.is_apart:
        return float(earned >= told.right - _EQUAL)
    return min(max((earned - told.wrong) / (told.right - told.wrong), 0.0), 1.0)
