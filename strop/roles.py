"""What can be plugged in: one question per role, asked by `pipeline.py` and answered by one small file per mechanism.

A mechanism is a dataclass that names its role as its base and whose fields are its hyperparameters. *Facts* about it
stand in the role with a default; abilities that only some parts have are in `abilities.py`. A part that wraps another
one forwards neither: whoever asks looks through wrappers (`abilities.inside`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from strop.types import (
    Completion,
    FloatArray,
    Group,
    IntArray,
    Message,
    Observation,
    Origin,
    Paid,
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
    from numpy.typing import NDArray
    from torch import Tensor

    from strop.train.batch import Batch, Output

    fact = property
else:

    class fact:  # noqa: N801 (a property that a field of a dataclass can redefine, with a default of its own or none)
        def __init__(self, default):
            self.default, self.__doc__ = default, default.__doc__

        def __get__(self, part, owner):
            if part is None:
                raise AttributeError(f"{owner.__name__}.{self.default.__name__} is a fact of its parts")
            return self.default(part)


Metrics: TypeAlias = dict[str, float]
Objective: TypeAlias = "Callable[[Output, Batch], tuple[Tensor, Metrics]]"


# ---- generate


class Engine(Protocol):
    """Who produces tokens?"""

    has_weights: ClassVar[bool] = True  # or its logprobs are invented

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
    async def close(self) -> None:
        return None


class World(Protocol):
    """Where do tasks come from? Seeded; train and held-out tasks never meet."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def level(self) -> int: ...

    @fact
    def is_inline(self) -> bool:
        """Whether its check is ours, pure and quick; any other needs a process that can be killed."""
        return False

    @fact
    def pays(self) -> bool:
        """Whether its environment judges replies itself; if not, a reward has to ask `check`."""
        return True

    def task(self, index: int, heldout: bool = False) -> Task: ...
    def environment(self) -> Environment: ...
    def check(self, task: Task, reply: str) -> float:
        """How right a final reply is, from 0 to 1."""
        ...

    def answer(self, reply: str) -> str:
        """The answer that a final reply gives, in one spelling; empty: none. Equal ones are equally right."""
        return reply.strip()

    def num_tasks(self, heldout: bool = False) -> int | None:
        """How many different tasks there are; None: endless."""
        return None


class Player(Protocol):
    """Plays the attempts of one group; what a strategy composes. Every attempt made has a row in the ledger."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Trajectory:
        """Let the run's agent play the group's task, or another agent, or at another task (to judge, to reflect)."""
        ...

    def another(self, **changes: Any) -> Start:
        """The next attempt's id and random key, with these fields of `Start`."""
        ...

    async def score(self, attempts: Sequence[Trajectory]) -> list[float | None]:
        """A look at rewards inside a search; None: it failed. Nothing is written down."""
        ...

    async def look(self, attempts: Sequence[Trajectory], needs: frozenset[str]) -> list[dict[str, NDArray[Any]]]:
        """What the policy thinks of attempts, half-written ones too: the notes of `Trainer.note`."""
        ...

    def retold(self, attempt: Trajectory, messages: Sequence[Message]) -> Trajectory:
        """The same replies as if these messages had been read: sampled with a hint, trained without it (GUIDED)."""
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
        """Append a turn that the policy did not write (a demonstration)."""
        ...

    def restart(self, messages: Sequence[Message], voice: str = "") -> None:
        """The next reply reads these alone: a summary in place of what came before, or another role."""
        ...

    def aside(self, messages: Sequence[Message], voice: str = "") -> Dialogue:
        """Another conversation of the same attempt (a sub-agent), which may go on beside this one."""
        ...

    @property
    def key(self) -> int:
        """Chance that is the agent's own."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those of asides first."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether the last reply hit the token limit, the context is full, or no more turns may be spent."""
        ...


