"""All checks of a run before it has a folder, called once."""

from __future__ import annotations

from strop.backends import Engine, Trainer
from strop.capabilities import Multiplies, inside
from strop.generate.templates.chat_template import Template
from strop.launch.checks.preflight import check
from strop.launch.checks.prompt_lengths import LeftOut, leave_out_long
from strop.models.loading.check_folder import check_context, check_model_folder
from strop.models.loading.model_names import model_folder
from strop.run import Run

# Whether what is sampled and what is trained are multiplied alike.


def problems(run: Run) -> list[str]:
    """What is sampled and what is trained are rounded alike before they are multiplied, or not at all."""
    engines = [each for each in inside(run.engine, Engine) if each.has_weights and len(inside(each, Engine)) == 1]
    trainers = [each for each in inside(run.trainer, Trainer) if len(inside(each, Trainer)) == 1]
    kinds = [sorted({_multiplied(each) for each in some}) for some in (engines, trainers)]
    if not engines or kinds[0] == kinds[1]:
        return []
    without = sorted({type(each).__name__ for each in (*engines, *trainers) if not isinstance(each, Multiplies)})
    return [
        f"the engine's products are {' and '.join(kinds[0])}, the trainer's {' and '.join(kinds[1])}: what is trained "
        "would not be what was sampled; set engine.products and trainer.products alike"
        + (f" ({' and '.join(without)} can only multiply plain numbers)" if without else "")
    ]


def _multiplied(part: Engine | Trainer) -> str:
    return part.products if isinstance(part, Multiplies) else "plain"


# Everything that can be refused before a run has a folder: its settings, its model folder, its prompts.


def make_ready(run: Run) -> list[LeftOut]:
    """Raise what stands in the way of a run; returns which prompts are left out because they are too long."""
    check(run)
    if run.warmup is not None:
        make_ready(run.warmup)
    return fit(run)


def fit(run: Run) -> list[LeftOut]:
    """Hold a run against its model: the template can be used, the context is there, and prompts leave room in it."""
    folder = model_folder(run.model)
    check_model_folder(folder)
    template = Template.load(folder)
    check_context(folder, run.context)
    return leave_out_long(run, template)
