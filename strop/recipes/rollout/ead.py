"""EAD: GRPO on rollouts with a temperature annealed from high to low, corrected by truncated importance weights.

Title: Let it Calm: Exploratory Annealed Decoding for Verifiable Reinforcement Learning
Paper: arXiv 2510.05251 (2025)
Claim: Better accuracy after RLVR than sampling at any fixed temperature, across algorithms and model sizes.
Reading: Temperatures from 1.2 to 0.1, as released. Their decay has a scale of 500 tokens plus 100 for each step, for
    completions of thousands of tokens, of which the first 10 are sampled at 1; completions of the bundled model have
    about 35, so these are 16, 3 and 1. A temperature holds for two tokens. Training evaluates the policy at temperature
    1; each token is weighted by its probability there over the one it was sampled with, at most 2 (the release has such
    weights but switches them off). Clipping 0.2 and 0.28, 16 rollouts; two optimizer steps per batch, a number that was
    not found.
Left out: The other algorithms that the paper combines it with. The largest scale, 800,000 tokens, which the release
    reaches after 7,995 steps.
Acts: fact/cooling > 0 and fact/heat != 1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.backends import Completion
from strop.capabilities import inside
from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.chunked import InPieces, joined
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.clip import Clip
from strop.types import Group, IntArray, Rollout, Sampling, Start

ANNEALED = "annealed:"  # policy name, followed by the weight version at which the rollout was admitted
TEMPERATURE = "temperature"  # in `Turn.aux`: of each sampled token


@dataclass
class AnnealedTemperature(InPieces):
    """Temperature max(1 + hottest - exp(t / scale), coldest) for token t of completions under the annealed policy name.

    The first `plain` tokens are sampled at 1. scale = first + growth * version: 1 is crossed at t = scale *
    log(hottest). All is multiplied by the requested temperature. Other requests are passed on unchanged.
    """

    hottest: float = 1.2
    coldest: float = 0.1
    plain: int = 10  # tokens of a completion before the heat begins
    first: float = 500.0  # scale of the fall, in tokens, at version 0
    growth: float = 100.0  # of the scale with each version
    size: int = 4  # tokens that are drawn at one temperature
    is_late: bool = False  # heat rises by the same rule from coldest to hottest: for comparison

    def __post_init__(self) -> None:
        if not 0 < self.coldest <= 1 <= self.hottest:
            raise ConfigurationError(
                f"AnnealedTemperature needs 0 < coldest <= 1 <= hottest, got {self.coldest} and {self.hottest}"
            )
        if self.first <= 0 or self.growth < 0 or self.size < 1 or self.plain < 0:
            raise ConfigurationError(
                "AnnealedTemperature needs first > 0, growth >= 0, size >= 1 and plain >= 0, got "
                f"{self.first}, {self.growth}, {self.size} and {self.plain}"
            )

    def temperature(self, at: int, version: int) -> float:
        """Of token number `at` of a completion."""
        if at < self.plain:
            return 1.0
        scale = self.first + self.growth * version
        # beyond the coldest the exponential would only overflow
        risen = math.exp(min(at / scale, math.log(1 + self.hottest)))
        falling = max(1 + self.hottest - risen, self.coldest)
        return self.hottest + self.coldest - falling if self.is_late else falling

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not sampling.policy_name.startswith(ANNEALED):
            return await self.inner.sample(prompt, sampling, key)
        version = int(sampling.policy_name.removeprefix(ANNEALED))

        def ask(at: int) -> Sampling:
            size, heat = self.size if at >= self.plain else self.plain - at, self.temperature(at, version)
            return replace(sampling, policy_name="", max_tokens=size, temperature=sampling.temperature * heat)

        pieces, stop = await self.pieces(prompt, sampling, key, ask)
        return joined(list(self._told(pieces, version)), stop)

    def _told(self, pieces: Sequence[Completion], version: int) -> Iterator[Completion]:
        """Pieces with the temperature of each token."""
        at = 0
        for piece in pieces:
            heats = np.full(len(piece.tokens), self.temperature(at, version), np.float32)
            yield replace(piece, aux={**piece.aux, TEMPERATURE: heats})
            at += len(piece.tokens)


# EAD's rollouts (2510.05251): plain ones whose completions are sampled at a falling temperature.


@dataclass(frozen=True)
class Annealed(Strategy):
    """Strategy that samples each rollout under the annealed policy name of its group's version; needs the engine
    `AnnealedTemperature`.

    Facts: `heat`, the mean temperature of its first completion's tokens, and `cooling`, the mean temperature of the
    first half minus that of the second half.
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(_played(start, play) for start in starts)

    def problems(self, run: Run) -> list[str]:
        if inside(run.engine, AnnealedTemperature):
            return []
        return ["Annealed needs the engine AnnealedTemperature, which lowers the temperature within a completion"]


async def _played(start: Start, play: Player) -> Rollout:
    rollout = await play(replace(start, policy_name=f"{ANNEALED}{start.version}"))
    if not rollout.turns or len(rollout.turns[0].tokens) < 2:
        return rollout
    first = rollout.turns[0]
    heat = first.aux[TEMPERATURE][len(first.prompt) :]  # [N]
    half = len(heat) // 2
    facts = {"heat": float(heat.mean()), "cooling": float(heat[:half].mean() - heat[half:].mean())}
    return replace(rollout, facts=rollout.facts | facts)


def ead(
    setting: Setting = Setting(env="countdown:4", group_size=16),
    hottest: float = 1.2,  # temperature at the beginning of a completion
    coldest: float = 0.1,  # temperature at its end
    plain: int = 1,  # first tokens of a completion, sampled at temperature 1
    first: float = 16.0,  # scale of the decay at version 0, in tokens
    growth: float = 3.0,  # of the scale per version
    size: int = 2,  # tokens sampled at one temperature
    is_late: bool = False,  # control: temperature rises by the same schedule instead of falling
    cap: float = 2.0,  # largest importance weight of a token
) -> Run:
    """Held-out rollouts are sampled as usual; logprobs are not recomputed, since no single temperature fits a
    rollout.
    """
    engine = AnnealedTemperature(engine_on(setting.device), hottest, coldest, plain, first, growth, size, is_late)
    return setting.run(
        "ead",
        GroupStandard(),
        (Clip(0.2, 0.28, anchor="proximal"),),
        correction=Truncated(cap, target="proximal"),
        engine=engine,
        strategy=Annealed(),
        minibatches=2,
        rescore_every=0,
    )
