"""GRPO on rollouts that are sampled hot at first and cold at last, weighed for that.

Title: Let it Calm: Exploratory Annealed Decoding for Verifiable Reinforcement Learning
Paper: arXiv 2510.05251 (2025)
Claim: Better accuracy after RLVR than sampling at any one temperature, across algorithms and sizes of models.
Reading: Temperatures from 1.2 to 0.1, as released. Its fall has a scale of 500 tokens and 100 more with each step, for
    completions of thousands of tokens, of which the first 10 are drawn at 1; completions of the bundled model have
    about 35, so
    these are 16, 3 and 1. A temperature holds for two tokens. Training sees the policy at temperature 1; each token is
    weighed by what that gave it over what it was sampled with, at most 2 (the release has such weights and leaves them
    off). Clip 0.2 and 0.28, 16 rollouts; two optimizer steps per batch, which were not found.
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
from strop.generate.interfaces import Player
from strop.generate.policy_names import ANNEALED
from strop.recipes.setting import Setting
from strop.roles import Strategy
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip
from strop.types import Group, Rollout, Start

# EAD's rollouts (2510.05251): plain ones whose completions are sampled hot at first and cold at last.


@dataclass(frozen=True)
class Annealed(Strategy):
    """Each rollout is made in the annealed policy name of its group's version; needs the engine `AnnealedTemperature`.

    Facts: `heat`, the mean temperature of its first completion's tokens, and `cooling`, by how much the first half of
    them was hotter than the second.
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(_played(start, play) for start in starts)

    def problems(self, run: Run) -> list[str]:
        if inside(run.engine, AnnealedTemperature):
            return []
        return ["Annealed asks for completions whose temperature falls, and the engine is no AnnealedTemperature"]


async def _played(start: Start, play: Player) -> Rollout:
    rollout = await play(replace(start, policy_name=f"{ANNEALED}{start.version}"))
    if not rollout.turns or len(rollout.turns[0].tokens) < 2:
        return rollout
    first = rollout.turns[0]
    heat = first.aux[TEMPERATURE][len(first.prompt) :]  # [N]
    half = len(heat) // 2
    told = {"heat": float(heat.mean()), "cooling": float(heat[:half].mean() - heat[half:].mean())}
    return replace(rollout, facts=rollout.facts | told)


def ead(
    setting: Setting = Setting(env="countdown:4", group_size=16),
    hottest: float = 1.2,  # temperature at the beginning of a completion
    coldest: float = 0.1,  # temperature at its end
    plain: int = 1,  # tokens of a completion that are drawn at 1 before the heat begins
    first: float = 16.0,  # scale of the fall at version 0, in tokens
    growth: float = 3.0,  # of the scale with each version
    size: int = 2,  # tokens that are drawn at one temperature
    is_late: bool = False,  # heat rises by the same rule instead of falling: for comparison
    cap: float = 2.0,  # largest weight of a token
) -> Run:
    """Held-out rollouts are sampled as ever; tokens are not scored again, as no one temperature is theirs."""
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
