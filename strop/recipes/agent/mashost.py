"""The policy builds a team for each question, action by action; teams are compared, and actions have a price.

Title: MasHost Builds It All: Autonomous Multi-Agent System Directed by Reinforcement Learning
Paper: arXiv 2506.08507 (2025)
Claim: On six benchmarks better, cheaper and more sensible teams than those that were designed or searched for.
Reading: Only the abstract was at hand, so the rule is ours: advantage of a token is its team's reward, standardized
    among siblings, plus 0.1 times what its action is worth by itself (-0.2 for an added agent, -1 for an invalid
    action). Role and edges are said in one action, so they are drawn jointly. Roles are the ways of answering that the
    bundled model knows: plain, careful, quick. The agents are policy names of the policy and learn with it. A first
    stage shows random teams, since the bundled model has never built one.
Left out: Further roles, tools of agents, and messages that go back and forth between them.
Acts: action_pay < 0 and team_policies > 1 and reward/outcome > 0 with warmup=20
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.environments.format.demonstrations import demonstrating
from strop.environments.multi_agent.agent_graph import (
    EXIT,
    HOST,
    ROLES,
    AgentGraph,
    action_rewards,
    heard_of,
    host_reads,
)
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.support.peer_messages import told_by_others
from strop.generate.interfaces import Dialogue
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Advantage, Agent, Episode, Reward
from strop.run import Run
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.clip import Clip
from strop.types import Group, Message, Metrics, Origin, Rollout, Task

# MasHost's action-wise rewards (2506.08507): what each step of building a team is worth by itself.


@dataclass(frozen=True)
class ActionPrices(Reward):
    """-price at the end of each turn of the host that adds an agent, -1 of one that is invalid."""

    most: int = 3  # agents at a time
    price: float = 0.2  # of an agent
    weight: float = 0.1

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"ActionPrices needs price >= 0, got {self.price}")

    def __call__(self, group: Group) -> list[Paid]:
        return [self._paid(rollout) for rollout in group.rollouts]

    def _paid(self, rollout: Rollout) -> Paid:
        places = [number for number, turn in enumerate(rollout.turns) if turn.sampling.policy_name == HOST]
        texts = [rollout.turns[place].message.content for place in places]
        worth = action_rewards(texts, self.most, self.price)
        told = [(place, text, value) for place, text, value in zip(places, texts, worth, strict=True)]
        spans = [Span(place, 0, len(text), value) for place, text, value in told if len(rollout.turns[place].whole)]
        return Paid(0.0, tuple(spans))


# MasHost (2506.08507): the policy builds a team for each question, and the team it built answers.


@dataclass(frozen=True)
class BuildsTeam(Agent):
    """The host says one action at a time and hears what became of it; then every agent speaks once, in order.

    An agent reads the question in the words of its role, and behind it what those said that it reads. The agent that
    was added last answers the environment. A host that never exits is taken at its word after `most` * 2 actions;
    without an agent nobody answers.
    """

    most: int = 3  # agents at a time

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ConfigurationError(f"BuildsTeam needs most >= 1, got {self.most}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "BuildsTeam begins at the beginning: use a strategy that does not go on from a middle"
            )
        await episode.reset(task)
        graph = await self._built(dialogue.aside(host_reads(task), HOST))
        answer = await self._answered(task, dialogue, graph)
        paid = (await episode.step(answer)).reward
        return () if paid is None else (*[0.0] * (len(dialogue.turns) - 1), paid)

    async def _built(self, host: Dialogue) -> AgentGraph:
        graph = AgentGraph(self.most)
        for _ in range(2 * self.most):
            if host.is_cut:
                break
            action = (await host.completion()).content
            after = graph.after(action)
            if after is not None and action.split() == [EXIT]:
                break
            graph = after or graph
            host.hear([heard_of(after)])
        return graph

    async def _answered(self, task: Task, dialogue: Dialogue, graph: AgentGraph) -> Message:
        """The last agent's word; those before it speak aside."""
        said: dict[int, str] = {}
        for number, (role, edges) in graph.agents.items():
            *before, question = told_by_others(task, [said[edge] for edge in edges if edge in said])
            read = (*before, replace(question, content=ROLES[role].format(question=question.content)))
            if number == max(graph.agents):
                dialogue.restart(read, role)
                return Message("assistant", "") if dialogue.is_cut else await dialogue.completion()
            talk = dialogue.aside(read, role)
            if not talk.is_cut:
                said[number] = (await talk.completion()).content
        return Message("assistant", "")