class Agent(Protocol):
    """How does one attempt unfold?"""

    origin: ClassVar[Origin] = Origin.POLICY

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        """Talk until it ends; returns what the world paid for each turn (empty where it does not pay)."""
        ...


class Strategy(Protocol):
    """Which attempts are made? `group` holds earlier waves, scored.

    Every sampled token is written in exactly one attempt: what a branch shares with its parent is given to it
    (`pieces.given`), and credit along a tree is an advantage's work.
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]: ...


class Adviser(Protocol):
    """Who else can be asked? What fails raises `AdviserError` and is never a reward."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str: ...


# ---- filter


class Reward(Protocol):
    """How good was each attempt? Runs killable with a deadline, unless it says that it is ours, pure and quick."""

    is_relative: ClassVar[bool] = False  # compares siblings: asked about a whole group or not at all

    @fact
    def is_inline(self) -> bool:
        """Whether it is ours, pure and quick, and needs no process of its own."""
        return False

    @fact
    def name(self) -> str:
        """Under which its marks are kept; empty: after its class."""
        return ""

    @fact
    def weight(self) -> float:
        return 1.0

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]:
        """One mark per attempt, perhaps with places; a coroutine is awaited within the same deadline. NaN: no mark."""
        ...


class Gate(Protocol):
    """What is worth learning from?"""

    min_group: ClassVar[int] = 1  # siblings it needs to compare

    def __call__(self, group: Group) -> Verdict: ...


# ---- control


