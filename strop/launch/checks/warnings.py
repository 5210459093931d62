"""Warnings about a run that works: biased settings, settings without effect, weak evidence; each is given once."""

from __future__ import annotations

from collections.abc import Callable

from strop.capabilities import CountsTokens, inside, parts
from strop.control.samplers.support.task_pool import Pool
from strop.environments.code_execution import Trials
from strop.environments.data.table import Table
from strop.environments.tools.python_notebook import Cells
from strop.filter.scoring import is_inline
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.without_model import OwnFunction
from strop.launch.checks.gpu_memory_plan import said
from strop.models.layers.block import why_slow
from strop.models.loading.model_names import BUNDLED, model_folder
from strop.models.tokens.mask_token import fills_masks
from strop.roles import Advantage, LLMClient, Loss, Reward, Trainer, View
from strop.run import Run
from strop.sandbox.kernel_isolation.confine import weakness
from strop.training.machine.lora import RATE
from strop.training.trainers.torch import TorchTrainer
from strop.training.views.diffusion_views import Corrupted


def warnings_of(run: Run) -> list[str]:
    """Every warning, as a sentence."""
    return [warning for question in _QUESTIONS for warning in question(run)]


def _off_policy(run: Run) -> list[str]:
    """A plain policy gradient is unbiased for tokens of the current weights and no others."""
    names = [type(loss).__name__ for loss in inside(run.losses, Loss) if loss.is_on_policy]
    if not names or run.correction is not None:
        return []
    lag, parts = run.admission.lag, run.minibatches
    remedy = f"{', '.join(names)} has no ratio to weigh that: add a correction, for example Truncated()"
    warnings = [f"lag={lag} trains tokens of up to {lag} versions ago, and {remedy}"] if lag > 0 else []
    if parts > 1:
        warnings.append(f"minibatches={parts}: all but the first see tokens of older weights, and {remedy}")
    return warnings


def _without_distance(run: Run) -> list[str]:
    """A ratio that is always 1 does nothing: clips, gates and weights made of it never act."""
    names = [type(loss).__name__ for loss in inside(run.losses, Loss) if loss.needs_distance]
    moves = run.admission.lag > 0 or run.minibatches * run.epochs > 1
    if not names or moves or any(each.makes_several for each in inside(run.trainer, Trainer)):
        return []
    return [
        f"{', '.join(names)} acts by the ratio to the policy that sampled, which is always 1 at lag 0 with one "
        "optimizer step per batch: a plain policy gradient under another name; set minibatches=4, epochs=2 or lag=1"
    ]


def _truncated(run: Run) -> list[str]:
    """A ratio to a truncated distribution is biased; where it is a correction that is refused."""
    names = [type(loss).__name__ for loss in inside(run.losses, Loss) if loss.contains_ratio]
    if not run.sampling.is_truncated or not names:
        return []
    return [
        f"top_p={run.sampling.top_p:g} top_k={run.sampling.top_k} cut the distribution that is sampled from, and "
        f"{', '.join(names)} takes its ratio to the whole one: it begins below 1"
    ]


def _untaught(run: Run) -> list[str]:
    """A model that writes from left to right fills masks with noise until somebody teaches it."""
    views = inside(run.trainer, View)
    teaches = run.warmup is not None or any(isinstance(view, Corrupted) for view in views)
    if not views or teaches or fills_masks(model_folder(run.model)):
        return []
    return [
        f"nothing says that the model {run.model} fills masks (mask_token_id in config.json), and nothing teaches it "
        "first: set shown=200, or take a model that does"
    ]


def _heldout(run: Run) -> list[str]:
    measured = run.evaluation.measured(run.envs)
    sizes = {env.name: size for env in measured if (size := env.num_tasks(heldout=True)) is not None}
    return [
        f"{name} has {size} held-out tasks: accuracy is measured on those and not on {run.evaluation.tasks}"
        for name, size in sizes.items()
        if size < run.evaluation.tasks
    ]


