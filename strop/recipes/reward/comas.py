"""Agents discuss a task; what a scorer makes of a solution and its evaluation is all that they are paid.

Title: CoMAS: Co-Evolving Multi-Agent Systems via Interaction Rewards
Paper: arXiv 2510.08529 (2025)
Claim: Without labels better than untrained agents in all settings tried, and more so with more agents.
Reading: Voices of one policy stand for agents, each with a baseline and a spread of its own; the price of the KL is
    ours. A rule that knows no answers stands for the agent that scores, so nobody is trained to score. Two rounds,
    where the paper has two for each of four agents: the bundled model's context is short. One evaluation per solution.
    What the world would have paid is logged beside it and weighs nothing.
Left out: Weights of its own for each agent, and pay for the form of a score.
Acts: voices > 1 and scored_share > 0 and solution_pay > 0 with steps=1
"""

from __future__ import annotations

from strop.filter.rewards.conversation.interactions import Interactions
from strop.generate.agents.discussion import Discussion
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.per_voice import PerVoice
from strop.training.losses.clip import Clip


def comas(
    setting: Setting = Setting(),
    agents: int = 4,  # voices of the policy
    rounds: int = 2,  # solutions of an attempt, each with an evaluation
    history: int = 2,  # rounds that are read
    kl: float = 0.01,  # price of log(policy / reference), inside the return
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """REINFORCE++ for each voice by itself, on rewards that come from the discussion."""
    run = setting.run("comas", PerVoice(kl), (Clip(clip, clip),), agent=Discussion(agents, rounds, history))
    scorer = Procedural("strop.standins.judges.discussion:scored")
    run.rewards = (Interactions(scorer), measured(run.worlds))
    return run
