"""Data of the pipeline: tasks, rollouts, groups, batches and weight versions.

Every field is written by one part, named in brackets. Arrays are numpy outside the trainer; no object per token.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Metrics: TypeAlias = dict[str, float]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float32]
FilePath: TypeAlias = Annotated[str, "FilePath"]  # a file or folder that a part reads; see storage/named_files.py


@dataclass(frozen=True)
class ToolCall:
    """Tool call of the policy, with its arguments as text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Picture:
    """Picture of a message, known by its content; its bytes lie in `pictures/` of the run folder once it is used."""

    digest: str  # SHA-256 of the bytes
    width: int
    height: int
    data: bytes = field(default=b"", compare=False, repr=False)  # until the run folder has them


@dataclass(frozen=True)
class Message:
    """One chat message; `role` is system, user, assistant or tool."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    is_completion: bool = False  # a model wrote it: markers of thoughts and calls in it are tokens, as they were there
    images: tuple[Picture, ...] = ()  # in the places of as many `<image>` in `content`, else before it


@dataclass(frozen=True)
class Tool:
    """Tool of a task: `parameters` is the JSON schema of its arguments, as text."""

    name: str
    description: str
    parameters: str = "{}"


@dataclass(frozen=True)
class Task:
    """Task to solve; `answer` is for rewards and environments and is never shown to the policy."""

    messages: tuple[Message, ...]
    answer: str
    source: str  # the name of its environment
    level: int = 0
    id: str = ""
    tools: tuple[Tool, ...] = ()
    columns: str = ""  # what else its row of a table holds, as JSON: for rewards, never shown to the policy either

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", self._content_hash())

    def _content_hash(self) -> str:
        """A stable name: the key of curricula, replay and the ledger."""
        said = [[m.role, m.content, *(each.digest for each in m.images)] for m in self.messages]
        content = [self.source, self.level, self.answer, said]
        content += [*([t.name, t.description, t.parameters] for t in self.tools), *filter(None, [self.columns])]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; kept with every turn, because they define the distribution of its logprobs."""

    temperature: float = 1.0  # 0: the likeliest token
    top_p: float = 1.0  # mass of the nucleus; 1: no limit
    top_k: int = 0  # 0: no limit
    max_tokens: int = 128  # of one completion
    stop: tuple[str, ...] = ()  # texts that end a completion
    policy_name: str = ""  # who speaks, where it is not simply the policy: the reference, a teacher, a role of a team
    num_prefix: int = 0  # the prompt's last tokens that begin the completion: a text that ends it may begin there

    @property
    def is_truncated(self) -> bool:
        return self.top_p < 1.0 or self.top_k > 0


@dataclass(frozen=True)
class ScoreRange:
    """Range of the scores of a reward that says how right a rollout is."""

    low: float = 0.0  # as wrong as can be
    high: float = 1.0  # right; more is right as well

    def success(self, score: float) -> float:
        """From 0 to 1."""
        return min(max((score - self.low) / (self.high - self.low), 0.0), 1.0)


ZERO_TO_ONE = ScoreRange()
SUCCESS = "success"  # fact: how right a rollout is, from 0 to 1, by the reward of the run that grades


@dataclass(frozen=True, eq=False)
class Turn:
    """New context since the policy's last turn, and its completion.

    The last `num_prefix` tokens of `prompt` begin the completion: they are in `message`, but were not sampled in this
    rollout, so they are never trained on or counted here.
    """

    prompt: IntArray  # [P]
    tokens: IntArray  # [N]
    logprobs: FloatArray  # [N], of the distribution really sampled from
    versions: IntArray  # [N], weight version behind each token
    message: Message
    sampling: Sampling = Sampling()
    fresh: bool = False  # the context restarts here (compaction, sub-agent)
    # what the trainer must see again: one row per token of prompt and completion, or one row for the whole turn
    aux: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    num_prefix: int = 0
    told: tuple[Message, ...] = ()  # what the environment said since the last turn, as messages

    @property
    def prefix(self) -> IntArray:
        return self.prompt[len(self.prompt) - self.num_prefix :]  # the given beginning of the completion: [num_prefix]

    @property
    def whole(self) -> IntArray:  # the completion, given and written
        return np.concatenate([self.prefix, self.tokens]) if self.num_prefix else self.tokens


class Outcome(Enum):
    """End of a rollout. FAILED: by the environment's fault; PRUNED: given up. Both are in no baseline and never trained
    on.
    """

    FINISHED = "finished"
    TRUNCATED = "truncated"
    PRUNED = "pruned"
    FAILED = "failed"


class Origin(Enum):
    """Source of a rollout's tokens; only POLICY rollouts update a task's plain pass rate."""

    POLICY = "policy"
    GUIDED = "guided"
    TEACHER = "teacher"
    BRANCHED = "branched"
    RESUMED = "resumed"
    REPLAYED = "replayed"


