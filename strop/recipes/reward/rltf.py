"""RLTF: REINFORCE on unit test feedback per program and per token, with a greedy baseline and imitation.

Title: RLTF: Reinforcement Learning from Unit Test Feedback
Paper: arXiv 2307.04349 (2023)
Claim: Online samples and unit test feedback of several grains reach the best results on APPS and MBPP of their time.
Reading: Tokens of the line with the error get -0.3, all tokens if the error is everywhere, none for a wrong answer;
    lines are found by number, where the release searches for their text. One rollout in each group is the environment's
    program and is imitated; the greedy program is scored and not trained on. The bundled model has never written a
    program, so a short supervised warm-up comes first, as the paper's model was fine-tuned first. lag=1 lets generation
    run concurrently with training, as the paper's does; at 0 the batch is the buffer.
Left out: The buffer of 6400 programs, from which each batch samples some again.
Acts: fact/feedback < 1 and advantage_within > 0 and teacher/nll > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Finding, Program, Trial, Trials, program_in
from strop.environments.needs import TESTS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.policy import Policy
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Advantage, Player, Reward, Strategy
from strop.run import Run
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.among import Among
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Origin, Rollout, ScoreRange, Start

# RLTF's feedback on an executed program (2307.04349): a score of the whole and the place of the error.
#
# Reading: too much time, memory or output is a runtime error. A syntax error in the last line is an unexpected end,
# whatever its message. The penalty per token is constant; the release divides and multiplies it by the same length.

GREEDY, FEEDBACK = "greedy", "feedback"  # facts: scores of the greedy rollout and of this one
_COARSE = {Finding.RIGHT: 1.0, Finding.WRONG: -0.3, Finding.SYNTAX: -1.0}
_RUNTIME = -0.6
_TO_ONE = 1.3  # from -0.3 to 1, in proportion to the tests passed
_NOWHERE = frozenset(("IndentationError", "TabError"))
_EVERYWHERE = frozenset(("RecursionError",))


def coarse(trial: Trial, is_adaptive: bool = True) -> float:
    """1 if all tests pass, -0.3 if some fail, -0.6 for a runtime error, -1 for a syntax error.

    Adaptive: a program without errors rises from -0.3 towards 1 with the share of tests passed.
    """
    raised = _TO_ONE * trial.share if is_adaptive and trial.finding is Finding.WRONG else 0.0
    return _COARSE.get(trial.finding, _RUNTIME) + raised


def blamed(trial: Trial, program: Program, completion: str) -> tuple[int, int] | None:
    """Characters of the completion that hold the error: a line, or all of it; None if it has no place.

    All of it: timeouts, too deep recursion and unexpected ends. None: wrong answers and indentation errors.
    """
    lines = program.text.rstrip().split("\n")
    is_end = trial.finding is Finding.SYNTAX and trial.line >= len(lines)
    if trial.error in _NOWHERE or trial.finding in (Finding.RIGHT, Finding.WRONG):
        return None
    if trial.finding is Finding.TIME or trial.error in _EVERYWHERE or is_end:
        return 0, len(completion)
    return program.line(trial.line) if 0 < trial.line <= len(lines) else None


# RLTF's multi-grained feedback (2307.04349): the kind of error, the share of tests passed, and the error's place.


@dataclass(frozen=True)
class UnitTestFeedback(Reward):
    """Score of the program at its end (`coarse`), and `fine` at each token of the erroneous line."""

    is_adaptive: bool = True  # the share of tests passed raises the score of a wrong program
    fine: float = -0.3  # per token of the line with the error, or of all lines if the error is everywhere
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange(-1.0, 1.0)
    is_inline: ClassVar[bool] = True  # awaits the sandbox
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TESTS,)

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> Paid:
        trial = await self.trials.of(rollout.completion, cases_of(rollout.task))
        score = coarse(trial, self.is_adaptive)
        rollout.facts |= {FEEDBACK: score, **trial.facts}
        place = blamed(trial, program_in(rollout.completion), rollout.completion)
        if place is None or place[0] == place[1] or not self.fine:
            return Paid(score)
        return Paid(score, (Span(len(rollout.turns) - 1, *place, each=self.fine, name="blamed"),))


# RLTF's baseline (2307.04349): one greedy rollout per group, which is scored and not trained on.


@dataclass
class GreedyBaseline(Strategy):
    """Rollouts of `inner` with the greedy rollout's score as fact `greedy`, unless the environment failed it."""

    inner: Strategy
    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if self._policy is None:
            raise ConfigurationError("GreedyBaseline has no policy: call meet(policy) first")
        start = play.another(sampling=replace(self._policy.sampling, temperature=0.0))
        async with asyncio.TaskGroup() as tasks:
            greedy = tasks.create_task(play(start))
            sampled = tasks.create_task(self.inner(group, starts, play))
        (scored,) = await play.score([greedy.result()])
        score = None if scored is None else scored.facts.get(FEEDBACK)
        known = {} if score is None else {GREEDY: score}
        return [replace(rollout, facts=rollout.facts | known) for rollout in sampled.result()]


# RLTF's advantage (2307.04349): feedback on the rollout and on each token, less the greedy rollout's score.


@dataclass(frozen=True)
class TokenFeedback(Advantage):
    """A_t = R + p_t - b: R is the reward at the end, p_t that at token t alone, and b the fact `greedy`.

    p_t is no return: it does not count for earlier tokens. If the greedy rollout failed, b is the mean R of the
    policy's own rollouts, without demonstrations.
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
    is_adaptive: bool = True,  # the share of tests passed raises the score of a wrong program
    fine: float = -0.3,  # reward per token of the line with the error; 0: none
    imitation: float = 1.0,  # weight of imitating the environment's own programs
    warmup_steps: int = BundledOnly(30),  # supervised warm-up steps before RL
) -> Run:
    """Rewards: right 1, wrong -0.3 or more, runtime error -0.6, syntax error -1."""
    run = setting.run(
        "rltf",
        TokenFeedback(),
        (Among(Reinforce(), (Origin.POLICY,)), Among(Likelihood(imitation), (Origin.TEACHER,))),
        strategy=GreedyBaseline(Demonstrated(Demonstrate())),
        reward_seconds=60.0,  # many programs may wait for the sandbox
    )
    run.rewards = (UnitTestFeedback(is_adaptive, fine, Trials(setting.isolation)),)
    run.warmup = shown(setting, "rltf", warmup_steps)
    return run
