"""The policy builds a team for each question, action by action; teams are compared, and actions have a price.

Title: MasHost Builds It All: Autonomous Multi-Agent System Directed by Reinforcement Learning
Paper: arXiv 2506.08507 (2025)
Claim: On six benchmarks better, cheaper and more sensible teams than those that were designed or searched for.
Reading: Only the abstract was at hand, so the rule is ours: credit of a token is its team's reward, standardized among
    siblings, plus 0.1 times what its action is worth by itself (-0.2 for an added agent, -1 for an invalid action).
    Role and edges are said in one action, so they are drawn jointly. Roles are the ways of answering that the bundled
    model knows: plain, careful, quick. The agents are voices of the policy and learn with it. A first stage shows
    random teams, since the bundled model has never built one.
Left out: Further roles, tools of agents, and messages that go back and forth between them.
Acts: action_pay < 0 and team_voices > 1 and reward/outcome > 0 with warmup=20
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.conversation.action_prices import ActionPrices
from strop.generate.agents.builds_team import BuildsTeam
from strop.generate.agents.demonstrate_team import DemonstrateTeam
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.action_wise import ActionWise
from strop.training.losses.clip import Clip


def mashost(
    setting: Setting = Setting(),
    most: int = 3,  # agents of a team
    price: float = 0.2,  # of an agent
    weight: float = 0.1,  # of what actions are worth by themselves
    warmup: int = 20,  # steps in which random teams are shown
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """HRPO: a term for whole teams and one for each action."""
    agent, taught = BuildsTeam(most), shown(setting, "mashost", warmup)
    if taught is not None:
        taught.agent = DemonstrateTeam(most)
    run = setting.run("mashost", ActionWise(), (Clip(clip, clip),), agent=agent, warmup=taught)
    run.rewards = (*run.rewards, ActionPrices(most, price, weight))
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
