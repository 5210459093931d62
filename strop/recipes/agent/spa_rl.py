"""Each turn is paid its estimated contribution and whether the environment carried it out.

Title: SPA-RL: Reinforcing LLM Agents via Stepwise Progress Attribution
Paper: arXiv 2505.20732 (2025)
Claim: Success rises by 2.5 % and grounding by 1.9 % on average over three agent benchmarks.
Reading: The equations are followed, not the released scripts, which overwrite the contributions. The estimator's
    least-squares problem is solved exactly where the release descends a gradient. The environment's own pay is for
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
from strop.filter.rewards.final_check import LastCompletion
from strop.generate.agents.chat import Chat
from strop.generate.interfaces import Dialogue
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Episode, ValueModel
from strop.run import Run
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.ridge_regression import LabelledBatch, Table, read_batches, write_batches
from strop.training.arithmetic.td_traces import KL_STATISTICS, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import on_written, turn_bounds
from strop.training.losses.clip import Clip
from strop.training.requirements import HIDDEN_AFTER, PolicyStatistic
from strop.training.values.critic import Critic
from strop.types import Group, Message, Metrics, Observation, Origin, Rollout, Task

# SPA-RL's grounding signal (2505.20732): a turn whose action the environment carried out is paid, a refused one is not.


@dataclass(frozen=True)
class Grounded(Agent):
    """Lets `inner` talk, and pays `bonus` per turn instead of what the environment pays.

    The environment refused a turn if an answer begins with `refusal`; the last turn counts as carried out. What the
    rollout was worth is another reward's question (`LastCompletion`).
    """

    inner: Agent
    bonus: float = 0.5  # of a turn that the environment carried out
    refusal: str = "error"  # how an answer begins that refuses a turn

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        watched = _Watched(episode)
        await self.inner.rollout(task, dialogue, watched)
        count = len(watched.answers)
        return tuple(self._paid(answer, index == count - 1) for index, answer in enumerate(watched.answers))

    def _paid(self, answer: Observation, is_last: bool) -> float:
        is_refused = any(message.content.startswith(self.refusal) for message in answer.messages)
        return self.bonus if is_last or not is_refused else 0.0


@dataclass
class _Watched:
    """An episode whose answers are remembered."""

    inner: Episode
    answers: list[Observation] = field(default_factory=list)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        self.answers.append(await self.inner.step(completion))
        return self.answers[-1]

    async def close(self) -> None:
        await self.inner.close()


# SPA-RL's advantage (2505.20732): turns are paid their contribution and their grounding, tokens pay the KL; then GAE.
#
# Reading: the two terms are added with weight 1, as released, and stand on a turn's last token. The outcome itself is
# not paid again: contributions add up to what it is expected to be.


@dataclass(frozen=True)
class ProgressReturns(Advantage):
    """r_t = contribution + what the agent paid at the last token of a turn, - kl * log(policy / reference) everywhere.

    delta_t = r_t + discount * V_(t+1) - V_t and A_t = delta_t + discount * trace * A_(t+1), nothing after the end;
    return_t = A_t + V_t for the critic. A is whitened over the tokens of the batch.
    """

    discount: float = 1.0  # from token to token
    trace: float = 0.95  # lambda: 1 looks to the end, 0 one token ahead
    kl: float = 0.0  # weight of log(policy / reference), which each token pays

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return KL_STATISTICS if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        values = [_values(rollout) for rollout in rollouts]
        paid = [kl_payments(rollout, self.kl) + turns_paid(rollout) for rollout in rollouts]
        advantage = [traced(r, v, 0.0, self.discount, self.trace) for r, v in zip(paid, values, strict=True)]
        for rollout, own, value, white in zip(rollouts, advantage, values, whitened(advantage, 1e-8), strict=True):
            rollout.returns, rollout.advantages = (own + value).astype(np.float32), white.astype(np.float32)


def turns_paid(rollout: Rollout) -> NDArray[np.float64]:
    """Contribution and grounding at the last token of each turn, 0 elsewhere: [N]."""
    _, ends = turn_bounds(rollout)
    contributions = rollout.policy_statistics.get("contributions", np.zeros(0))
    if len(contributions) != len(ends):
        raise ConfigurationError(
            f"ProgressReturns needs contributions of {len(ends)} turns of rollout {rollout.id}, got "
            f"{len(contributions)}: set values=Contributions(Critic())"
        )
    has_pay = len(rollout.turn_rewards) == len(rollout.turns)
    paid = np.zeros(rollout.num_tokens)
    paid[ends] = contributions + (on_written(rollout, rollout.turn_rewards) if has_pay else 0.0)
    return paid


def _values(rollout: Rollout) -> NDArray[np.float64]:
    if rollout.values is None or len(rollout.values) != rollout.num_tokens:
        number = 0 if rollout.values is None else len(rollout.values)
        raise ConfigurationError(
            f"ProgressReturns needs a value for each of {rollout.num_tokens} tokens, got {number}: add a critic"
        )
    return rollout.values.astype(np.float64)


# SPA-RL's progress estimator (2505.20732): each turn's contribution, of which only the sum is known.
#
# One number per turn is read off the policy's hidden state after the turn's last token, and the numbers of a rollout
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

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({HIDDEN_AFTER})
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
        for rollout in (rollout for group in groups for rollout in group.scored):
            states = _states(rollout)
            rollout.policy_statistics["contributions"] = (
                np.zeros(len(states)) if self._slopes is None else states @ self._slopes
            )

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """What the critic says of itself, and the same of contributions against rewards by the name `progress_`."""
        metrics = self.critic.learn(groups)
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
        predicted = np.array(
            [float(rollout.policy_statistics.get("contributions", np.zeros(1)).sum()) for rollout in rollouts]
        )
        if rollouts:
            sums = np.stack([_states(rollout).sum(0) for rollout in rollouts])
            self._batches = [*self._batches, (sums, rewards)][-self.window :]
            self._slopes = self._solved()
        own = {f"progress_{name}": metric for name, metric in calibration(predicted, rewards).items()}
        return {**metrics, **own}

    def _solved(self) -> Table:
        """min |sum of states . w - reward|^2 + ridge |w|^2; the constant per turn is not punished: [H + 1]."""
        table, rewards = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        punished = np.full(table.shape[1], self.ridge)
        punished[-1] = 1e-6  # or rollouts that all have one length would leave it undetermined
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


def _states(rollout: Rollout) -> Table:
    """The states after the turns that wrote something, and a constant: [U, H + 1]."""
    _, ends = turn_bounds(rollout)
    if not ends:
        return np.zeros((0, 1))
    states = HIDDEN_AFTER.of(rollout)[ends].astype(np.float64)
    return np.hstack([states, np.ones((len(states), 1))])


def spa_rl(
    setting: Setting = Setting(env="keyvalue:2"),
    bonus: float = 0.5,  # of a turn that the environment carried out
    trace: float = 0.95,  # lambda of generalized advantage estimation
    kl: float = 0.01,  # weight of log(policy / reference), which each token pays
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """The sum of a turn's contributions learns the check of the last completion; the environment's own pay is for
    evaluation.
    """
    parts = {"values": Contributions(Critic(device=setting.device)), "agent": Grounded(Chat(), bonus)}
    run = setting.run("spa_rl", ProgressReturns(trace=trace, kl=kl), (Clip(clip, clip),), **parts)
    run.rewards = (LastCompletion(run.envs),)
    return run
