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

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.capabilities import inside
from strop.concurrency import together
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.annealed_temperature import TEMPERATURE, AnnealedTemperature
from strop.generate.rollout_limits import ANNEALED
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.clip import Clip
from strop.types import Group, Rollout, Start

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
