"""REINFORCE on programs told where they fail, against the greedy program, beside imitation of right ones.

Title: RLTF: Reinforcement Learning from Unit Test Feedback
Paper: arXiv 2307.04349 (2023)
Claim: Online samples and unit test feedback of several grains reach the best results on APPS and MBPP of their time.
Reading: Tokens of the line with the error are told -0.3, all of them where an error is everywhere, none where an answer
    is wrong; lines are found by number, where the release looks for their text. One rollout in each group is the
    environment's program and imitated; the greedy program is judged and not trained. The bundled model has never
    written a program, so a short supervised run comes before, as the paper's model was fine-tuned first. lag=1 lets
    generation run beside training, as the paper's does; at 0 the batch is the buffer.
Left out: The buffer of 6400 programs, of which a batch takes some again.
Acts: fact/feedback < 1 and credit_within > 0 and teacher/nll > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.environments.code_execution import Finding, Program, Trial, Trials, cases_of, program_in
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Advantage, Reward, Strategy
from strop.run import Run
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.among import Among
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Origin, Rollout, Start

# What RLTF (2307.04349) says of a program that was tried: a number for all of it, and the place that is to blame.
#
# Readings: what takes too much time, memory or output is a runtime error. An error of syntax in the last line is an
# unexpected end, whatever its message. The price of a scored token is flat; the release divides and multiplies it by
# the same length.

GREEDY, FEEDBACK = "greedy", "feedback"  # facts: what the greedy rollout was told, and what this one was
_COARSE = {Finding.RIGHT: 1.0, Finding.WRONG: -0.3, Finding.SYNTAX: -1.0}
_RUNTIME = -0.6
_TO_ONE = 1.3  # from -0.3, in proportion to the tests passed
_NOWHERE = frozenset(("IndentationError", "TabError"))
_EVERYWHERE = frozenset(("RecursionError",))


def coarse(trial: Trial, is_adaptive: bool = True) -> float:
    """1 where all tests pass, -0.3 where some do not, -0.6 for a runtime error, -1 for one of syntax.

    Adaptive: a program without errors rises from -0.3 towards 1 with the share of tests passed.
    """
    raised = _TO_ONE * trial.share if is_adaptive and trial.finding is Finding.WRONG else 0.0
    return _COARSE.get(trial.finding, _RUNTIME) + raised


def blamed(trial: Trial, program: Program, completion: str) -> tuple[int, int] | None:
    """Characters of the completion that the error is in: a line, or all of it; None where it cannot be said.

    All of it: what takes too long, goes too deep, or ends before it should. None: wrong answers and indentation.
    """
    lines = program.text.rstrip().split("\n")
    is_end = trial.finding is Finding.SYNTAX and trial.line >= len(lines)
    if trial.error in _NOWHERE or trial.finding in (Finding.RIGHT, Finding.WRONG):
        return None
    if trial.finding is Finding.TIME or trial.error in _EVERYWHERE or is_end:
        return 0, len(completion)
    return program.line(trial.line) if 0 < trial.line <= len(lines) else None


# RLTF's feedback (2307.04349) of several grains: what a program failed of, how many tests it passed, and where.


@dataclass(frozen=True)
class UnitTestFeedback(Reward):
    """A number for the program at its end (`feedback.coarse`), and `fine` at each token of what is to blame."""

    is_adaptive: bool = True  # the share of tests passed raises a wrong program
    fine: float = -0.3  # at each token of the line that an error is in, or of all where it is everywhere
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # awaits the sandbox

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> Paid:
        trial = await self.trials.of(rollout.completion, cases_of(rollout.task))
        told = coarse(trial, self.is_adaptive)
        rollout.facts |= {FEEDBACK: told, **trial.facts}
        place = blamed(trial, program_in(rollout.completion), rollout.completion)
        if place is None or place[0] == place[1] or not self.fine:
            return Paid(told)
        return Paid(told, (Span(len(rollout.turns) - 1, *place, each=self.fine, name="blamed"),))


# RLTF's baseline (2307.04349): beside the rollouts one that takes the likeliest tokens, which is judged, not trained.


@dataclass
class GreedyBeside(Strategy):
    """Rollouts of `inner`; each bears as fact `greedy` what the greedy one was told, unless the environment failed
    that.
    """

    inner: Strategy
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if self._policy is None:
            raise ConfigurationError("GreedyBeside does not know how tokens are drawn: call meet(policy) first")
        likeliest = play.another(sampling=replace(self._policy.sampling, temperature=0.0))
        async with asyncio.TaskGroup() as tasks:
            alone = tasks.create_task(play(likeliest))
            made = tasks.create_task(self.inner(group, starts, play))
        await play.score([alone.result()])
        told = alone.result().facts.get(FEEDBACK)
        known = {} if told is None else {GREEDY: told}
        return [replace(rollout, facts=rollout.facts | known) for rollout in made.result()]


# RLTF's advantage (2307.04349): what a rollout and each of its tokens were told, less what the greedy one was told.


@dataclass(frozen=True)
class TokenFeedback(Advantage):
    """A_t = R + p_t - b: R is paid at the end, p_t at token t alone, and b is the fact `greedy`.

    No return: what a token is told says nothing about those before it. Where the greedy rollout failed, the mean R of
    the policy's own rollouts stands for it; one that is shown says nothing about the policy.
    """

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            mean = float(np.mean([_end(rollout) for rollout in group.own or group.scored] or [0.0]))
            for rollout in group.scored:
                baseline = rollout.facts.get(GREEDY, mean)
                advantage = _end(rollout) - baseline + placed_payments(rollout)  # [N]
                rollout.advantages = advantage.astype(np.float32)


def _end(rollout: Rollout) -> float:
    return rollout.reward - float(placed_payments(rollout).sum())


def rltf(
    setting: Setting = Setting(env="programs:2"),
    is_adaptive: bool = True,  # the share of tests passed raises a wrong program
    fine: float = -0.3,  # told to each token that is to blame; 0: none
    imitation: float = 1.0,  # weight of the environment's own programs
    warmup_steps: int = 30,  # supervised warm-up steps before RL
) -> Run:
    """Right 1, wrong from -0.3 up, a runtime error -0.6, one of syntax -1."""
    run = setting.run(
        "rltf",
        TokenFeedback(),
        (Among(Reinforce(), (Origin.POLICY,)), Among(Likelihood(imitation), (Origin.TEACHER,))),
        strategy=GreedyBeside(Demonstrated(Demonstrate())),
        reward_seconds=60.0,  # many programs may wait for the sandbox
    )
    run.rewards = (UnitTestFeedback(is_adaptive, fine, Trials(setting.isolation)),)
    run.warmup = shown(setting, "rltf", warmup_steps)
    return run
