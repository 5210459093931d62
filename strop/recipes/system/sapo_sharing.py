"""Nodes share what they tried as text in a folder; each trains on some groups of its own and some of others.

Key: sapo
Title: Sharing is Caring: Efficient LM Post-Training with Collective RL Experience Sharing
Paper: arXiv 2509.08721 (2025)
Claim: Eight small models that train on as many shared groups as own ones gain up to 94 % in reward over none shared.
Reading: The paper's draw: uniform among shared groups that are not all alike by the node's own judgement. Foreign text
    is tokenized and judged here and trained without a ratio, which with one update per batch is what the paper's loss
    is. A folder stands for the network; nobody is waited for. foreign 0 is a plain policy gradient on own groups.
Left out: Nodes of several models in one process: each node is a run of its own, with whatever model.
Acts: shared_groups > 0 and foreign_share < 1 with folder=RUN
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue, Player
from strop.recipes.setting import Setting
from strop.roles import Agent, Environment, Episode, PassRateEstimator, Sampler, Strategy
from strop.run import Run
from strop.stats.task_lineage import plain, unplain
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task
from strop.workers.foreign_checks import checked

# What peers share in a folder: groups of rollouts as text, one file each, read with as little trust as a stranger's.
#
# A group's file is FOLDER/NODE/NUMBER.json. It is written whole or not at all, and a reader skips what it cannot read.

_MOST_BYTES = 1_000_000  # of one file
_SUFFIX = ".json"
FOREIGN = "@"  # begins the id of a task whose rollouts somebody else made; the group's name follows


@dataclass(frozen=True)
class SharedGroup:
    """A task and what somebody replied to it, rollout by rollout, turn by turn."""

    task: Task
    completions: tuple[tuple[str, ...], ...]


def publish(folder: Path, node: str, number: int, group: SharedGroup) -> None:
    """Put a group where others find it."""
    (folder / node).mkdir(parents=True, exist_ok=True)
    target = folder / node / f"{number}{_SUFFIX}"
    written = target.with_name(f".{target.name}.{os.getpid()}")
    written.write_text(json.dumps({"task": plain(group.task), "completions": group.completions}))
    written.replace(target)


def published(folder: Path, without: str = "") -> list[str]:
    """The names of all groups that nodes but this one have shared, in order: NODE/NUMBER."""
    if not folder.is_dir():
        return []
    nodes = sorted(path for path in folder.iterdir() if path.is_dir() and path.name != without)
    files = [path for node in nodes for path in node.glob(f"[0-9]*{_SUFFIX}")]
    return [f"{path.parent.name}/{path.stem}" for path in sorted(files, key=_place)]


def _place(path: Path) -> tuple[str, int, str]:
    return path.parent.name, len(path.stem), path.stem


def read(folder: Path, name: str) -> SharedGroup | None:
    """The group of this name; None where there is none, or none that can be read."""
    path = folder / f"{name}{_SUFFIX}"
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # a pipe would be waited for
            return None
        return _read(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read(data: dict[str, Any]) -> SharedGroup:
    completions: Sequence[Sequence[str]] = data["completions"]
    found = tuple(tuple(str(text) for text in rollout) for rollout in completions if not isinstance(rollout, str))
    task = unplain(data["task"])
    words = [task.answer, task.source, task.id, *(text for each in task.messages for text in (each.role, each.content))]
    if not all(isinstance(word, str) for word in words):
        raise TypeError("a task is made of texts")
    return SharedGroup(task, tuple(rollout for rollout in found if rollout))


# SAPO's mixture (2509.08721): of every few groups some are the node's own, the others were shared by its peers.
#
# Readings: the paper's draw, uniform among shared groups whose rollouts this node's own environments judge unevenly,
# each
# taken once as long as there are others. Where nothing is shared an own task takes the place: nobody is waited for.
# Tasks of environments that this node does not have, and of the held-out side, are passed over.


@dataclass
class SharedTasks(Sampler):
    """`own` tasks of `inner`, then `foreign` ones out of `folder`, and so on; probability is keyed by the batch's
    number.
    """

    inner: Sampler
    envs: tuple[Environment, ...]
    folder: str  # where nodes share
    node: str = ""  # whose groups are this node's own; empty: it shares nothing
    own: int = 4  # groups of each round
    foreign: int = 4  # groups of each round that others made
    size: int = 8  # rollouts of a foreign group that count: the first ones, as many as are said again
    seed: int = 0
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _taken: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _useless: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.own < 0 or self.foreign < 0 or self.own + self.foreign < 1:
            raise ConfigurationError(f"SharedTasks needs own and foreign >= 0, and one of them, got {self}")

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        place = self._num_drawn % (self.own + self.foreign)
        self._num_drawn += 1
        found = self._shared() if place >= self.own else None
        return self.inner.next(step, estimator) if found is None else found

    def _shared(self) -> Task | None:
        """Any that was not taken; where none of those will do, all may be taken again."""
        names = published(Path(self.folder), self.node)
        for left in ([name for name in names if name not in self._taken], names):
            for place in np.random.default_rng([self.seed, self._num_drawn]).permutation(len(left)):
                if (group := self._useful(left[place])) is not None:
                    self._taken = {left[place]} if left is names else {*self._taken, left[place]}
                    return replace(group.task, id=f"{FOREIGN}{left[place]}")
        return None

    def _useful(self, name: str) -> SharedGroup | None:
        """What is known to be useless is not read again; that changes no choice, so no checkpoint holds it."""
        group = None if name in self._useless else read(Path(self.folder), name)
        if group is None or not self._is_uneven(group):
            self._useless.add(name)
            return None
        return group

    def _is_uneven(self, group: SharedGroup) -> bool:
        """Whether this node's own judgement of the rollouts differs; where an environment plays on, their last
        words'.
        """
        try:
            env = env_of(self.envs, group.task)
        except ConfigurationError:
            return False
        if is_heldout(prompt_of(group.task)):
            return False
        return len({checked(env, group.task, rollout[-1]) for rollout in group.completions[: self.size]}) > 1

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn, "taken": sorted(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn, self._taken = int(state["num_drawn"]), set(state["taken"])


# What somebody else replied, said in the policy's place.


@dataclass(frozen=True)
class Reciting(Agent):
    """Says the completions one after the other, as far as the environment goes on; with an end behind each."""

    completions: tuple[str, ...]

    origin: ClassVar[Origin] = Origin.GUIDED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        paid: list[float | None] = []
        for completion in self.completions:
            if dialogue.is_cut:
                break
            dialogue.say(Message("assistant", completion))
            answer = await episode.step(Message("assistant", completion))
            paid.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
        return tuple(reward or 0.0 for reward in paid) if any(reward is not None for reward in paid) else ()


# SAPO's exchange (2509.08721): what the policy tried is shared as text, and what others tried is said in its place.
#
# Foreign text is tokenized here, with an end behind each completion, and judged by this node's own environments; it was
# sampled by
# nobody here (version -1), so it counts neither as tokens generated nor in any pass rate (GUIDED). Trained with a loss
# without ratio it is the policy gradient as if it were on-policy, which is biased, and meant so.


@dataclass(frozen=True)
class Swarm(Strategy):
    """Own tasks are tried, and shared where a `node` name is given; foreign ones are recited, as many as wanted."""

    folder: str  # where nodes share
    node: str = ""  # this node's name there; empty: it shares nothing

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.task.id.startswith(FOREIGN):
            return await together(play(start) for start in starts)
        shared = read(Path(self.folder), group.task.id.removeprefix(FOREIGN))
        said = shared.completions[: len(starts)] if shared is not None else ()
        pairs = zip(starts, said, strict=False)
        return await together(play(start, Reciting(completions)) for start, completions in pairs)

    def observe(self, group: Group) -> None:
        if not self.node or group.task.id.startswith(FOREIGN) or not group.own:
            return
        completions = tuple(tuple(turn.message.content for turn in rollout.turns) for rollout in group.own)
        publish(Path(self.folder), self.node, group.number, SharedGroup(group.task, completions))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says which share of the batch others made, and how many groups of it others may have."""
        foreign = sum(group.task.id.startswith(FOREIGN) for group in groups)
        shared = (len(groups) - foreign) * bool(self.node)
        return {"foreign_share": foreign / max(len(groups), 1), "shared_groups": float(shared)}


def sapo_sharing(
    setting: Setting = Setting(),
    *,
    folder: str,  # where all nodes share; relative to where the run is started
    node: str = "node",  # this one's name there; empty: it only reads
    own: int = 4,  # groups of each round
    foreign: int = 4,  # groups of each round that others made
) -> Run:
    """A node of a swarm; its peers are other runs with the same folder and other names."""
    run = setting.run("sapo_sharing", GroupStandard(epsilon=1e-8), (Reinforce(),), strategy=Swarm(folder, node))
    shared = SharedTasks(run.sampler, run.envs, folder, node, own, foreign, setting.group_size, setting.seed)
    run.sampler = shared
    return run
