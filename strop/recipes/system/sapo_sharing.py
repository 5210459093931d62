"""SAPO: decentralized nodes share rollouts as text; each trains on its own groups and on groups sampled from peers.

Key: sapo
Title: Sharing is Caring: Efficient LM Post-Training with Collective RL Experience Sharing
Paper: arXiv 2509.08721 (2025)
Claim: Eight small models that train on as many shared groups as own ones gain up to 94 % in reward over none shared.
Reading: The paper's sampling: uniform among shared groups whose rewards on this node are not all equal. Foreign text is
    tokenized and rewarded here and trained without a ratio, which is the paper's loss with one update per batch. A
    shared folder replaces the network, and no node waits for another. foreign=0 is a plain policy gradient on own
    groups.
Left out: Nodes of several models in one process: each node is a separate run, with any model.
Acts: shared_groups > 0 and foreign_share > 0 with folder=PEER
Break: foreign=0: nothing of the peers is trained on
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import HeldOutSide
from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Agent, Dialogue, Environment, Episode, PassRateEstimator, Player, Sampler, Strategy
from strop.run import Run
from strop.stats.task_lineage import plain, unplain
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task
from strop.workers.foreign_checks import checked

# Shared folder: groups of rollouts as text, one file each, which readers treat as untrusted input.
#
# A group's file is FOLDER/NODE/NUMBER.json. Writing is atomic, and a reader skips invalid files.

_MOST_BYTES = 1_000_000  # maximum size of a file
_SUFFIX = ".json"
FOREIGN = "@"  # prefix of the id of a task from a peer; the group's name follows


@dataclass(frozen=True)
class SharedGroup:
    """A task and a peer's completions, by rollout and turn."""

    task: Task
    completions: tuple[tuple[str, ...], ...]


def publish(folder: Path, node: str, number: int, group: SharedGroup) -> None:
    """Write a group into the shared folder."""
    (folder / node).mkdir(parents=True, exist_ok=True)
    target = folder / node / f"{number}{_SUFFIX}"
    written = target.with_name(f".{target.name}.{os.getpid()}")
    written.write_text(json.dumps({"task": plain(group.task), "completions": group.completions}))
    written.replace(target)


def published(folder: Path, without: str = "") -> list[str]:
    """The names NODE/NUMBER of all groups of nodes other than `without`, in order."""
    if not folder.is_dir():
        return []
    nodes = sorted(path for path in folder.iterdir() if path.is_dir() and path.name != without)
    files = [path for node in nodes for path in node.glob(f"[0-9]*{_SUFFIX}")]
    return [f"{path.parent.name}/{path.stem}" for path in sorted(files, key=_place)]


def _place(path: Path) -> tuple[str, int, str]:
    return path.parent.name, len(path.stem), path.stem


def read(folder: Path, name: str) -> SharedGroup | None:
    """The group of this name; None if it is missing or invalid."""
    path = folder / f"{name}{_SUFFIX}"
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # reading a pipe would block
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
        raise TypeError("a field of the task is not a string")
    return SharedGroup(task, tuple(rollout for rollout in found if rollout))


# SAPO's mixture (2509.08721): own groups and groups of peers, in a fixed ratio.
#
# Readings: the paper's sampling, uniform among shared groups with different rewards in this node's own environments,
# without replacement as long as there are others. If no group is available, an own task takes its place, without
# waiting. Tasks of unknown environments and held-out tasks are skipped.