# Random teams, said in the place of whoever builds them: how a model first learns what can be built (MasHost).


@dataclass(frozen=True)
class DemonstrateTeam(Agent):
    """1 to `most` agents of any role, each of which reads one before it or none, and then the environment's own answer.

    Without the answer, a model that learns to build forgets how to solve. No team is better than another here: what is
    learned about teams is learned from rewards.
    """

    most: int = 3  # agents of a team

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        stream, graph = random.Random(dialogue.key), AgentGraph(self.most)
        host = dialogue.aside(host_reads(task), HOST)
        for number in range(stream.randint(1, self.most)):
            edges = f" {stream.randint(1, number)}" if number and stream.random() < 0.5 else ""
            action = f"{stream.choice(sorted(ROLES))}{edges}"
            host.say(Message("assistant", action))
            graph = graph.after(action) or graph
            host.hear([heard_of(graph)])
        host.say(Message("assistant", EXIT))
        await episode.reset(task)
        dialogue.restart(task.messages, "solve")
        dialogue.say(demonstrating(episode).demonstrate())
        return ()


# MasHost's advantage (2506.08507): whole teams are compared with each other, and every action is worth something
# itself.

_DIGITS = 6  # payments are noted in single precision: what teams of equal reward differ by beyond is not theirs


@dataclass(frozen=True)
class ActionWise(Advantage):
    """A of a token = (R - mean of siblings' R) / (std + epsilon) + what rewards paid within the token's turn.

    R is the reward without what was paid at places: that part is absolute, and compared with nobody.
    """

    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            placed = [placed_payments(rollout) for rollout in group.scored]  # [N] each
            whole = [a.reward - own.sum() for a, own in zip(group.scored, placed, strict=True)]
            rewards = np.round(whole, _DIGITS)
            standard = (rewards - rewards.mean()) / (rewards.std() + self.epsilon) if len(rewards) else rewards
            for rollout, own, value in zip(group.scored, placed, standard, strict=True):
                lengths = [len(turn.tokens) for turn in rollout.turns]
                turns = np.split(own, np.cumsum(lengths)[:-1]) if lengths else []
                within = np.repeat([part.sum() for part in turns], lengths) if lengths else own
                rollout.advantages = (value + within).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what was paid at places on average, and in how many policy names a rollout spoke."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        policy_names = [len({turn.sampling.policy_name for turn in rollout.turns}) for rollout in rollouts]
        paid = [float(placed_payments(rollout).sum()) for rollout in rollouts]
        return {"action_pay": float(np.mean(paid)), "team_policies": float(np.mean(policy_names))} if rollouts else {}


def mashost(
    setting: Setting = Setting(),
    most: int = 3,  # agents of a team
    price: float = 0.2,  # of an agent
    weight: float = 0.1,  # of what actions are worth by themselves
    warmup: int = 20,  # steps in which random teams are shown
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """HRPO: a term for whole teams and one for each action."""
    agent, taught = BuildsTeam(most), shown(setting, "mashost", warmup)
    if taught is not None:
        taught.agent = DemonstrateTeam(most)
    run = setting.run("mashost", ActionWise(), (Clip(clip, clip),), agent=agent, warmup=taught)
    run.rewards = (*run.rewards, ActionPrices(most, price, weight))
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
