"""SPA-RL: PPO with per-turn rewards from a learned progress estimator plus a grounding bonus for executable actions.

Title: SPA-RL: Reinforcing LLM Agents via Stepwise Progress Attribution
Paper: arXiv 2505.20732 (2025)
Claim: Success rises by 2.5 % and grounding by 1.9 % on average over three agent benchmarks.
Reading: The paper's equations, not the released scripts, which overwrite the contributions. The estimator's
    least-squares problem is solved exactly, where the release uses gradient descent. The environment's own rewards are
    for evaluation only. The weight of the KL penalty was not found.
Acts: advantage_within > 0 and value_grad_norm > 0
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
from strop.filter.rewards.from_environment import LastCompletion
from strop.generate.agents.chat import Chat
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Dialogue, Episode, ValueModel
from strop.run import Run
from strop.training.arithmetic.calibration import calibration
from strop.training.arithmetic.ridge_regression import LabelledBatch, Table, read_batches, write_batches
from strop.training.arithmetic.td_traces import KL_STATISTICS, kl_payments, traced, whitened
from strop.training.arithmetic.turn_returns import on_written, turn_bounds
from strop.training.losses.clip import Clip
from strop.training.requirements import HIDDEN_AFTER, PolicyStatistic
from strop.training.values.critic import Critic
from strop.types import Group, Message, Metrics, Observation, Origin, Rollout, Task

# SPA-RL's grounding signal (2505.20732): a bonus for each turn whose action the environment executed.


@dataclass(frozen=True)
class Grounded(Agent):
    """Agent `inner` with `bonus` for each executed turn in place of the environment's rewards.

    A turn is refused if one of the environment's messages starts with `refusal`; the last turn counts as executed. The
    outcome is the reward `LastCompletion`.
    """

    inner: Agent
    bonus: float = 0.5  # reward of a turn that the environment executed
    refusal: str = "error"  # prefix of an environment message that refuses a turn

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        recorded = _Recorded(episode)
        await self.inner.rollout(task, dialogue, recorded)
        count = len(recorded.answers)
        return tuple(self._paid(answer, index == count - 1) for index, answer in enumerate(recorded.answers))

    def _paid(self, answer: Observation, is_last: bool) -> float:
        is_refused = any(message.content.startswith(self.refusal) for message in answer.messages)
        return self.bonus if is_last or not is_refused else 0.0


@dataclass
class _Recorded:
    """Wrapper of an episode that records its observations."""

    inner: Episode
    answers: list[Observation] = field(default_factory=list)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        self.answers.append(await self.inner.step(completion))
        return self.answers[-1]

    async def close(self) -> None:
        await self.inner.close()


# SPA-RL's advantage (2505.20732): GAE on contribution and grounding per turn, with a KL penalty per token.
#
# Reading: both terms have weight 1, as released, and are on a turn's last token. The outcome is not added again: the
# contributions sum to its prediction.


@dataclass(frozen=True)
class ProgressReturns(Advantage):
    """r_t = (contribution + grounding at a turn's last token) - kl * log(policy / reference) at each token.

    delta_t = r_t + discount * V_(t+1) - V_t and A_t = delta_t + discount * trace * A_(t+1), 0 after the end;
    return_t = A_t + V_t for the critic. A is whitened over the tokens of the batch.
    """

    discount: float = 1.0  # discount per token
    trace: float = 0.95  # lambda of generalized advantage estimation
    kl: float = 0.0  # weight of the KL penalty in the reward of each token

    needs_values: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return KL_STATISTICS if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        values = [_values(rollout) for rollout in rollouts]
        rewards = [kl_payments(rollout, self.kl) + turn_rewards_of(rollout) for rollout in rollouts]
        advantage = [traced(r, v, 0.0, self.discount, self.trace) for r, v in zip(rewards, values, strict=True)]
        for rollout, own, value, white in zip(rollouts, advantage, values, whitened(advantage, 1e-8), strict=True):
            rollout.returns, rollout.advantages = (own + value).astype(np.float32), white.astype(np.float32)


def turn_rewards_of(rollout: Rollout) -> NDArray[np.float64]:
    """Contribution and grounding at the last token of each turn, 0 elsewhere: [N]."""
    _, ends = turn_bounds(rollout)
    contributions = rollout.policy_statistics.get("contributions", np.zeros(0))
    if len(contributions) != len(ends):
        raise ConfigurationError(
            f"ProgressReturns needs contributions of {len(ends)} turns of rollout {rollout.id}, got "
            f"{len(contributions)}: set values=Contributions(Critic())"
        )
    has_pay = len(rollout.turn_rewards) == len(rollout.turns)
    rewards = np.zeros(rollout.num_tokens)
    rewards[ends] = contributions + (on_written(rollout, rollout.turn_rewards) if has_pay else 0.0)
    return rewards


def _values(rollout: Rollout) -> NDArray[np.float64]:
    if rollout.values is None or len(rollout.values) != rollout.num_tokens:
        number = 0 if rollout.values is None else len(rollout.values)
        raise ConfigurationError(
            f"ProgressReturns needs a value for each of {rollout.num_tokens} tokens, got {number}: add a critic"
        )
    return rollout.values.astype(np.float64)


# SPA-RL's progress estimator (2505.20732): contributions of turns, supervised only by their sum.
#
# A linear map of the policy's hidden state after a turn's last token predicts the turn's contribution; the predictions
# of a rollout are fitted so that they sum to its reward. Reading: the release trains a layer by gradient descent; a
# sum of linear predictions is linear in the sum of states, so the least-squares problem is solved exactly here.

_FILE = "contributions.safetensors"


@dataclass
class Contributions(ValueModel):
    """Predicts the `contributions` of turns [U], refitted on the last batches; `critic` predicts the returns."""

    critic: ValueModel  # of the returns of the contributions
    ridge: float = 10.0  # ridge penalty of the regression
    window: int = 32  # latest training batches

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
        """Fit both; the critic's metrics, and those of the contributions against rewards with prefix `progress_`."""
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
        """min |sum of states . w - reward|^2 + ridge |w|^2; the bias has no penalty: [H + 1]."""
        table, rewards = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        penalty = np.full(table.shape[1], self.ridge)
        penalty[-1] = 1e-6  # not 0, or the bias would be undetermined for rollouts of equal length
        solved: Table = np.linalg.solve(table.T @ table + np.diag(penalty), table.T @ rewards)
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
    """The states after turns with sampled tokens, and a constant: [U, H + 1]."""
    _, ends = turn_bounds(rollout)
    if not ends:
        return np.zeros((0, 1))
    states = HIDDEN_AFTER.of(rollout)[ends].astype(np.float64)
    return np.hstack([states, np.ones((len(states), 1))])


def spa_rl(
    setting: Setting = Setting(env="keyvalue:2"),
    bonus: float = 0.5,  # reward of a turn whose action the environment executed
    trace: float = 0.95,  # lambda of generalized advantage estimation
    kl: float = 0.01,  # weight of the KL penalty in the reward of each token
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """PPO; the contributions of a rollout's turns are fitted to the check of its last completion."""
    parts = {"values": Contributions(Critic(device=setting.device)), "agent": Grounded(Chat(), bonus)}
    run = setting.run("spa_rl", ProgressReturns(trace=trace, kl=kl), (Clip(clip, clip),), **parts)
    run.rewards = (LastCompletion(run.envs),)
    return run
