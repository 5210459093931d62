"""Checks that parts of a run agree: engine and trainer on matmul precision, rewards and their readers on success."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from strop.capabilities import Multiplies, inside, parts
from strop.roles import Engine, Reward, Trainer
from strop.run import Run


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
