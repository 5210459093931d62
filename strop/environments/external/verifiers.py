"""Adapter for tasksets of the verifiers package (Prime Intellect) with one completion per rollout: `verifiers/NAME`.

Prompts and rewards are its own. Tasks that need more than a completion (tools, a sandbox, a judge) are refused. This is
foreign code and runs in the calling process: wrap it in `Apart` or `Pooled`, as environments selected by name are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import signature
from itertools import islice
from typing import Any, ClassVar

from strop.environments.data.finite_set import FixedTasks
from strop.environments.format.think_tags import CLOSE, OPEN, between, final_answer
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

_MOST = 10_000  # tasks that are read of a set without an end


@dataclass(frozen=True)
class VerifiersTasks(Environment):
    """verifiers taskset; one completion per rollout, rewarded by the weighted sum of the task's reward functions."""

    taskset: str  # the package that exports it
    options: Mapping[str, Any] = field(default_factory=dict)  # of its configuration
    heldout_share: float = 0.1  # of its tasks, to measure on
    level: ClassVar[int] = 0

    def __post_init__(self) -> None:
        first = next(iter(self.loaded), None)
        if first is None:
            raise ConfigurationError(f"taskset {self.taskset} of verifiers has no tasks")
        if wanted := _needs(self.loaded, first):
            raise ConfigurationError(
                f"tasks of {self.taskset} need {', '.join(wanted)}, and an environment of one completion has none: "
                f"train its own "
                "rollout as a program (docs/programs.md)"
            )

    @property
    def name(self) -> str:
        return f"verifiers/{self.taskset}"

    def task(self, index: int, heldout: bool = False) -> Task:
        return self._tasks.task(index, heldout)

    def num_tasks(self, heldout: bool = False) -> int:
        return self._tasks.num_tasks(heldout)

    def episode(self) -> VerifiersEpisode:
        return VerifiersEpisode(self)

    def check(self, task: Task, completion: str) -> float:
        raise ConfigurationError(f"{self.name} pays by itself: reward its tasks with Earned()")

    @cached_property
    def loaded(self) -> Any:
        """The taskset."""
        loaders = _verifiers().utils.loaders
        try:
            kind = loaders.taskset_class(self.taskset)
            config = loaders.taskset_config_type(self.taskset)
            return kind(config.model_validate({"id": self.taskset, **self.options}))
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigurationError(f"verifiers cannot load taskset {self.taskset}: {error}") from error

    @cached_property
    def _tasks(self) -> FixedTasks:
        read = [self._read(each.data) for each in islice(self.loaded, _MOST)]
        return FixedTasks.split(read, self.heldout_share, self.name)

    def _read(self, data: Any) -> Task:
        """As it is asked; all of it goes where only the environment sees it."""
        text = _verifiers().types.content_text
        messages = tuple(Message(each.role, text(each.content)) for each in asked(data))
        return Task(messages, data.model_dump_json(), self.name, self.level)

    def __getstate__(self) -> dict[str, Any]:
        return {kept.name: getattr(self, kept.name) for kept in fields(self)}  # tasks are read again where needed


@dataclass
class VerifiersEpisode(Episode):
    """One rollout, scored by the task's own reward functions."""

    env: VerifiersTasks
    made: Any = field(default=None, init=False, repr=False, compare=False)  # its task

    async def reset(self, task: Task) -> None:
        kind = self.env.loaded.task_type()
        self.made = kind(kind.data_type().model_validate_json(task.answer), self.env.loaded.config.task)

    async def step(self, completion: Message) -> Observation:
        trace = _trace(self.made, completion.content)
        await self.made.score(trace)
        return Observation(done=True, reward=float(trace.reward))


def _verifiers() -> Any:
    try:
        import verifiers.v1
        import verifiers.v1.utils.loaders
    except ImportError as error:
        raise ConfigurationError("tasksets of verifiers need it: pip install 'strop[clients]'") from error
    return verifiers.v1


def asked(data: Any) -> list[Any]:
    """The messages that a task begins with."""
    types = _verifiers().types
    prompt = [types.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else list(data.prompt or [])
    return [types.SystemMessage(content=data.system_prompt), *prompt] if data.system_prompt else prompt


def _needs(taskset: Any, task: Any) -> list[str]:
    """What a task wants that there is not."""
    plain = _verifiers().Task
    hooks = [*task.hooks("reward"), *task.hooks("metric")]
    is_set_up = type(task).setup is not plain.setup or type(task).finalize is not plain.finalize
    found = {
        "a user who speaks first": not task.data.prompt,
        "tools": bool(type(taskset).toolsets(taskset.config) or type(task).toolsets(task.config)),
        "a sandbox": task.NEEDS_CONTAINER
        or is_set_up
        or any("runtime" in signature(each).parameters for each in hooks),
        "a judge": bool(task.config.judges),
        "pictures": any(not isinstance(each.content, str) for each in asked(task.data)),
    }
    return [name for name, is_wanted in found.items() if is_wanted]


def _trace(task: Any, completion: str) -> Any:
    """What verifiers would have written down of this rollout; the working stands apart from the answer."""
    vf = _verifiers()
    working = " ".join(between(completion, OPEN, CLOSE)) or None
    said = vf.types.AssistantMessage(content=final_answer(completion), reasoning_content=working)
    nodes = [vf.MessageNode(message=each) for each in asked(task.data)] + [vf.MessageNode(message=said, sampled=True)]
    for place, node in enumerate(nodes):
        node.parent = place - 1 if place else None
    row = vf.trace.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
    agent, state = vf.AgentInfo(config=vf.AgentConfig()), vf.state.state_cls(type(task))()
    trace = vf.Trace(task=row, agent=agent, state=state, nodes=nodes, ok=True)
    trace.stop("agent_completed")
    return trace
