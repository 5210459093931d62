"""NoisyGRPO: rollouts from noisy prompts, trained on the clean prompt; the noise level is a Bayesian prior.

Title: NoisyGRPO: Incentivizing Multimodal CoT Reasoning via Noise Injection and Bayesian Estimation
Paper: arXiv 2510.21122 (2025)
Claim: Better out-of-distribution reasoning and fewer hallucinations at 3B.
Reading: The paper adds noise to images; here prompt tokens are replaced. As in the paper, nothing corrects for sampling
    under noise, so sampled tokens are not re-scored for verification. In multi-turn episodes the policy's own earlier
    completions are noisy as well.
Acts: fact/noise > 0 and advantage_beside_rewards > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.backends import Completion, WeightVersion
from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.recipes.setting import Setting
from strop.roles import Advantage, Engine, Player, Strategy
from strop.run import Run
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean
from strop.types import Group, IntArray, Rollout, Sampling, Start

NOISE = "noise:"  # policy name, followed by the number of a noise level


@dataclass
class Noisy(Engine):
    """Noise by policy name: in a request of noise level w, a share `strength * levels[w]` of the prompt's tokens is
    exchanged.
    """

    inner: Engine
    levels: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)  # of noise, by way
    strength: float = 0.5  # share of tokens exchanged at level 1
    spared: int = 2  # tokens at the end, which open the completion

    def __post_init__(self) -> None:
        if not self.levels or self.levels[0] != 0 or not all(0 <= level <= 1 for level in self.levels):
            raise ConfigurationError(f"Noisy needs levels from 0 to 1 of which the first is 0, got {self.levels}")

    def open(self, model: Path) -> None:
        self.inner.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not sampling.policy_name.startswith(NOISE):
            return await self.inner.sample(prompt, sampling, key)
        level = self.levels[int(sampling.policy_name.removeprefix(NOISE))]
        return await self.inner.sample(self.disturbed(prompt, key, level), sampling, key)

    def disturbed(self, prompt: IntArray, key: int, level: float) -> IntArray:
        """The same for a key every time, so that a prompt that grew is disturbed as it was."""
        count = max(len(prompt) - self.spared, 0)
        places = np.arange(count)
        keys = np.full(count, as_key(key))
        is_hit = uniforms(keys, 2 * places + (1 << 40)) < self.strength * level
        # among the tokens before it, so that what follows later changes nothing
        others = (uniforms(keys, 2 * places + (1 << 40) + 1) * (places + 1)).astype(np.int64)
        read = prompt.copy()
        read[:count] = np.where(is_hit, prompt[others], prompt[:count])
        return read

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()

    def abort(self, key: int) -> None:
        self.inner.abort(key)


@dataclass(frozen=True)
class NoiseLevels(Strategy):
    """Strategy: rollout i has noise level i modulo their number, stored as fact `noise`; needs the engine `Noisy`."""

    levels: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)  # noise levels, assigned to the rollouts in turn

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        async def played(index: int, start: Start) -> Rollout:
            level = index % len(self.levels)
            rollout = await play(replace(start, policy_name=f"{NOISE}{level}"))
            return replace(rollout, facts=rollout.facts | {"noise": self.levels[level]})

        return await together(played(index, start) for index, start in enumerate(starts))


@dataclass(frozen=True)
class NoisePosterior(Advantage):
    """A = z(zs + K (zn - zs)), zs = z(rewards), zn = z(1 - noise level), z the group z-score, K a Kalman gain.

    The noise level is the prior, the reward the observation. K = P / (P + observation), P = prior / (variance of the
    rewards + prior): the less the rewards differ, the more the noise level counts. A group without contrast trains,
    too, and prefers rollouts from cleaner prompts.
    """

    prior: float = 0.01  # prior variance: the larger, the more the noise level counts
    observation: float = 0.1  # observation variance: the larger, the less the noise level counts
    epsilon: float = 1e-4

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.prior <= 0 or self.observation <= 0:
            raise ConfigurationError(f"NoisePosterior needs prior and observation > 0, got {self}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
            noise = np.array([_noise(rollout) for rollout in group.scored], dtype=np.float64)
            observed, expected = self._standard(rewards), self._standard(1 - noise)
            posterior = observed + self.gain(rewards) * (expected - observed)
            for rollout, advantage in zip(group.scored, self._standard(posterior), strict=True):
                rollout.set_advantage(float(advantage))

    def gain(self, rewards: NDArray[np.float64]) -> float:
        """Kalman gain K of a group."""
        variance = float((rewards - rewards[:1]).var(ddof=1)) if len(rewards) > 1 else 0.0
        uncertainty = self.prior / (variance + self.prior)
        return min(max(uncertainty / (uncertainty + self.observation), 0.0), 1.0)

    def _standard(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        values = values - values[:1]
        std = values.std(ddof=1) if len(values) > 1 else 0.0
        if std == 0.0:
            return np.zeros_like(values)
        return (values - values.mean()) / (std + self.epsilon)  # type: ignore[no-any-return]


def _noise(rollout: Rollout) -> float:
    if "noise" not in rollout.facts:
        raise ConfigurationError(
            f"NoisePosterior found no noise level for rollout {rollout.id}: use the strategy NoiseLevels"
        )
    return rollout.facts["noise"]


_LEVELS = (0.0, 0.3, 0.6, 0.9)


def noisygrpo(
    setting: Setting = Setting(group_size=4, groups_per_step=16),
    strength: float = 0.5,  # share of prompt tokens replaced at noise level 1
) -> Run:
    """Policy gradient on clean prompts for rollouts from noisy ones, without an off-policy correction."""
    return setting.run(
        "noisygrpo",
        NoisePosterior(),
        (Reinforce(),),
        engine=Noisy(TorchEngine(device=setting.device), _LEVELS, strength),
        strategy=NoiseLevels(_LEVELS),
        reduction=SequenceMean(),
        rescore_every=0,
    )
