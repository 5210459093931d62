"""Programming task: `def f(x): add 3, times 2. f(4)=14 f(-1)=4`; the level sets the value types and number of steps.

The completion's program runs in the sandbox on inputs that the prompt does not show; reward 1 if all outputs are right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.code.cases import Cases, cases_of
from strop.environments.code_execution import Trials, program_in
from strop.environments.data.heldout_split import draw, require_level
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

FUNCTION = "f"
_SHOWN, _HIDDEN = 2, 10  # calls in the prompt, and those that a program is tried on
_LEAST = 3  # different results of them
_LETTERS = "abcdef"


@dataclass(frozen=True)
class Step:
    """One operation on x: its description, its Python text, and its function."""

    words: str
    code: str
    meant: Callable[[Any], Any] = field(compare=False)


@dataclass(frozen=True)
class Domain:
    """Operations on one type of value, those allowed as the last one, and input values."""

    steps: Callable[[int], tuple[Step, ...]]  # of a small number
    ends: tuple[Step, ...]
    value: Callable[[random.Random], Any]


def _numbers(k: int) -> tuple[Step, ...]:
    return (
        Step(f"add {k}", f"x+{k}", lambda x: x + k),
        Step(f"minus {k}", f"x-{k}", lambda x: x - k),
        Step(f"times {k}", f"x*{k}", lambda x: x * k),
        Step(f"mod {k}", f"x%{k}", lambda x: x % k),
        Step(f"at least {k}", f"max(x,{k})", lambda x: max(x, k)),
        Step(f"gap to {k}", f"abs(x-{k})", lambda x: abs(x - k)),
    )


def _lists(k: int) -> tuple[Step, ...]:
    return (
        Step(f"add {k} to each", f"[i+{k} for i in x]", lambda x: [i + k for i in x]),
        Step(f"each times {k}", f"[i*{k} for i in x]", lambda x: [i * k for i in x]),
        Step(f"keep above {k}", f"[i for i in x if i>{k}]", lambda x: [i for i in x if i > k]),
        Step("sort", "sorted(x)", sorted),
        Step("reverse", "x[::-1]", lambda x: x[::-1]),
        Step("drop first", "x[1:]", lambda x: x[1:]),
    )


def _texts(k: int) -> tuple[Step, ...]:
    return (
        Step(f"repeat {k}", f"x*{k}", lambda x: x * k),
        Step("upper", "x.upper()", str.upper),
        Step("reverse", "x[::-1]", lambda x: x[::-1]),
        Step("drop first", "x[1:]", lambda x: x[1:]),
        Step("double each", "''.join(i*2 for i in x)", lambda x: "".join(i * 2 for i in x)),
    )


_COUNT = Step("count", "len(x)", len)
DOMAINS = {
    "number": Domain(_numbers, (), lambda stream: stream.randint(-9, 20)),
    "list": Domain(
        _lists,
        (_COUNT, Step("sum", "sum(x)", sum)),
        lambda stream: [stream.randint(-9, 20) for _ in range(stream.randint(3, 5))],
    ),
    "text": Domain(_texts, (_COUNT,), lambda stream: "".join(stream.choices(_LETTERS, k=stream.randint(3, 5)))),
}
# level: what x is at first, and how many steps
SHAPES = {1: ("number", 1), 2: ("number", 2), 3: ("number", 3), 4: ("list", 2), 5: ("list", 3), 6: ("text", 4)}


@dataclass(frozen=True)
class Programs(Environment):
    """Programming environment; only the program's outputs on hidden inputs count."""

    level: int
    seed: int = 0
    trials: Trials = field(default_factory=Trials)  # where completions are run
    name: ClassVar[str] = "programs"
    is_inline: ClassVar[bool] = False  # a check takes as long as a program may

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(SHAPES), max(SHAPES))

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> ProgramEpisode:
        return ProgramEpisode(self)

    def check(self, task: Task, completion: str) -> float:
        """In a sandbox of its own, for whoever cannot wait; episodes and rewards can, and are quicker."""
        return float(self.trials.alone(completion, cases_of(task)).is_right)

    def answer(self, completion: str) -> str:
        return program_in(completion).text.strip()

    def solution(self, task: Task) -> str:
        return cases_of(task).solution

    def _make(self, stream: random.Random) -> Task:
        steps, inputs, outputs = drawn(self.level, stream)
        shown = " ".join(f"{FUNCTION}({x!r})={y!r}" for x, y in zip(inputs[:_SHOWN], outputs, strict=False))
        prompt = f"{head()} {', '.join(step.words for step in steps)}. {shown}"
        hidden = tuple([each] for each in inputs[_SHOWN:])
        tests = Cases(FUNCTION, hidden, tuple(outputs[_SHOWN:]), written(steps))
        return Task((Message("user", prompt),), str(tests), self.name, self.level)


@dataclass
class ProgramEpisode(Episode):
    """Episode of one completion, whose program runs concurrently with others; a sandbox error fails the rollout."""

    env: Programs
    task: Task = field(init=False, repr=False, compare=False)
    _own: Message | None = field(default=None, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task = task

    async def step(self, completion: Message) -> Observation:
        if completion is self._own:
            return Observation(done=True, reward=1.0)  # the environment's own program, right as it was made
        trial = await self.env.trials.of(completion.content, cases_of(self.task))
        return Observation(done=True, reward=float(trial.is_right))

    def demonstrate(self) -> Message:
        self._own = Message("assistant", self.env.solution(self.task))
        return self._own


def head() -> str:
    return f"def {FUNCTION}(x):"


def drawn(level: int, stream: random.Random) -> tuple[list[Step], list[Any], list[Any]]:
    """Steps, values and what comes of them, by chance; what is nearly the same for all values is drawn again."""
    name, count = SHAPES[level]
    while True:
        steps = chosen(DOMAINS[name], count, stream)
        inputs = different(DOMAINS[name].value, _SHOWN + _HIDDEN, stream)
        outputs = [meant(steps, each) for each in inputs]
        if len({repr(each) for each in outputs}) >= _LEAST:
            return steps, inputs, outputs


def chosen(domain: Domain, count: int, stream: random.Random) -> list[Step]:
    """Steps by chance, no two alike; one that takes a value of another kind can only be the last."""
    steps = different(lambda rng: rng.choice(domain.steps(rng.randint(2, 9))), count, stream)
    return [*steps[:-1], stream.choice(domain.ends)] if domain.ends and stream.random() < 0.5 else steps


def meant(steps: list[Step], value: Any) -> Any:
    """What should come of a value."""
    for step in steps:
        value = step.meant(value)
    return value


def written(steps: list[Step]) -> str:
    """The program, a line for each step."""
    body = [f" x={step.code}" for step in steps[:-1]]
    return "\n".join([head(), *body, f" return {steps[-1].code}"])


def different(value: Callable[[random.Random], Any], count: int, stream: random.Random) -> list[Any]:
    """So many values, no two alike."""
    found: list[Any] = []
    while len(found) < count:
        each = value(stream)
        found += [each] if each not in found else []
    return found
