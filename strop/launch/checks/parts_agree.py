"""Checks that parts of a run agree: engine and trainer on matmul precision, rewards and their readers on success, the
model and its tasks on tools.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from strop.capabilities import Multiplies, inside, parts
from strop.environments.needs import first_tasks
from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.models.loading.model_names import BUNDLED, model_folder
from strop.roles import Engine, Reward, Trainer
from strop.run import Run
from strop.types import Origin


def precision_problems(run: Run) -> list[str]:
    """What is sampled and what is trained are rounded alike before they are multiplied, or not at all."""
    engines = [each for each in inside(run.engine, Engine) if each.has_weights and len(inside(each, Engine)) == 1]
    trainers = [each for each in inside(run.trainer, Trainer) if len(inside(each, Trainer)) == 1]
    kinds = [sorted({_multiplied(each) for each in some}) for some in (engines, trainers)]
    if not engines or kinds[0] == kinds[1]:
        return []
    without = sorted({type(each).__name__ for each in (*engines, *trainers) if not isinstance(each, Multiplies)})
    return [
        f"matmul precision is {' and '.join(kinds[0])} in the engine and {' and '.join(kinds[1])} in the trainer: "
        "they would compute different logprobs; set engine.matmul_precision and trainer.matmul_precision alike"
        + (f" ({' and '.join(without)} can only multiply plain numbers)" if without else "")
    ]


def _multiplied(part: Engine | Trainer) -> str:
    return part.matmul_precision if isinstance(part, Multiplies) else "plain"


@runtime_checkable
class NeedsSuccess(Protocol):
    """Part that must know which rollouts are right."""

    @property
    def needs_success(self) -> bool: ...


def success_problems(run: Run) -> list[str]:
    """Parts that must know which rollouts are right, in a run whose rewards do not say."""
    needing = [part for _, part in parts(run) if isinstance(part, NeedsSuccess) and part.needs_success]
    asking = dict.fromkeys(type(part).__name__ for part in needing)
    if not asking or any(reward.grades for reward in inside(run.rewards, Reward)):
        return []
    return [
        f"{', '.join(asking)} must know which rollouts are right, and no reward says so: give the range of your "
        "reward's scores, from wrong to right, with reward_range=LOW,HIGH or below the function as NAME.low = LOW and "
        "NAME.high = HIGH; or bring tasks with answers"
    ]


# A model that is to call tools is shown them, or was taught them.


@runtime_checkable
class CallsTools(Protocol):
    """Part whose mechanism is about calls of tools, so that the model must know them."""

    calls_tools: ClassVar[bool]


def check_tools_shown(run: Run, template: Template) -> None:
    """Refuse a model that is shown no tools and was taught none: it would never call one."""
    asking = dict.fromkeys(type(part).__name__ for _, part in parts(run) if isinstance(part, CallsTools))
    is_taught = run.warmup is not None or run.agent.origin is Origin.TEACHER or run.model in BUNDLED
    if not asking or is_taught or _is_of_a_run(model_folder(run.model)):
        return
    for env in run.envs:
        task = next((each for each in first_tasks(env)[:1] if each.tools), None)
        if task is None or any(tool.name in message.content for tool in task.tools for message in task.messages):
            continue
        if list(template.opening(task.messages, task.tools)) == list(template.opening(task.messages)):
            raise ConfigurationError(
                f"{', '.join(asking)}: the model is to call {', '.join(tool.name for tool in task.tools)}, and the "
                f"chat template of {run.model} shows no tools: take a model whose template shows them, name them in "
                "your prompts, or teach their calls first (warmup_steps=20, with demonstrations)"
            )


def _is_of_a_run(folder: Path) -> bool:
    """Whether a model is a checkpoint of a run, which may have taught it."""
    return any((parent / "recipe.py").is_file() for parent in folder.resolve().parents[1:2])
