"""MasHost: GRPO over policies that build a multi-agent team action by action, plus absolute rewards for each action.

Title: MasHost Builds It All: Autonomous Multi-Agent System Directed by Reinforcement Learning
Paper: arXiv 2506.08507 (2025)
Claim: On six benchmarks better, cheaper and more sensible teams than those that were designed or searched for.
Reading: Only the abstract was available, so the formula is ours: the advantage of a token is its team's reward,
    standardized among siblings, plus 0.1 times the reward of its own action (-0.2 for adding an agent, -1 for an
    invalid action). One action names role and edges, so both are sampled jointly. The agents are names of the policy,
    share its weights and learn with it; `roles=NAME=PART,...` lets other models play some, of these roles or of new
    ones. The bundled model's roles are the ways of answering that it knows: plain, careful, quick. It has never built a
    team, so supervised steps on random teams come first. Other models read what the host may do, and their roles are
    to solve, to plan and to check.
Left out: Tools of agents, and messages that go back and forth between them.
Acts: action_pay < 0 and team_policies > 1 and reward/outcome > 0 with warmup_steps=20
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.support.episode_loop import HINTED, TOLD, Speaker, played_on, speaker, told_by_others
from strop.models.loading.model_names import BUNDLED
from strop.recipes.agent.mashost.agent_graph import (
    ASKED,
    EXIT,
    HOST,
    INSTRUCTIONS,
    OWN_ROLES,
    ROLES,
    AgentGraph,
    action_rewards,
    heard_of,
    host_reads,
    words_of,
)
from strop.recipes.named_parts import named_list
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Advantage, Agent, Dialogue, Episode, LLMClient, Reward
from strop.run import Run
from strop.training.arithmetic.turn_returns import placed_payments
from strop.training.losses.clip import Clip
from strop.types import Group, Message, Metrics, Origin, Rollout, Task

# MasHost's action-wise rewards (2506.08507): an absolute reward for each action that builds the team.


@dataclass(frozen=True)
class ActionPrices(Reward):
    """-price at the end of each host turn that adds an agent, -1 at the end of an invalid one."""

    most: int = 3  # maximum number of agents
    price: float = 0.2  # penalty for each added agent
    weight: float = 0.1
    roles: Mapping[str, str] = field(default_factory=lambda: dict(ROLES))  # that exist

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"ActionPrices needs price >= 0, got {self.price}")

    def __call__(self, group: Group) -> list[Paid]:
        return [self._paid(rollout) for rollout in group.rollouts]

    def _paid(self, rollout: Rollout) -> Paid:
        places = [number for number, turn in enumerate(rollout.turns) if turn.sampling.policy_name == HOST]
        texts = [rollout.turns[place].message.content for place in places]
        worth = action_rewards(texts, self.most, self.price, self.roles)
        actions = zip(places, texts, worth, strict=True)
        spans = [Span(place, 0, len(text), value) for place, text, value in actions if len(rollout.turns[place].whole)]
        return Paid(0.0, tuple(spans))


# MasHost (2506.08507): the policy builds a team for each question, and that team answers.


@dataclass(frozen=True)
class TeamBuilder(Agent):
    """Agent whose host builds a team action by action; then every team member writes one completion, in order.

    The host sees the result of each action and has at most `most` * 2 actions. A team member's prompt is the question
    in the wording of its role, followed by the completions of the members that its edges name. The completion of the
    member that was added last is the answer, and it goes on where the environment does; without members the answer is
    empty. Other models may play roles.
    """

    most: int = 3  # maximum number of agents
    roles: Mapping[str, str] = field(default_factory=lambda: dict(ROLES))  # the question in the wording of each role
    instructions: str = ASKED  # what the host reads: {question}, {roles}, {most}, {first} and {last} role
    asks: str = HINTED  # how a member reads what others said
    models: dict[str, LLMClient] = field(default_factory=dict)  # who plays a role in place of the policy
    max_turns: int = 8  # of the last member with the environment

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.most < 1 or not self.roles:
            raise ConfigurationError(f"TeamBuilder needs most >= 1 and roles, got {self.most} and {len(self.roles)}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("TeamBuilder cannot continue a prefix: use a strategy that starts from the prompt")
        await episode.reset(task)
        host = dialogue.aside(host_reads(task, self.most, self.roles, self.instructions), HOST)
        talk, answer = await self._answered(task, dialogue, await self._built(host))
        if talk is None:
            reward = (await episode.step(answer)).reward
            return () if reward is None else (*[0.0] * (len(dialogue.turns) - 1), reward)
        return await played_on(dialogue, talk, episode, answer, self.max_turns)

    async def _built(self, host: Dialogue) -> AgentGraph:
        graph = AgentGraph(self.most, roles=self.roles)
        for _ in range(2 * self.most):
            if host.is_cut:
                break
            action = (await host.completion()).content
            after = graph.after(action)
            if after is not None and words_of(action) == [EXIT]:
                break
            graph = after or graph
            host.hear([heard_of(after)])
        return graph

    async def _answered(self, task: Task, dialogue: Dialogue, graph: AgentGraph) -> tuple[Speaker | None, Message]:
        """The last agent and its completion; those of the others are side contexts of the rollout."""
        completions: dict[int, str] = {}
        for number, (role, edges) in graph.agents.items():
            said = [completions[edge] for edge in edges if edge in completions]
            *before, question = told_by_others(task, said, self.asks)
            read = (*before, replace(question, content=self.roles[role].replace("{question}", question.content)))
            if number == max(graph.agents):
                last = self._last(dialogue, read, role)
                return (None, Message("assistant", "")) if last.is_cut else (last, await last.completion())
            side = speaker(dialogue, read, role, self.models)
            if not side.is_cut:
                completions[number] = (await side.completion()).content
        return None, Message("assistant", "")

    def _last(self, dialogue: Dialogue, read: Sequence[Message], role: str) -> Speaker:
        """Whoever plays the last role: the policy does so in the main context."""
        if role in self.models:
            return speaker(dialogue, read, role, self.models)
        dialogue.restart(read, role)
        return dialogue


# Demonstrations of random teams, for supervised steps before RL (MasHost).


@dataclass(frozen=True)
class DemonstrateTeam(Agent):
    """Random team of 1 to `most` agents, each of which reads one earlier agent or none, and the environment's answer.

    Without the answer, the model forgets how to solve tasks. Teams are random, so that only rewards teach which team
    is better.
    """

    most: int = 3  # maximum number of agents of a team
    roles: Mapping[str, str] = field(default_factory=lambda: dict(ROLES))
    instructions: str = ASKED  # what the host reads

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rng, graph = random.Random(dialogue.key), AgentGraph(self.most, roles=self.roles)
        host = dialogue.aside(host_reads(task, self.most, self.roles, self.instructions), HOST)
        for number in range(rng.randint(1, self.most)):
            edges = f" {rng.randint(1, number)}" if number and rng.random() < 0.5 else ""
            action = f"{rng.choice(sorted(self.roles))}{edges}"
            host.say(Message("assistant", action))
            graph = graph.after(action) or graph
            host.hear([heard_of(graph)])
        host.say(Message("assistant", EXIT))
        await episode.reset(task)
        dialogue.restart(task.messages, next(iter(self.roles)))
        dialogue.say(demonstrating(episode).demonstrate())
        return ()


# MasHost's advantage (2506.08507): a group-relative term for the team plus an absolute term for each action.

_DIGITS = 6  # rewards are stored in single precision: smaller differences are rounding errors


@dataclass(frozen=True)
class ActionWise(Advantage):
    """A of a token = (R - mean of siblings' R) / (std + epsilon) + rewards within the token's turn.

    R is the rollout's reward without the rewards of single actions, which have no baseline.
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
        """Metrics only: mean sum of action rewards, and mean number of policy names in a rollout."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        policy_names = [len({turn.sampling.policy_name for turn in rollout.turns}) for rollout in rollouts]
        sums = [float(placed_payments(rollout).sum()) for rollout in rollouts]
        return {"action_pay": float(np.mean(sums)), "team_policies": float(np.mean(policy_names))} if rollouts else {}


def mashost(
    setting: Setting = Setting(),
    roles: str = "",  # models that play roles of a team: NAME=PART,NAME=PART (named parts); others: the policy
    most: int = 3,  # maximum number of agents of a team
    price: float = 0.2,  # penalty for each added agent
    weight: float = 0.1,  # weight of the action rewards
    warmup_steps: int = BundledOnly(20),  # supervised steps on random teams before RL
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """HRPO: a group-relative term for teams and an absolute one for each action."""
    models = named_list("roles", roles, setting)
    is_bundled = setting.model in BUNDLED
    known = dict(ROLES if is_bundled else OWN_ROLES)
    known |= {name: f"You are the {name} of a team.\n\n{{question}}" for name in models if name not in known}
    asked = ASKED if is_bundled else INSTRUCTIONS
    agent = TeamBuilder(most, known, asked, HINTED if is_bundled else TOLD, models)
    taught = shown(setting, "mashost", warmup_steps)
    if taught is not None:
        taught.agent = DemonstrateTeam(most, known, asked)
    run = setting.run("mashost", ActionWise(), (Clip(clip, clip),), agent=agent, warmup=taught)
    run.rewards = (*run.rewards, ActionPrices(most, price, weight, known))
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
