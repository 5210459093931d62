"""Each turn is paid its estimated contribution and whether the world carried it out.

Title: SPA-RL: Reinforcing LLM Agents via Stepwise Progress Attribution
Paper: arXiv 2505.20732 (2025)
Claim: Success rises by 2.5 % and grounding by 1.9 % on average over three agent benchmarks.
Reading: The equations are followed, not the released scripts, which overwrite the contributions. The estimator's
    least-squares problem is solved exactly where the release descends a gradient. The world's own pay is for
    evaluation. The weight of the KL was not found.
Acts: credit_within > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.capabilities import Stores
from strop.errors import ConfigurationError
from strop.filter.rewards.final_check import LastReply
from strop.generate.agents.chat import Chat
from strop.generate.interfaces import Dialogue
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Environment, ValueModel
from strop.run import Run
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.ridge_regression import LabelledBatch, Table, read_batches, write_batches
from strop.training.arithmetic.td_traces import KL_NOTES, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import on_written, turn_bounds
from strop.training.losses.clip import Clip
from strop.training.requirements import HIDDEN_AFTER, Note
from strop.training.values.critic import Critic
from strop.types import Group, Message, Metrics, Observation, Origin, Task, Trajectory

# SPA-RL's grounding signal (2505.20732): a turn whose action the world carried out is paid, a refused one is not.


@dataclass(frozen=True)
class Grounded(Agent):
    """Lets `inner` talk, and pays `bonus` per turn instead of what the world pays.

    The world refused a turn if an answer begins with `refusal`; the last turn counts as carried out. What the attempt
    was worth is another reward's question (`LastReply`).
    """

    inner: Agent
    bonus: float = 0.5  # of a turn that the world carried out
    refusal: str = "error"  # how an answer begins that refuses a turn

    origin: ClassVar[Origin] = Origin.POLICY

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        watched = _Watched(environment)
        await self.inner.attempt(task, dialogue, watched)
        count = len(watched.answers)
        return tuple(self._paid(answer, index == count - 1) for index, answer in enumerate(watched.answers))

    def _paid(self, answer: Observation, is_last: bool) -> float:
        is_refused = any(message.content.startswith(self.refusal) for message in answer.messages)
        return self.bonus if is_last or not is_refused else 0.0


@dataclass
class _Watched:
    """An environment whose answers are remembered."""

    inner: Environment
    answers: list[Observation] = field(default_factory=list)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, reply: Message) -> Observation:
        self.answers.append(await self.inner.step(reply))
        return self.answers[-1]

    async def close(self) -> None:
        await self.inner.close()


# SPA-RL's credit (2505.20732): turns are paid their contribution and their grounding, tokens pay the KL; then GAE.
#
# Reading: the two terms are added with weight 1, as released, and stand on a turn's last token. The outcome itself is
# not paid again: contributions add up to what it is expected to be.


@dataclass(frozen=True)
class ProgressReturns(Advantage):
    """r_t = contribution + what the agent paid at the last token of a turn, - kl * log(policy / reference) everywhere.

    delta_t = r_t + discount * V_(t+1) - V_t and A_t = delta_t + discount * trace * A_(t+1), nothing after the end;
    return_t = A_t + V_t for the critic. A is whitened over the tokens of the draw.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    kl: float = 0.0  # weight of log(policy / reference), which each token pays

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Note]:
        return KL_NOTES if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        values = [_values(attempt) for attempt in attempts]
        paid = [kl_payments(attempt, self.kl) + turns_paid(attempt) for attempt in attempts]
        credit = [traced(r, v, 0.0, self.discount, self.trace) for r, v in zip(paid, values, strict=True)]
        for attempt, own, value, white in zip(attempts, credit, values, whitened(credit, 1e-8), strict=True):
            attempt.returns, attempt.advantages = (own + value).astype(np.float32), white.astype(np.float32)


def turns_paid(attempt: Trajectory) -> NDArray[np.float64]:
    """Contribution and grounding at the last token of each turn, 0 elsewhere: [N]."""
    _, ends = turn_bounds(attempt)
    contributions = attempt.notes.get("contributions", np.zeros(0))
    if len(contributions) != len(ends):
        raise ConfigurationError(
            f"ProgressReturns needs contributions of {len(ends)} turns of attempt {attempt.id}, got "
            f"{len(contributions)}: set values=Contributions(Critic())"
        )
    has_pay = len(attempt.turn_rewards) == len(attempt.turns)
    paid = np.zeros(attempt.num_tokens)
    paid[ends] = contributions + (on_written(attempt, attempt.turn_rewards) if has_pay else 0.0)
    return paid


