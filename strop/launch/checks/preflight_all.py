"""Rehearsal of a run, before it has a folder: settings, model folder, prompts, named parts, rewards."""

from __future__ import annotations

from strop.capabilities import Keeps, inside
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.launch.checks.parts_agree import check_tools_shown
from strop.launch.checks.preflight import check
from strop.launch.checks.prompt_lengths import NotServed, leave_out_long, leave_out_measured
from strop.launch.checks.warnings import warnings_of
from strop.launch.running.asking import ask_parts
from strop.launch.running.probing import probe_rewards
from strop.models.loading.check_folder import check_context, check_model_folder
from strop.models.loading.model_names import model_folder
from strop.roles import Engine, Trainer
from strop.run import Run
from strop.training.trainers.torch import TorchTrainer


def rehearse(run: Run) -> tuple[list[NotServed], list[str]]:
    """Everything that is tried before a run starts: the tasks left out, and all warnings; else raises what stands in
    the way.
    """
    left_out = make_ready(run)
    lay_out_schedule(run)
    ask_parts(run)
    return left_out, [*warnings_of(run), *probe_rewards(run), *(f"{each}: they are left out" for each in left_out)]


def lay_out_schedule(run: Run) -> None:
    """A learning rate that falls reaches 0 with the last optimizer step of the run."""
    if run.warmup is not None:
        lay_out_schedule(run.warmup)
    falling = [each for each in inside(run.trainer, TorchTrainer) if each.schedule != "constant"]
    if falling and any(each.makes_several for each in inside(run.trainer, Trainer)):
        raise ConfigurationError(
            f"{type(run.trainer).__name__} takes more optimizer steps than a run can count: use schedule=constant"
        )
    for trainer in falling:
        trainer.decay_steps = trainer.decay_steps or run.steps * run.minibatches * run.epochs


def first_prompt(run: Run) -> str:
    """What the model reads of the first task, special tokens and all."""
    template, task = Template.load(model_folder(run.model)), run.envs[0].task(0)
    tokens = template.opening(task.messages, task.tools)
    return f"the model reads of the first task, {len(tokens)} tokens:\n{template.decode(tokens)}"


def make_ready(run: Run) -> list[NotServed]:
    """Raise what stands in the way of a run; returns which tasks of tables are left out."""
    check(run)
    if run.warmup is not None:
        make_ready(run.warmup)
    return fit(run)


def fit(run: Run) -> list[NotServed]:
    """Hold a run against its model: the template can be used, the context is there, and prompts leave room in it."""
    folder = model_folder(run.model)
    check_model_folder(folder)
    template = Template.load(folder)
    check_context(folder, run.context)
    check_tools_shown(run, template)
    _refuse_blind(run)
    return [*leave_out_long(run, template), *leave_out_measured(run)]


def _refuse_blind(run: Run) -> None:
    """Pictures of tables need an engine and a trainer that read them."""
    tasks = (table.task(0) for table in inside(run, Table) if table.num_tasks())
    if not any(message.images for task in tasks for message in task.messages):
        return
    is_scripted = not all(each.has_weights for each in inside(run.engine, Engine))
    for kind, part in (("engine", run.engine), ("trainer", run.trainer)):
        if not is_scripted and not inside(part, Keeps):
            raise ConfigurationError(
                f"tasks hold pictures, which the {kind} {type(part).__name__} does not read: use TorchEngine and "
                "TorchTrainer"
            )