@dataclass
class SharedTasks(Sampler):
    """Sampler of `own` tasks of `inner`, then `foreign` ones from `folder`, in turn; seeded by the task's number."""

    inner: Sampler
    envs: tuple[Environment, ...]
    folder: str  # shared folder
    node: str = ""  # this node's name in it; empty: it does not share
    own: int = 4  # own groups per round
    foreign: int = 4  # groups of peers per round
    size: int = 8  # rollouts of a foreign group that are used, the first ones
    seed: int = 0
    _num_sampled: int = field(default=0, init=False, repr=False, compare=False)
    _taken: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _useless: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.own < 0 or self.foreign < 0 or self.own + self.foreign < 1:
            raise ConfigurationError(f"SharedTasks needs own and foreign >= 0, and one of them, got {self}")

    @cached_property
    def _heldout(self) -> HeldOutSide:
        return HeldOutSide(self.envs)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        place = self._num_sampled % (self.own + self.foreign)
        self._num_sampled += 1
        found = self._shared() if place >= self.own else None
        return self.inner.next(step, estimator) if found is None else found

    def _shared(self) -> Task | None:
        """A random useful group that was not used before; if there is none, any useful group."""
        names = published(Path(self.folder), self.node)
        for left in ([name for name in names if name not in self._taken], names):
            for place in np.random.default_rng([self.seed, self._num_sampled]).permutation(len(left)):
                if (group := self._useful(left[place])) is not None:
                    self._taken = {left[place]} if left is names else {*self._taken, left[place]}
                    return replace(group.task, id=f"{FOREIGN}{left[place]}")
        return None

    def _useful(self, name: str) -> SharedGroup | None:
        """The group if its rewards differ. Others are cached by name, which changes no choice and is not saved."""
        group = None if name in self._useless else read(Path(self.folder), name)
        if group is None or not self._has_different_rewards(group):
            self._useless.add(name)
            return None
        return group

    def _has_different_rewards(self, group: SharedGroup) -> bool:
        """Whether this node's environment gives the rollouts' last completions different rewards.

        A check that may not run in this process is not asked: there they must be different texts.
        """
        try:
            env = env_of(self.envs, group.task)
        except ConfigurationError:
            return False
        if self._heldout.holds_out(group.task):
            return False
        last = {rollout[-1] for rollout in group.completions[: self.size]}
        return len({checked(env, group.task, said) for said in last} if env.is_inline else last) > 1

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_sampled, "taken": sorted(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_sampled, self._taken = int(state["num_drawn"]), set(state["taken"])


# Replay of a peer's completions.


@dataclass(frozen=True)
class ReplayCompletions(Agent):
    """Agent that replays given completions, each with an end token, until the episode ends."""

    completions: tuple[str, ...]

    origin: ClassVar[Origin] = Origin.GUIDED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        rewards: list[float | None] = []
        for completion in self.completions:
            if dialogue.is_cut:
                break
            dialogue.say(Message("assistant", completion))
            answer = await episode.step(Message("assistant", completion))
            rewards.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
        return tuple(reward or 0.0 for reward in rewards) if any(reward is not None for reward in rewards) else ()


# SAPO's exchange (2509.08721): own rollouts are shared as text, and those of peers are replayed.
#
# Foreign text is tokenized here, with an end token after each completion, and rewarded by this node's environments. It
# has version -1 and origin GUIDED, so it counts neither as generated tokens nor in pass rates. With a loss without
# ratio it is trained on as if it were on-policy, which is biased, as in the paper.


@dataclass(frozen=True)
class Swarm(Strategy):
    """Strategy that plays own tasks, sharing them under the name `node`, and replays rollouts of foreign ones."""

    folder: str  # shared folder
    node: str = ""  # this node's name in it; empty: it does not share

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.task.id.startswith(FOREIGN):
            return await together(play(start) for start in starts)
        shared = read(Path(self.folder), group.task.id.removeprefix(FOREIGN))
        replayed = shared.completions[: len(starts)] if shared is not None else ()
        pairs = zip(starts, replayed, strict=False)
        return await together(play(start, ReplayCompletions(completions)) for start, completions in pairs)

    def observe(self, group: Group) -> None:
        if not self.node or group.task.id.startswith(FOREIGN) or not group.own:
            return
        completions = tuple(tuple(turn.message.content for turn in rollout.turns) for rollout in group.own)
        publish(Path(self.folder), self.node, group.number, SharedGroup(group.task, completions))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the share of foreign groups in the batch, and the number of shared own groups."""
        foreign = sum(group.task.id.startswith(FOREIGN) for group in groups)
        shared = (len(groups) - foreign) * bool(self.node)
        return {"foreign_share": foreign / max(len(groups), 1), "shared_groups": float(shared)}


def sapo_sharing(
    setting: Setting = Setting(),
    *,
    folder: str,  # folder shared by all nodes; relative to the working directory
    node: str = "node",  # this node's name in it; empty: it only reads
    own: int = 4,  # own groups per round
    foreign: int = 4,  # groups of peers per round
) -> Run:
    """One node; its peers are other runs with the same folder and different names."""
    run = setting.run("sapo_sharing", GroupStandard(epsilon=1e-8), (Reinforce(),), strategy=Swarm(folder, node))
    shared = SharedTasks(run.sampler, run.envs, folder, node, own, foreign, setting.group_size, setting.seed)
    run.sampler = shared
    return run