class Belief(Protocol):
    """How likely is a task solved now? One for the whole run, shown every scored group once, in any order."""

    def foresee(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each task's success at this version, of tasks never seen too: [N], [N]."""
        ...

    def observe(self, group: Group) -> None: ...


class Sampler(Protocol):
    """What should be tried next?"""

    def next(self, step: int, belief: Belief) -> Task: ...


class Writer(Protocol):
    """Which new tasks follow from this group? Those that do not leak (`control/offers.py`) go to the sampler."""

    async def __call__(self, group: Group, play: Player) -> list[Task]: ...


class Budget(Protocol):
    """How much may it spend? Asked before the first attempt and after each scored wave, until it says 0."""

    @fact
    def size(self) -> int | None:
        """Attempts of a group, where that is known beforehand."""
        return None

    def attempts(self, group: Group) -> int: ...
    def turns(self, group: Group) -> int:
        """Most turns of each attempt; 0: no limit."""
        return 0

    def tokens(self, group: Group) -> int:
        """Most written tokens of each attempt; 0: no limit."""
        return 0


class Pace(Protocol):
    """How far may generation run ahead?"""

    @fact
    def lag(self) -> int:
        """Most versions between the weights that sampled a token and those it trains."""
        return 0

    @fact
    def is_waved(self) -> bool:
        """Whether all that is started belongs to the next step: groups may then be trained as they come."""
        return False

    @fact
    def is_ordered(self) -> bool:
        """Whether weights stand still while attempts are made: all that learns then learns in order of admission."""
        return self.is_waved

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        """`running`: groups in flight; `waiting`: kept, step not published; `tokens`: made since the last step."""
        ...

    def draws(self, standing: Standing) -> int:
        """How many groups the next step trains on now; 0: wait for more, or for slower ones."""
        ...


# ---- replay


@runtime_checkable
class Buffer(Protocol):
    """What is kept, and drawn again?"""

    @fact
    def capacity(self) -> int | None:
        """Most groups it holds; None: no limit."""
        return None

    def add(self, group: Group) -> None: ...
    def draw(self, count: int, step: int) -> list[Group] | None:
        """`count` groups to train on at this step, or None while there are too few."""
        ...

    def __len__(self) -> int: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        """Put itself back; groups are found by their numbers."""
        ...


# ---- train


class Advantage(Protocol):
    """Who gets the credit? Sees the whole draw and fills `advantages` (and `returns` where a critic learns)."""

    min_group: ClassVar[int] = 1  # siblings it needs to compare
    is_local: ClassVar[bool] = False  # credit for a group depends on nothing outside it: groups train as they come
    needs_values: ClassVar[bool] = False

    @fact
    def needs(self) -> frozenset[str]:
        """What it wants to know of the policy: notes (see `Trainer.note`)."""
        return frozenset()

    def __call__(self, groups: Sequence[Group]) -> None: ...


class ValueModel(Protocol):
    """What was expected? Fills `values` before credit is given and learns from `returns` after."""

    @fact
    def needs(self) -> frozenset[str]:
        """What it wants to know of the policy: notes (see `Trainer.note`)."""
        return frozenset()

    def open(self, model: Path, seed: int) -> None: ...
    def predict(self, groups: Sequence[Group]) -> None: ...
    def learn(self, groups: Sequence[Group]) -> Metrics: ...


class Correction(Protocol):
    """How much does an off-policy token count? Detached weights [T] that multiply the losses."""

    @fact
    def target(self) -> str:
        """Weights reach from the policy that sampled to this one: current, or one that a loss's `anchor` may name."""
        return "current"

    @fact
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor: ...


class Loss(Protocol):
    """What is minimized? Only written tokens are ever trained, unless a loss says that it is about the world's."""

    scope: ClassVar[str] = "attempt"  # the smallest unit a micro-batch may not split: attempt or group
    min_group: ClassVar[int] = 1
    covers: ClassVar[str] = "written"  # or observed: what the world said, and nothing else
    is_on_policy: ClassVar[bool] = False  # tokens of other weights bias it, unless a correction weighs them
    corrects: ClassVar[bool] = False  # weighs by the sampling distribution, which truncation would change
    needs_distance: ClassVar[bool] = False  # as long as the policy is the one that sampled, a plain policy gradient

    @fact
    def contains_ratio(self) -> bool:
        """Whether it holds a ratio to the policy that sampled: a correction on top would count it twice."""
        return False

    @fact
    def anchor(self) -> str:
        """Where its own ratio begins; a correction must reach exactly that far."""
        return "current"

    @fact
    def needs(self) -> frozenset[str]:
        """Batch fields the trainer must fill first (see `Trainer.annotate`)."""
        return frozenset()

    @fact
    def weight(self) -> float:
        return 1.0

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        """Loss per token [T], and figures to log, each already a sum over this batch of `share * something`."""
        ...


class StepScale(Protocol):
    """How far may this step go? A factor on its learning rate."""

    def __call__(self, log_weights: Tensor) -> float:
        """From log(policy / behaviour) of every whole attempt of the step: [N]."""
        ...


class Reduction(Protocol):
    """How do tokens add up? One number per written token of each attempt; the loss of a step is the weighted sum."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        """By attempt id: [N]."""
        ...


class Trainer(Protocol):
    """How do weights move? It knows no algorithm's name."""

    fills: ClassVar[frozenset[str] | None] = None  # the needs it can fill; None: all
    makes_several: ClassVar[bool] = False  # optimizer steps of one, each from where the last one ended

    @fact
    def snapshots(self) -> int:
        """Earlier versions it keeps."""
        return 0

    @fact
    def average_window(self) -> int:
        """Versions that its averaged policy spans."""
        return 0

    @fact
    def warmup_steps(self) -> int:
        """Optimizer steps in which the learning rate rises."""
        return 0

    if TYPE_CHECKING:

        @property
        def max_tokens(self) -> int: ...  # of one forward pass

    def open(self, model: Path, seed: int) -> None: ...

    def note(self, groups: Sequence[Group], needs: frozenset[str]) -> None:
        """Write what the current policy thinks into each attempt's `notes`, before there is any credit.

        entropy, logprobs and reference_logprobs [N], hidden and hidden_after [N, H]: the state in which a token was
        chosen and the one after it, prompt_hidden [P, H] of the first prompt's tokens.
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
    async def proven(self) -> None:
        """Wait until engines hold the newest version, where training may go on before they do."""
        return None
