"""A router that asks priced experts over several turns: paid for right answers, and more for cheap ones.

Title: Router-R1: Teaching LLMs Multi-Round Routing and Aggregation via Reinforcement Learning
Paper: arXiv 2506.09033 (2025)
Claim: On seven sets of questions it answers more than routers that ask once, and its price can be steered.
Reading: Form first (-1), then the answer, then the price, as released; the release's weight of prices is 0, at which
    they do nothing, so it is a half here. Cheapness is by quantiles of square roots of prices, over the last 1,000
    attempts, kept with the run. Experts are three rules, who know sums of one, two and any number of digits for 1, 4
    and 16. The bundled model has never asked anybody, so a short supervised run shows it, with any able expert. Its
    template does not show tools: who is who it learns from what they answer.
Left out: Prices per token; experts that are models; PPO with a critic.
Acts: fact/asked > 0 and price_spread > 0 and fact/price > 0 with warmup_steps=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.tools.routed import Routed
from strop.generate.agents.chat import Chat
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def router_r1(
    setting: Setting = Setting(world="market:3"),
    share: float = 0.5,  # of the reward that is for a low price
    window: int = 1000,  # attempts that prices are compared with
    turns: int = 4,  # of one attempt, at most
    kl: float = 0.001,  # weight of the penalty to the reference
    warmup_steps: int = 12,  # of supervised training first
) -> Run:
    """GRPO over the router's own tokens."""
    run = setting.run("router_r1", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), agent=Chat(turns))
    run.warmup = shown(setting, "router_r1", warmup_steps)
    run.rewards = (Routed(share, window),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run
