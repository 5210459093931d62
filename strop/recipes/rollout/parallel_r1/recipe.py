"""Parallel-R1: GRPO on rollouts that may open parallel thinking paths; some steps pay a bonus for using them.

Title: Parallel-R1: Towards Parallel Thinking via Reinforcement Learning
Paper: arXiv 2509.07980 (2025)
Claim: 8.4 % better than sequential thinking under RL on three mathematics benchmarks; as a scaffold, 42.9 % on AIME25.
Reading: First supervised training on traces, of easier environments too, then RL with the alternating reward: of every
    ten steps eight pay 1 for right and -1 for wrong, two pay 1.2 for right in parallel. Paths do not see each other
    (the structured variant); the position of the tokens after them follows all paths, not the longest. Forced tags are
    prefix tokens and not trained. Two paths, at most four blocks, 8 rollouts, clipping 0.2 and 0.28, no KL penalty, as
    released. `scaffold` ends the bonus after so many versions (200 there). Two optimizer steps per batch. Tags are one
    character each. In supervised training a trace is one text: there a path reads those before it.
Left out: The RL stage on easy tasks that rewards valid blocks alone; the variant whose paths see those before them.
Acts: turns > 1 and warmup/nll > 0 with warmup_steps=12, easy=arithmetic:1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from strop.concurrency import together
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.rollout.parallel_r1.reward import (
    CLOSE_PATH,
    OPEN_BLOCK,
    OPEN_PATH,
    ParallelBonus,
    block,
    in_parallel,
)
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Agent, Dialogue, Episode
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Message, Origin, Sampling, Task

# Parallel-R1's cold start (2509.07980): demonstrations whose chain of thought is split into several paths and
# summarized.
#
# Reading: in the paper a larger model writes the traces; here every path holds the environment's own worked solution.


@dataclass(frozen=True)
class DemonstrateParallel(Agent):
    """Agent that plays the demonstration of `inner` with its worked solution in a block of `paths` paths."""

    inner: Agent
    paths: int = 2  # of a block

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewrite = partial(in_parallel, paths=self.paths)
        return await self.inner.rollout(task, dialogue, Rewritten(episode, rewrite))


# Parallel-R1's decoding (2509.07980): where the policy opens a block, several paths are sampled in parallel.
#
# Each path is a context of its own that starts with all tokens before it and does not see the other paths: the paper's
# structured mask. The summary reads all paths as a prefix. Forced tags are prefix tokens, too, and not trained; the
# release trains them.

STOPS = (OPEN_BLOCK, CLOSE_PATH)


@dataclass(frozen=True)
class ParallelPaths(Agent):
    """Agent that writes one completion in pieces: up to a block, `paths` paths in parallel, their summary, and on.

    Needs a sampling that stops at the tags that open a block and close a path (`STOPS`). The environment receives the
    pieces of the main stream as one completion, paths included. After `blocks` blocks, opening another one ends the
    completion.
    """

    paths: int = 2  # of a block
    blocks: int = 4  # of a completion at most

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.paths < 2 or self.blocks < 1:
            raise ConfigurationError(f"ParallelPaths needs paths >= 2 and blocks >= 1, got {self.paths}, {self.blocks}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("ParallelPaths cannot resume a rollout: its starts must have no turns")
        await episode.reset(task)
        pieces = [(await dialogue.completion()).content]
        while len(pieces) <= self.blocks and pieces[-1].endswith(OPEN_BLOCK) and not dialogue.is_cut:
            found = await together(self._path(dialogue.beside()) for _ in range(self.paths))
            dialogue.begin(block(found))
            pieces.append(await _rest(dialogue))
        answer = await episode.step(Message("assistant", "".join(pieces)))
        return () if answer.reward is None else (*[0.0] * (len(dialogue.turns) - 1), answer.reward)

    async def _path(self, path: Dialogue) -> str:
        """The text between the path's tags."""
        path.begin(OPEN_PATH)
        return (await _rest(path)).removeprefix(OPEN_PATH).removesuffix(CLOSE_PATH)


async def _rest(dialogue: Dialogue) -> str:
    """The next completion; empty where the context is full."""
    return "" if dialogue.is_cut else (await dialogue.completion()).content


def parallel_r1(
    setting: Setting = Setting(env="arithmetic:4"),
    paths: int = 2,  # of a block
    blocks: int = 4,  # of a completion at most
    bonus: float = 0.2,  # for a right rollout that used parallel paths
    plain: int = 8,  # of every ten versions, without the bonus
    scaffold: int = 0,  # last version with the bonus; 0: all
    easy: str = "arithmetic:3+arithmetic:4",  # environments of the supervised training
    warmup_steps: int = 40,  # of supervised training
) -> Run:
    """Held-out rollouts may use parallel paths, too."""
    agent = ParallelPaths(paths, blocks)
    sampling = Sampling(temperature=setting.temperature, max_tokens=setting.max_tokens, stop=STOPS)
    run = setting.run("parallel_r1", GroupStandard(), (Clip(0.2, 0.28),), agent=agent, sampling=sampling, minibatches=2)
    judged = as_one(run.rewards)
    run.rewards = (ParallelBonus(judged, bonus, plain=plain, last=scaffold),)
    run.evaluation = replace(run.evaluation, agent=agent)
    if (supervised := shown(replace(setting, env=easy), "parallel_r1", warmup_steps)) is not None:
        run.warmup = replace(supervised, agent=DemonstrateParallel(supervised.agent, paths))
    return run