def _idle_parts(run: Run) -> list[str]:
    """What is set and has no effect."""
    warnings = [f"{type(loss).__name__} has weight 0 and does nothing" for loss in run.losses if loss.weight == 0]
    if run.values is not None and not any(each.needs_values for each in inside(run.advantage, Advantage)):
        warnings.append(f"{type(run.advantage).__name__} does not ask {type(run.values).__name__}: values do nothing")
    if run.reward_workers > 1 and all(reward.is_inline for reward in inside(run.rewards, Reward)):
        warnings.append(f"reward_workers={run.reward_workers}, and every reward is computed inline: they do nothing")
    warmup = max(each.warmup_steps for each in inside(run.trainer, Trainer))
    steps = run.steps * run.minibatches * run.epochs
    if warmup > steps > 0:
        warnings.append(f"warmup_steps={warmup} of {steps} optimizer steps: the learning rate is never reached")
    return warnings


def _adapters(run: Run) -> list[str]:
    """A learning rate is that of whole weights, so that a recipe has one for both."""
    trainers = [each for each in inside(run.trainer, TorchTrainer) if each.lora]
    return [
        f"adapters of rank {rank} learn with {RATE} times the learning rate of whole weights: {RATE * rate:g} in place "
        f"of {rate:g}; learning_rate={rate / RATE:g} makes it {rate:g}"
        for rank, rate in dict.fromkeys((each.lora, each.learning_rate) for each in trainers)
    ]


def _idle_bytes(run: Run) -> list[str]:
    """Adapters are few, and their moments are float32 whatever is asked."""
    return [
        f"bytes_per_weight={each.bytes_per_weight} (optimizer=adamw8bit) is for whole weights, and adapters learn: it "
        "does nothing"
        for each in inside(run.trainer, TorchTrainer)
        if each.lora and each.bytes_per_weight
    ]


def _repeated_prompts(run: Run) -> list[str]:
    """Rows that ask the same: groups of one prompt are not compared with each other."""
    found = [(table, table.prompts) for table in dict.fromkeys(inside(run, Table))]
    return [
        f"{rows} rows of {table.name} hold {different} different prompts: copies come up as often as they stand there"
        for table, (rows, different) in found
        if different < rows
    ]


def _slow_path(run: Run) -> list[str]:
    """A model that strop has no description of runs through transformers."""
    if run.model in BUNDLED:
        return []
    folder = model_folder(run.model)
    reason = why_slow(folder) if (folder / "config.json").is_file() else ""
    return [f"{run.model} takes the slow path of generation and training: {reason}"] if reason else []


def _uncounted(run: Run) -> list[str]:
    """What is sampled in a worker process is not heard of here."""
    rewards = [reward for reward in run.rewards if not is_inline(reward)]
    return [
        f"{type(reward).__name__} asks {type(llm_client).__name__} in a worker process, where tokens that it samples "
        "and the answers it fails to give are counted by nobody: set is_inline = True where it only waits for answers"
        for reward in rewards
        for llm_client in inside(reward, LLMClient)
        if isinstance(llm_client, CountsTokens | Endpoint | OwnFunction)
    ]


def _part_of_a_table(run: Run) -> list[str]:
    """A sampler whose pool leaves rows out: nobody who brings a table expects that."""
    pools = [(part, pool) for _, part in parts(run) for pool in vars(part).values() if isinstance(pool, Pool)]
    return [
        f"{type(part).__name__} samples the first {pool.size} of {known} tasks of {env.name} and no others: raise the "
        "recipe's field for that (tasks, pool or seeds)"
        for part, pool in pools
        for env in pool.envs
        if (known := env.num_tasks()) is not None and pool.size < known
    ]


def _weaker_isolation(run: Run) -> list[str]:
    """Programs run with the weaker isolation, which opens no files."""
    parts: list[Trials | Cells] = [*inside(run, Trials), *inside(run, Cells)]
    told = weakness() if any(part.isolation == "sandbox" for part in parts) else ""
    return [told] if told else []


_QUESTIONS: tuple[Callable[[Run], list[str]], ...] = (
    _off_policy,
    _without_distance,
    _truncated,
    _untaught,
    _heldout,
    _idle_parts,
    _uncounted,
    _adapters,
    _idle_bytes,
    _repeated_prompts,
    said,
    _slow_path,
    _weaker_isolation,
    _part_of_a_table,
)
