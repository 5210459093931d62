"""Memory-R2 (LoGo-GRPO): GRPO per session for a two-role memory agent, with extra groups rerun from a shared memory.

Title: Memory-R2: Fair Credit Assignment for Long-Horizon Memory-Augmented LLM Agents
Paper: arXiv 2605.21768 (2026)
Claim: Advantages that compare rollouts from the same memory train agents over 8, then 16, then 32 sessions.
Reading: As released: a session's reward is the score at the end of the conversation (pays=global), global and local
    groups enter one training batch with equal weight, and both roles share weights and reward. A rule looks up facts
    in the memory, where the paper lets a model answer questions with it; the length penalty of the memory is the
    README's. Sessions of two facts, 2 and then 3 of them, where the paper has 8, 16 and 32. Clipping is per token, not
    per turn. The bundled model has never kept a memory, so supervised steps on demonstrations come first.
Left out: Operations on single entries of a memory, and retrieval from it.
Acts: local_share > 0 and stage > 0 and reward/outcome > 0 with stage=2, groups_per_step=4
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from strop.concurrency import together
from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.sessions import (
    Sessions,
    carried,
    extractor_reads,
    facts_in,
    listed,
    manager_reads,
    num_sessions,
    one_session,
    split_message,
)
from strop.environments.format.demonstrations import demonstrating
from strop.environments.format.think_tags import final_answer
from strop.environments.needs import DEMONSTRATIONS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked
from strop.generate.strategies.independent import Independent
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Advantage, Agent, Dialogue, Episode, Player, Strategy
from strop.run import Run
from strop.text.sanitize import quoted
from strop.training.arithmetic.turn_returns import set_turn_advantages
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task

# Demonstrations of the extractor and the memory manager (Memory-R2).


@dataclass(frozen=True)
class DemonstrateMemory(Agent):
    """Demonstration of both roles: the facts of each session, the last of each key, and the updated memory."""

    origin: ClassVar[Origin] = Origin.TEACHER
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS,)

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        shown = demonstrating(episode)
        await episode.reset(task)
        content, rewards = task.messages[-1].content, list[float]()
        while True:
            memory, session = split_message(content)
            new = listed(facts_in(session))
            dialogue.restart(extractor_reads(session), "extractor")
            dialogue.say(Message("assistant", new))
            dialogue.restart(manager_reads(memory, new), "manager")
            managed = shown.demonstrate()
            dialogue.say(managed)
            answer = await episode.step(managed)
            rewards += [0.0, answer.reward or 0.0]
            if answer.done:
                return tuple(rewards)
            content = answer.messages[-1].content


# Memory-R2's two roles (2605.21768): one model extracts facts from a session and writes them into the memory.

EXTRACTOR, MANAGER = "extractor", "manager"


@dataclass(frozen=True)
class ExtractAndManage(Agent):
    """Two turns for each session, each in its own context: extractor, then memory manager.

    The extractor reads the session; the manager reads the memory and the extracted facts. The manager's completion is
    the new memory and gets the session's reward.
    """

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "ExtractAndManage cannot continue a prefix: use a strategy that starts from the prompt"
            )
        await episode.reset(task)
        content, rewards = task.messages[-1].content, list[float]()
        while True:
            memory, session = split_message(content)
            new = await _completed(dialogue, extractor_reads(session), EXTRACTOR)
            if new is None:
                break
            managed = await _completed(dialogue, manager_reads(memory, quoted(final_answer(new.content))), MANAGER)
            if managed is None:
                rewards.append(0.0)
                break
            answer = await episode.step(managed)
            rewards += [0.0, answer.reward or 0.0]
            if answer.done:
                break
            content = answer.messages[-1].content
        return tuple(rewards)


async def _completed(dialogue: Dialogue, messages: tuple[Message, ...], policy_name: str) -> Message | None:
    """The completion of a role in a new context; None where the rollout has no tokens left."""
    dialogue.restart(messages, policy_name)
    return None if dialogue.is_cut else await dialogue.completion()


# Memory-R2's local groups (2605.21768): some sessions are rerun from one rollout's memory and compared there.

_TURNS = 2  # turns of a session: extractor and manager


_SESSIONS = EnvNeed(
    "conversations of several sessions", "use env=sessions:LEVEL", lambda env: isinstance(env, Sessions)
)


@dataclass(frozen=True)
class LocalReruns(Strategy):
    """Rollouts of `inner`, plus `count` reruns of single sessions, each session being rerun with probability `share`.

    The reruns start from the memory that a randomly chosen full rollout had before the session. They form their own
    comparison group, and no other session uses their memory.
    """

    inner: Strategy
    share: float = 0.25  # probability that a session is rerun
    count: int = 4  # reruns of each such session

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (_SESSIONS,)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.count < 2:
            raise ConfigurationError(
                f"LocalReruns needs 0 <= share <= 1 and count >= 2, got {self.share}, {self.count}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        whole = await self.inner(group, starts, play)
        rng = random.Random(f"{starts[0].key}/local")
        local: list[tuple[Start, Task]] = []
        for number in range(num_sessions(group.task)):
            reached = [rollout for rollout in whole if rollout.is_scored and len(rollout.turns) >= _TURNS * number]
            if rng.random() >= self.share or not reached:
                continue
            task = one_session(group.task, number, memory_before(rng.choice(reached), number))
            comparison_group = {"comparison_group": f"session {number}", "origin": Origin.BRANCHED}
            local += [(play.another(**comparison_group), task) for _ in range(self.count)]
        again = await together(play(start, task=task) for start, task in local)
        for rollout in again:
            rollout.facts["local"] = 1.0
        return [*whole, *again]


def memory_before(rollout: Rollout, number: int) -> str:
    """The memory of a rollout before a session."""
    if number == 0:
        return split_message(rollout.task.messages[-1].content)[0]
    return carried(rollout.turns[_TURNS * number - 1].message.content)


# Memory-R2's advantage (2605.21768): each session is compared with the same session of its siblings.


@dataclass(frozen=True)
class SessionStandard(Advantage):
    """A of all turns of a session = (r - mean) / (std + epsilon) over siblings that reached it; std with N - 1.

    `pays` selects r: the last session's score (global; 0 for a rollout that ended before its siblings), this session's
    (session), or the mean of this and all later ones (cumulative). Baselines stay within a comparison group, so reruns
    of a session never enter another baseline.
    """

    pays: Literal["global", "session", "cumulative"] = "global"
    turns: int = 2  # turns per session
    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ConfigurationError(f"SessionStandard needs turns >= 1, got {self.turns}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rows = [self._rewards(rollout, self._longest(group)) for rollout in group.scored]
            advantage = [np.zeros(len(row)) for row in rows]
            for session in range(max(map(len, rows), default=0)):
                there = [index for index, row in enumerate(rows) if len(row) > session]
                values = np.array([rows[index][session] for index in there])
                spread = values.std(ddof=1) if len(values) > 1 else 0.0
                for index, value in zip(there, (values - values.mean()) / (spread + self.epsilon), strict=True):
                    advantage[index][session] = value
            for rollout, own in zip(group.scored, advantage, strict=True):
                set_turn_advantages(rollout, [own[number // self.turns] for number in range(len(rollout.turns))])

    def _longest(self, group: Group) -> int:
        return max((-(-len(rollout.turns) // self.turns) for rollout in group.scored), default=0)

    def _rewards(self, rollout: Rollout, sessions: int) -> list[float]:
        """The reward of each session that the rollout reached."""
        rewards = list(rollout.turn_rewards)
        scores = [sum(rewards[low : low + self.turns]) for low in range(0, len(rollout.turns), self.turns)]
        match self.pays:
            case "session":
                return scores
            case "cumulative":
                return [float(np.mean(scores[number:])) for number in range(len(scores))]
        return [scores[-1] if len(scores) == sessions else 0.0 for _ in scores]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metric only: the share of rollouts that are reruns of one session."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        return {"local_share": sum(a.facts.get("local", 0.0) for a in rollouts) / max(len(rollouts), 1)}


def memory_r2(
    setting: Setting = Setting(env="sessions:2+sessions:3"),
    pays: Literal["global", "session", "cumulative"] = "global",  # session reward: last, own, or mean of own and later
    share: float = 0.25,  # probability that a session is rerun from one rollout's memory
    count: int = 4,  # reruns of each such session
    stage: int = 20,  # versions per environment of the setting, from short to long conversations
    warmup_steps: int = BundledOnly(20),  # supervised steps on demonstrations of both roles before RL
    kl: float = 0.01,  # weight of the KL penalty to the initial weights
    entropy: float = 0.001,  # weight of the entropy bonus
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """LoGo-GRPO: two epochs on global and local groups together."""
    agent, taught = ExtractAndManage(), shown(setting, "memory_r2", warmup_steps)
    if taught is not None:
        taught.agent = DemonstrateMemory()
    run = setting.run(
        "memory_r2",
        SessionStandard(pays),
        (Clip(clip, clip), Kl(weight=kl), Entropy(entropy)),
        agent=agent,
        strategy=LocalReruns(Independent(), share, count),
        epochs=2,
        warmup=taught,
    )
    stages = tuple(Uniform((env,)) for env in run.envs)
    run.sampler = Staged(stages, (stage,) * (len(stages) - 1))
    run.evaluation = replace(run.evaluation, agent=agent, rewards=(Checked(run.envs),))
    return run
