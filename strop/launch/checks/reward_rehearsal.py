"""Rehearsal of a user's own rewards: whether they score right and wrong answers, and tell them apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from strop.attack.ask_rewards import AskedRewards
from strop.attack.constants import is_same
from strop.attack.untrusted_tasks import shown
from strop.environments.data import answer_extraction
from strop.environments.data.table import Table
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import reward_names
from strop.roles import Environment, Reward
from strop.storage.named_files import place_of
from strop.types import Rollout, Task

_TASKS, _SECONDS = 6, 6.0  # that are tried at most, and after which no further task is tried
_FEWEST = 2  # tasks, or as many as there are, before a reward is said to pay alike
_SHOWN = 60  # characters of a completion in a sentence
# how completions commonly put an answer
_FORMS = (
    "#### @",
    "\\boxed{@}",
    "The answer is @.",
    "<answer>@</answer>",
    "<think>\nI think.\n</think>\n<answer>@</answer>",
    "<think>\nI think.\n</think>\n\\boxed{@}",
    "<reasoning>\nI think.\n</reasoning>\n<answer>\n@\n</answer>\n",
    "Answer: @",
)


@dataclass(frozen=True)
class Rehearsed:
    """What came of a right and a wrong answer to a few tasks: why the run cannot begin, or what is doubtful."""

    refusal: str = ""
    warning: str = ""


@dataclass(frozen=True)
class _Paid:
    """Right completions of a task and wrong ones of the same forms, with what they earned."""

    rights: Sequence[Rollout]
    wrongs: Sequence[Rollout]

    @property
    def each(self) -> list[Rollout]:
        return [*self.rights, *self.wrongs]

    @property
    def is_apart(self) -> bool:
        pairs = zip(self.rights, self.wrongs, strict=True)
        return any(right.is_scored and wrong.is_scored and right.reward > wrong.reward for right, wrong in pairs)


async def rehearsed(asked: AskedRewards) -> Rehearsed:
    """What a user's own rewards pay for a right and for a wrong answer to a few tasks."""
    own = {name: each for name, each in _named(asked.rewards).items() if _place(each)}
    count = min(_TASKS, asked.env.num_tasks() or _TASKS)
    if not own or asked.is_compared:
        return Rehearsed()
    tasks = [asked.env.task(index) for index in range(count)]
    solutions = [await shown(asked.apart, task, asked.seconds) for task in tasks]
    answers = [_answer(asked, task, each) for task, each in zip(tasks, solutions, strict=True)]
    plain, formed = list[_Paid](), list[_Paid]()
    begun = time.monotonic()
    for place, task in enumerate(tasks):
        other = next((at for at, each in enumerate(answers) if not is_same(each, answers[place])), None)
        if other is None or not solutions[place].is_scored:
            continue
        both = [(solutions[at].completion, answers[at]) for at in (place, other)]
        plain.append(await _paid(asked, task, both))
        if problem := _raised(plain[-1].each, own):
            return Rehearsed(refusal=problem)
        if not formed:
            begun = time.monotonic()  # from here on: what starts a process is no completion
            await asked.paid(task, plain[0].rights[:1])
            if 2 * len(_FORMS) * (time.monotonic() - begun) > _SECONDS:
                took = f"{' + '.join(own)} took {time.monotonic() - begun:.1f} s for one completion"
                return Rehearsed(warning=f"{took}: too slow to try whether it tells right answers from wrong ones")
        formed.append(await _paid(asked, task, [[form.replace("@", text[1]) for form in _FORMS] for text in both]))
        if time.monotonic() - begun > _SECONDS and len(formed) >= _FEWEST:
            break
    return _judged(asked, own, plain, formed)


async def _paid(asked: AskedRewards, task: Task, texts: Sequence[Sequence[str]]) -> _Paid:
    """Right and wrong texts, scored together."""
    paid = await asked.paid(task, await asked.episodes(task, [*texts[0], *texts[1]]))
    return _Paid(paid[: len(texts[0])], paid[len(texts[0]) :])


def _judged(asked: AskedRewards, own: dict[str, Reward], found: Sequence[_Paid], formed: Sequence[_Paid]) -> Rehearsed:
    doubtful = next((text for each in formed if (text := _raised(each.each, own))), "")
    if not found or not _has_answers(asked.env) or any(each.is_apart for each in (*found, *formed)):
        return Rehearsed(warning=doubtful and f"{doubtful}; such rollouts are left out, they do not count as wrong")
    right, wrong = found[0].rights[0], found[0].wrongs[0]
    named = " + ".join(f"{name} ({_place(each)})" for name, each in own.items())
    handed = [repr(each.answer(right.task)) for each in own.values() if isinstance(each, PythonFunction)]
    return Rehearsed(
        refusal=f"{named} pays right and wrong answers alike at all {len(found)} tasks of {asked.env.name} that were "
        f"tried: {_shown(right)} earns {right.reward:g} and {_shown(wrong)} {wrong.reward:g}"
        + (f", where the function is handed answer={handed[0]}" if handed else "")
        + ". Mend it; where it wants a form of its own, show some in a column `completion`, or train all the same with "
        "allow_constant_completions=true"
    )


def _raised(rollouts: Sequence[Rollout], own: dict[str, Reward]) -> str:
    """The first failure by a user's own reward."""
    for rollout in rollouts:
        name, _, error = rollout.error.removeprefix("reward ").partition(": ")
        if not rollout.is_scored and name in own and "no answer within" not in error:
            return f"{name} ({_place(own[name])}) fails at {_shown(rollout)}: {error}"
    return ""


def _named(rewards: Sequence[Reward]) -> dict[str, Reward]:
    return dict(zip(reward_names(rewards), rewards, strict=True))


def _place(reward: Reward) -> str:
    """File and line of a user's own reward; empty for one of strop's."""
    return reward.place if isinstance(reward, PythonFunction) else place_of(type(reward))


def _answer(asked: AskedRewards, task: Task, solution: Rollout) -> str:
    if isinstance(asked.env, Table):
        return answer_extraction.gold(asked.env.chosen[0], task.answer)
    return asked.answer(solution.completion)


def _has_answers(env: Environment) -> bool:
    """Whether it is known what is right: of tables with answers, and of bundled environments."""
    return env.is_answered if isinstance(env, Table) else type(env).__module__.startswith("strop.environments.bundled")


def _shown(rollout: Rollout) -> str:
    text = rollout.completion
    return repr(text if len(text) <= _SHOWN else f"... {text[-_SHOWN:]}")
