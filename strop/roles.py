"""What can be plugged in: one question per role, asked by `pipeline.py` and answered by one small file per mechanism.

A mechanism is a dataclass whose fields are its hyperparameters. A role with memory also has `state()` and `restore()`
(see `Remembers`); `checkpoint.py` finds them by walking the fields of `Run`, so nobody registers anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from strop.types import (
    Batch,
    Completion,
    FloatArray,
    Group,
    IntArray,
    Message,
    Observation,
    Origin,
    Sampling,
    Standing,
    Start,
    Task,
    Trajectory,
    Turn,
    Verdict,
    WeightVersion,
)

if TYPE_CHECKING:
    from torch import Tensor

Metrics: TypeAlias = dict[str, float]


@runtime_checkable
class Remembers(Protocol):
    """A mechanism whose memory belongs into a checkpoint; the state is plain JSON data."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


# ---- generate


class Engine(Protocol):
    """Who produces tokens? One that has a method `hurry(keys)` too decodes nothing else until those are done."""

    def open(self, model: Path) -> None:
        """Read the architecture and the first weights from a Hugging Face folder."""
        ...

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` (the whole context); token at position p is drawn with random number (key, p)."""
        ...

    async def load(self, version: WeightVersion) -> str:
        """Take new weights between two decode steps and answer with the fingerprint of what is really loaded."""
        ...

    def forget(self) -> None:
        """Drop every kept prefix: from here on, bits do not depend on what was asked before."""
        ...

    def abort(self, key: int) -> None:
        """End the running request of this key; its completion comes back as far as it got."""
        ...


class Environment(Protocol):
    """What does the world answer? One per attempt; an exception is the world's fault and fails the attempt."""

    async def reset(self, task: Task) -> None: ...
    async def step(self, reply: Message) -> Observation: ...
    async def close(self) -> None: ...


@runtime_checkable
class Demonstrates(Protocol):
    """An environment that also knows the right next reply, for supervised training."""

    def demonstrate(self) -> Message: ...


class World(Protocol):
    """Where do tasks come from? Endless and seeded; train and held-out tasks never meet."""

    @property
    def name(self) -> str: ...
    @property
    def level(self) -> int: ...
    def task(self, index: int, heldout: bool = False) -> Task: ...
    def environment(self) -> Environment: ...
    def check(self, task: Task, reply: str) -> float:
        """How right a final reply is, from 0 to 1."""
        ...


class Player(Protocol):
    """Plays one attempt at a task that is already chosen; what a strategy composes."""

    async def __call__(self, start: Start, agent: Agent | None = None) -> Trajectory:
        """Let the run's agent play, or another one for this attempt."""
        ...


class Dialogue(Protocol):
    """One attempt's conversation as tokens; made by `generate/policy.py`, the only code that touches tokens."""

    def hear(self, messages: Sequence[Message]) -> None:
        """Append what the world said."""
        ...

    async def reply(self, sampling: Sampling | None = None) -> Message:
        """Let the policy write its next turn."""
        ...

    def say(self, message: Message) -> None:
        """Append a turn somebody else wrote for the policy (a demonstration)."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...]: ...
    @property
    def is_cut(self) -> bool:
        """Whether the last reply hit the token limit, the context is full, or no more turns may be spent."""
        ...


class Agent(Protocol):
    """How does one attempt unfold?"""

    origin: ClassVar[Origin]

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        """Talk until it ends; returns what the world paid for each turn (empty where it does not pay)."""
        ...


class Strategy(Protocol):
    """Which attempts are made?"""

    async def __call__(self, task: Task, starts: Sequence[Start], play: Player) -> list[Trajectory]: ...


# ---- filter


class Reward(Protocol):
    """How good was each attempt? Runs killable with a deadline, unless `is_inline` says it is ours, pure and quick."""

    @property
    def weight(self) -> float: ...
    def __call__(self, group: Group) -> list[float]: ...


class Gate(Protocol):
    """What is worth learning from?"""

    def __call__(self, group: Group) -> Verdict: ...


# ---- control


class Sampler(Protocol):
    """What should be tried next?"""

    def next(self) -> Task: ...
    def observe(self, group: Group) -> None: ...


class Budget(Protocol):
    """How much may it spend? One that also limits turns has `turns(task)`, of each attempt; 0: without a limit."""

    def attempts(self, task: Task) -> int: ...
    def observe(self, group: Group) -> None: ...


class Pace(Protocol):
    """How far may generation run ahead?"""

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int) -> bool:
        """`running`: groups in flight; `waiting`: kept and not yet trained; `step`: the current weight version."""
        ...

    def draws(self, standing: Standing) -> int:
        """How many groups the next step trains on now; 0: wait for more, or for slower ones."""
        ...


# ---- replay


class Buffer(Protocol):
    """What is kept, and drawn again?"""

    def add(self, group: Group) -> None: ...
    def draw(self, count: int, step: int) -> list[Group] | None:
        """`count` groups to train on at this step, or None while there are too few."""
        ...

    def __len__(self) -> int: ...


# ---- train


class Advantage(Protocol):
    """Who gets the credit? Sees the whole draw and fills `advantages` (and `returns` where a critic learns).

    One that looks at what the policy thought says so in `needs`, a frozenset of notes (see `Trainer.note`). One whose
    credit for a group depends on nothing outside it says `is_local`: its groups can be trained as they come.
    """

    def __call__(self, groups: Sequence[Group]) -> None: ...


class ValueModel(Protocol):
    """What was expected? Fills `values` before credit is given and learns from `returns` after; may have `needs`."""

    def open(self, model: Path, seed: int) -> None: ...
    def predict(self, groups: Sequence[Group]) -> None: ...
    def learn(self, groups: Sequence[Group]) -> Metrics: ...


class Output(Protocol):
    """What the policy says about a batch, with gradient; everything is [T] and zero where not trainable."""

    @property
    def logprobs(self) -> Tensor: ...
    @property
    def entropy(self) -> Tensor: ...
    @property
    def states(self) -> Tensor:
        """The hidden state in which each token was chosen, the last before the output layer: [T, H]."""
        ...

    def over_logits(self, function: Callable[..., Tensor], *columns: Tensor, where: Tensor | None = None) -> Tensor:
        """Apply `function(logits [C, V], tokens [C]) -> [C]` in chunks, so that full logits never exist: [T].

        Further [T] columns are cut alike and handed on. `where` [T] asks about other tokens than the trainable ones.
        """
        ...

    def over_both(self, function: Callable[..., Tensor], policy: str, *columns: Tensor) -> Tensor:
        """The same for `function(logits, frozen_logits, tokens, ...)`; the loss `needs` "logits:" + the policy."""
        ...

    def reread(self, others: Tensor, share: float) -> Output:
        """The batch read again with embeddings (1 - share) * own + share * that of `others` [T], none of them learning.

        What the policy read and did not write stays as it is.
        """
        ...


class Correction(Protocol):
    """How much does an off-policy token count? Detached weights [T] that multiply the losses.

    They weigh from the policy that sampled to `target`: current, or one of the frozen ones a loss's `anchor` may name.
    """

    @property
    def needs(self) -> frozenset[str]: ...
    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor: ...


class Loss(Protocol):
    """What is minimized? `needs` names batch fields the trainer must fill first (see `Trainer.annotate`).

    `scope` is the smallest unit a micro-batch may not split: attempt or group. A loss whose ratio is taken against
    the policy that sampled says `contains_ratio`; one whose ratio begins at a frozen policy names it as its `anchor`,
    and a correction must reach exactly that far. Only written tokens are ever trained, unless a loss says
    `covers = "observed"`: then it is about what the world said, and nothing else.
    """

    scope: ClassVar[str]

    @property
    def needs(self) -> frozenset[str]: ...
    @property
    def weight(self) -> float: ...
    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        """Loss per token [T], and figures to log, each already a sum over this batch of `share * something`."""
        ...


class StepScale(Protocol):
    """How far may this step go? A factor on its learning rate."""

    def __call__(self, log_weights: Tensor) -> float:
        """From log(policy / behaviour) of every whole attempt of the step: [N]."""
        ...


class Reduction(Protocol):
    """How do tokens add up? One number per written token of each attempt; the loss of a step is the weighted sum.

    One that averages also says by `mass(groups)` what a part of the draw weighs in the whole.
    """

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        """By attempt id: [N]."""
        ...


Objective: TypeAlias = "Callable[[Output, Batch], tuple[Tensor, Metrics]]"


class Trainer(Protocol):
    """How do weights move? It knows no algorithm's name."""

    max_tokens: int  # of one forward pass

    def open(self, model: Path, seed: int) -> None: ...

    def note(self, groups: Sequence[Group], needs: frozenset[str]) -> None:
        """Write what the current policy thinks into each attempt's `notes`, before there is any credit.

        entropy, logprobs and reference_logprobs [N], hidden [N, H], prompt_hidden [P, H] of the first prompt's tokens.
        """
        ...

    def annotate(self, batches: Sequence[Batch], needs: frozenset[str]) -> None:
        """Fill what is needed: logprobs of the reference, proximal, old or averaged policy, or score_norms.

        "model:FOLDER" are the logprobs of another model, "logits:POLICY" its whole distributions (`Output.over_both`).
        """
        ...

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches."""
        ...

    def weights(self) -> dict[str, Tensor]: ...
    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder, and beside it what is needed to go on to the same bits."""
        ...

    def resume(self, folder: Path) -> None: ...


class Channel(Protocol):
    """How do weights reach the engines? Proven by fingerprint."""

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None: ...
    async def publish(self, step: int) -> WeightVersion: ...