def _values(attempt: Trajectory) -> NDArray[np.float64]:
    if attempt.values is None or len(attempt.values) != attempt.num_tokens:
        number = 0 if attempt.values is None else len(attempt.values)
        raise ConfigurationError(
            f"ProgressReturns needs a value for each of {attempt.num_tokens} tokens, got {number}: add a critic"
        )
    return attempt.values.astype(np.float64)


# SPA-RL's progress estimator (2505.20732): each turn's contribution, of which only the sum is known.
#
# One number per turn is read off the policy's hidden state after the turn's last token, and the numbers of an attempt
# shall add up to its reward. Reading: the release regresses with a layer trained by gradient descent; the sum of linear
# readings is linear in the sum of states, so the same least-squares problem is solved exactly here. The equations are
# followed, not the released scripts, which overwrite the contributions.

_FILE = "contributions.safetensors"


@dataclass
class Contributions(ValueModel):
    """Notes the `contributions` of turns [U], refitted on the last draws; `critic` fills values and learns returns."""

    critic: ValueModel  # of the returns that contributions make
    ridge: float = 10.0  # of the regression
    window: int = 32  # draws

    needs: ClassVar[frozenset[Note]] = frozenset({HIDDEN_AFTER})
    teaches: ClassVar[bool] = True

    _slopes: Table | None = field(default=None, init=False, repr=False, compare=False)  # [H + 1]
    _batches: list[LabelledBatch] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ridge <= 0 or self.window < 1:
            raise ConfigurationError(
                f"Contributions needs ridge > 0 and window >= 1, got {self.ridge} and {self.window}"
            )

    def open(self, model: Path, seed: int) -> None:
        self.critic.open(model, seed)
        self._slopes, self._batches = None, []

    def predict(self, groups: Sequence[Group]) -> None:
        self.critic.predict(groups)
        for attempt in (attempt for group in groups for attempt in group.scored):
            states = _states(attempt)
            attempt.notes["contributions"] = np.zeros(len(states)) if self._slopes is None else states @ self._slopes

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What the critic says of itself, and the same of contributions against rewards by the name `progress_`."""
        metrics = self.critic.learn(groups)
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
        foretold = np.array([float(attempt.notes.get("contributions", np.zeros(1)).sum()) for attempt in attempts])
        if attempts:
            sums = np.stack([_states(attempt).sum(0) for attempt in attempts])
            self._batches = [*self._batches, (sums, rewards)][-self.window :]
            self._slopes = self._solved()
        own = {f"progress_{name}": figure for name, figure in calibration(foretold, rewards).items()}
        return {**metrics, **own}

    def _solved(self) -> Table:
        """min |sum of states . w - reward|^2 + ridge |w|^2; the constant per turn is not punished: [H + 1]."""
        table, rewards = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        punished = np.full(table.shape[1], self.ridge)
        punished[-1] = 1e-6  # or attempts that all have one length would leave it undetermined
        solved: Table = np.linalg.solve(table.T @ table + np.diag(punished), table.T @ rewards)
        return solved

    def save(self, folder: Path) -> None:
        if isinstance(self.critic, Stores):
            self.critic.save(folder)
        write_batches(folder / _FILE, self._batches)

    def resume(self, folder: Path) -> None:
        if isinstance(self.critic, Stores):
            self.critic.resume(folder)
        self._batches = read_batches(folder / _FILE)
        self._slopes = self._solved() if self._batches else None


def _states(attempt: Trajectory) -> Table:
    """The states after the turns that wrote something, and a constant: [U, H + 1]."""
    _, ends = turn_bounds(attempt)
    if not ends:
        return np.zeros((0, 1))
    states = HIDDEN_AFTER.of(attempt)[ends].astype(np.float64)
    return np.hstack([states, np.ones((len(states), 1))])


def spa_rl(
    setting: Setting = Setting(world="keyvalue:2"),
    bonus: float = 0.5,  # of a turn that the world carried out
    trace: float = 0.95,  # lambda of generalized advantage estimation
    kl: float = 0.01,  # weight of log(policy / reference), which each token pays
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The sum of a turn's contributions learns the check of the last reply; the world's own pay is for evaluation."""
    parts = {"values": Contributions(Critic(device=setting.device)), "agent": Grounded(Chat(), bonus)}
    run = setting.run("spa_rl", ProgressReturns(trace=trace, kl=kl), (Clip(clip, clip),), **parts)
    run.rewards = (LastReply(run.worlds),)
    return run
