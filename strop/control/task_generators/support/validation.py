"""Validation of generated tasks before they reach the sampler."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from strop.capabilities import TakesOffers, outermost
from strop.environments.data.heldout_split import HeldOutSide, prompt_of
from strop.environments.data.lookup import env_of
from strop.errors import LLMClientError
from strop.roles import Environment
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.observe.metrics.step_metrics import Tally
    from strop.roles import Player
    from strop.run import Run

_LOOKED_AT = 16  # tasks of an environment that show whether its questions say their answers


@dataclass
class Offers:
    """Queue of generated tasks between generator and sampler, with counts of accepted and of refused ones by reason."""

    run: Run
    policy: Policy
    tally: Tally
    _telling: dict[tuple[str, int], list[bool]] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def written(self, group: Group, play: Player) -> list[Task]:
        """What follows from a group; nothing where whoever was asked did not answer."""
        if self.run.task_generator is None or not group.rollouts:
            return []
        try:
            return await self.run.task_generator(group, play)
        except LLMClientError:
            self.tally.offered("llm_client_failed")
            return []

    def hand(self, tasks: Sequence[Task]) -> None:
        """Give the sampler those that may be trained on."""
        for task in tasks:
            refused = self.refusal(task)
            self.tally.offered(refused)
            for _, sampler in [] if refused else outermost(self.run.sampler, TakesOffers):
                sampler.offer(task)

    def refusal(self, task: Task) -> str:
        """Why a written task may not be trained on; empty where it may."""
        asked, env = prompt_of(task).strip(), env_of(self.run.envs, task)
        if not asked:
            return "empty"
        if self._heldout.holds_out(task):
            return "held_out"
        if not self.policy.fits(task):
            return "too_long"
        if env.is_inline and not _is_readable(env, task):
            return "unreadable"
        return "holds_answer" if self._leaks(env, task) else ""

    def _leaks(self, env: Environment, task: Task) -> bool:
        """Whether its text says the answer, raw or as its environment spells it, where most of the environment's own do
        not.

        The choices of a question and the numbers of `make 23 from 2 3 7` say it in every task.
        """
        name = (env.name, env.level)
        if name not in self._telling:
            count = env.num_tasks()
            own = [_says(env, env.task(index)) for index in range(min(count or _LOOKED_AT, _LOOKED_AT))]
            self._telling[name] = [2 * sum(each) > len(own) for each in zip(*own, strict=True)]
        return any(says and not usual for says, usual in zip(_says(env, task), self._telling[name], strict=True))

    @cached_property
    def _heldout(self) -> HeldOutSide:
        return HeldOutSide((*self.run.envs, *self.run.evaluation.unseen))


def _is_readable(env: Environment, task: Task) -> bool:
    """Whether its environment can judge completions to it; one whose answer it cannot read would fail every rollout."""
    try:
        env.check(task, "")
    except Exception:  # whatever an environment does with an answer that is none of its own
        return False
    return True


def _says(env: Environment, task: Task) -> list[bool]:
    """Whether a text says the answer, in each spelling."""
    spellings: list[Callable[[str], str]] = [str.strip, *([env.answer] if env.is_inline else [])]
    return [holds(prompt_of(task), spell(task.answer)) for spell in spellings]


def holds(text: str, answer: str) -> bool:
    """Whether a text says an answer in whole words and whole numbers: 5 is not in 45, 5.2 or 2.5."""
    if not answer:
        return False
    found = rf"(?<![\w.])(?<!\d,){re.escape(answer)}(?!\w|[.,]\d)"
    return re.search(found, text, re.IGNORECASE) is not None
