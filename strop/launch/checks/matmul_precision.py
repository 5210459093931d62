"""Check that engine and trainer use the same number format in matrix products."""

from __future__ import annotations

from strop.capabilities import Multiplies, inside
from strop.roles import Engine, Trainer
from strop.run import Run


def problems(run: Run) -> list[str]:
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