@dataclass(eq=False)
class Rollout:
    """One rollout. Advantages are stored here and not on turns, so that rollouts with shared turns do not overwrite
    each other.
    """

    id: str
    task: Task
    turns: tuple[Turn, ...]
    outcome: Outcome
    origin: Origin = Origin.POLICY
    error: str = ""  # [generate, filter] what failed, when the outcome is FAILED; else what its completion exhausted
    reward: float = 0.0  # [filter] the weighted sum of `rewards`
    rewards: dict[str, float] = field(default_factory=dict)  # [filter] by reward name, unweighted
    turn_rewards: tuple[float, ...] = ()  # [generate] what the environment paid for each turn, where it does
    facts: dict[str, float] = field(default_factory=dict)  # [generate, filter] small named numbers
    parent: str = ""  # [generate] the rollout its beginning comes from
    comparison_group: str = ""  # [generate] siblings that are compared with each other, where not all of a group are
    values: FloatArray | None = None  # [train] [N]
    advantages: FloatArray | None = None  # [train] [N]
    returns: FloatArray | None = None  # [train] [N]
    ratios: FloatArray | None = None  # [train] [N], policy / sampler before a step, see `training/verify_logprobs.py`
    policy_statistics: dict[str, NDArray[Any]] = field(default_factory=dict)  # [train] [N, ...], of the trainer's

    @property
    def is_scored(self) -> bool:
        """Whether it counts: neither failed by the environment nor given up before its end."""
        return self.outcome not in (Outcome.FAILED, Outcome.PRUNED)

    @property
    def success(self) -> float | None:
        """How right it is, from 0 to 1; None where no reward of the run says so."""
        return self.facts.get(SUCCESS)

    @property
    def num_tokens(self) -> int:
        """How many tokens the policy wrote (N of the per-token arrays)."""
        return sum(len(turn.tokens) for turn in self.turns)

    @property
    def num_sampled(self) -> int:
        """How many of them some weights sampled: neither demonstrations nor text put into its mouth."""
        return sum(int((turn.versions >= 0).sum()) for turn in self.turns)

    @property
    def completion(self) -> str:
        return self.turns[-1].message.content if self.turns else ""  # the last thing the policy said

    @property
    def oldest_version(self) -> int:
        return min((int(turn.versions.min()) for turn in self.turns if len(turn.versions)), default=0)

    def set_advantage(self, advantage: float) -> None:
        """Give every written token the same advantage."""
        self.advantages = np.full(self.num_tokens, advantage, dtype=np.float32)


@dataclass(eq=False)
class Group:
    """Rollouts of one task: the unit that is scored, gated, stored and compared."""

    number: int  # admission order, the key of every ordered draw
    task: Task
    rollouts: list[Rollout]
    version: int = 0  # [pipeline] weight version when the group was admitted
    times_trained: int = 0  # [replay]
    predicted: tuple[float, float] | None = None  # [control] mean and variance of its success, before the first rollout

    @property
    def scored(self) -> list[Rollout]:
        """The rollouts that count: all but those the environment failed and those that were given up (PRUNED)."""
        return [t for t in self.rollouts if t.is_scored]

    @property
    def own(self) -> list[Rollout]:
        """The rollouts that say how hard the task is for the policy: its own, from the start, without help."""
        return [t for t in self.scored if t.origin is Origin.POLICY]

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Total rewards of the rollouts that count; in double precision, or a small price per token is lost."""
        return np.array([t.reward for t in self.scored], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class GateResult:
    """Decision of a gate: the group to keep (perhaps trimmed), or None, and the reason."""

    group: Group | None
    reason: str = ""
    by: str = ""  # [filter] the gate that dropped it
    is_meant: bool = False  # dropped on purpose (a probe, a task not worth a rollout): no sign that a run starves


@dataclass(frozen=True, eq=False)
class Observation:
    """Answer of the environment to one completion."""

    messages: tuple[Message, ...] = ()
    done: bool = True
    reward: float | None = None


@dataclass(frozen=True, eq=False)
class Start:
    """Start of a rollout. The same key repeats its parent's continuation exactly, so a branch needs a key of its
    own.
    """

    id: str
    key: int
    turns: tuple[Turn, ...] = ()  # what is already there; an unfinished last completion is continued
    origin: Origin = Origin.POLICY
    parent: str = ""  # the rollout that `turns` come from
    comparison_group: str = ""
    messages: tuple[Message, ...] = ()  # read in place of the task's
    prefill: str = ""  # how the next completion begins: given; after written tokens: said by nobody (version -1)
    sampling: Sampling | None = None  # in place of the run's
    policy_name: str = ""  # who speaks, see `Sampling.policy_name`
    pause: int = 0  # written tokens after which it comes back unfinished (PRUNED); 0: never
    version: int = 0  # of the weights when its group was admitted, for schedules
