"""Settings that all recipes share: model, environments and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from strop.capabilities import inside
from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.code_execution import Isolation
from strop.environments.data.answer_extraction import Rule
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation
from strop.generate.engines.select_engine import EngineName, engine_on
from strop.models.loading.model_names import BUNDLED
from strop.recipes.environment_specs import categories, is_answered, judged_by, measured, rules_of
from strop.recipes.environments import is_bundled_env, parse_envs
from strop.recipes.model_paths import chosen_model, text_of, with_template
from strop.recipes.user_rewards import own_rewards, with_success
from strop.roles import Advantage, Environment, Loss
from strop.run import Run
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Sampling

_IN_8_BITS = 6  # bytes for each weight, `trainer.bytes_per_weight`
_ROOM = 1000  # characters of help before a task, for models of 512 tokens of context and more


@dataclass(frozen=True)
class Setting:
    """Fields that every recipe takes."""

    env: str = "arithmetic:4"  # name:level, FILE.jsonl, FILE.py:NAME or dataset:FOLDER_OR_ID; several joined by +
    model: str = "pocket"  # a Hugging Face folder or id, a run, or the bundled model
    seed: int = 0  # of tasks, sampling and all other random choices
    steps: int = 100  # training batches; each makes one weight version
    groups_per_step: int = 8  # tasks per step
    group_size: int = 8  # rollouts per group
    learning_rate: float = 3e-5  # of Adam
    optimizer: Literal["adamw", "adamw8bit"] = "adamw"  # adamw8bit: moments in 8 bits, 6 bytes for each weight
    schedule: Literal["constant", "linear", "cosine"] = "constant"  # of the learning rate, to 0 at the last step
    max_tokens: int = 64  # of one completion
    temperature: float = 1.0  # of sampling
    answer: Rule = "auto"  # answer extraction for tasks of a file: text, number, boxed, hashes, math
    system: str = ""  # system prompt for tasks of a table: the text, or a file that holds it
    chat_template: str = ""  # for a model without one: chatml, plain, or a Jinja file; empty: the model's own
    template_arguments: tuple[str, ...] = ()  # NAME=VALUE for the chat template: enable_thinking=false
    stop: tuple[str, ...] = ()  # texts that end a completion; \\n is a line break
    reward: str = ""  # FILE.py:FUNCTION, several joined by + (0.5*FILE.py:FUNCTION); `env`: the environment's own
    columns: tuple[str, str] = ("", "")  # prompt and answer columns of a table; empty: the usual names
    splits: tuple[str, str] = ("train", "test")  # training and held-out split of a dataset
    isolation: Isolation = "sandbox"  # of programs written by the model; process: no sandbox, they run with your rights
    lag: int = 0  # weight versions that generation may run ahead; 0: synchronous
    heldout_tasks: int = 128  # held-out tasks per environment
    heldout_every: int = 20  # steps between held-out evaluations; 0: only before and after the run
    checkpoint_every: int = 20  # steps between checkpoints
    threads: int = 1  # CPU threads; bitwise results depend on it
    device: str = "cpu"  # cpu or cuda
    engine: EngineName = "own"  # own, or vllm for families without a fast path and models that need several GPUs
    reward_range: tuple[float, ...] = ()  # scores of a wrong and of a right rollout, for your own reward: LOW,HIGH
    success: str = ""  # the reward that says which rollouts are right, by the name of its function
    ranks: int = 1  # trainer processes, on CPUs or on one GPU each

    @property
    def is_bundled(self) -> bool:
        """Whether model and environments are the bundled ones."""
        return self.model in BUNDLED and all(is_bundled_env(name) for name in self.env.split("+"))

    def text_room(self, characters: int, bundled: int = 200) -> int:
        """Characters of help before a task: these, or at 0 what the bundled model's context bears, more for others."""
        return characters or (bundled if self.model in BUNDLED else _ROOM)

    def run(self, recipe: str, advantage: Advantage, losses: tuple[Loss, ...], **parts: Any) -> Run:
        """A run in this setting; `parts` are further fields of `Run`, and `by_category` cuts tables into categories."""
        table = Table("", self.answer, *self.columns, *self.splits, system=text_of(self.system))
        envs = parse_envs(self.env, self.seed, table, self.isolation)
        envs = categories(envs, recipe) if parts.pop("by_category", False) else envs
        self._check_tables(envs)
        judged, has_answers = (judged_by(envs),), is_answered(envs)
        own = own_rewards(self.reward, judged, rules_of(envs)) if self.reward else judged
        rewards = with_success(own, judged, has_answers, self.reward_range, self.success)
        measuring = judged if has_answers else rewards if self.reward else (measured(envs),)
        heldout_tasks = self.heldout_tasks if has_answers or self.reward else 0
        plain: dict[str, Any] = {
            "rewards": rewards,
            "budget": Fixed(self.group_size),
            "admission": BoundedLag(self.lag),
            "sampling": Sampling(temperature=self.temperature, max_tokens=self.max_tokens, stop=self._stops),
            "engine": engine_on(self.device, self.engine),
            "trainer": TorchTrainer(learning_rate=self.learning_rate, device=self.device),
        }
        if "engine" in parts and self.engine != "own":
            raise ConfigurationError(f"{recipe} has an engine of its own, so engine={self.engine} does nothing")
        chosen = plain | parts
        for trainer in inside(chosen["trainer"], TorchTrainer):
            trainer.schedule = self.schedule
            trainer.bytes_per_weight = _IN_8_BITS if self.optimizer == "adamw8bit" else trainer.bytes_per_weight
        if self.ranks != 1:
            chosen["trainer"] = Ranks(chosen["trainer"], self.ranks)
        return Run(
            envs=envs,
            sampler=Uniform(envs),
            advantage=advantage,
            losses=losses,
            recipe=recipe,
            model=with_template(chosen_model(self.model), self.chat_template, self.template_arguments),
            seed=self.seed,
            steps=self.steps,
            groups_per_step=self.groups_per_step,
            evaluation=Evaluation(self.heldout_every, heldout_tasks, rewards=measuring),
            checkpoint_every=self.checkpoint_every,
            threads=self.threads,
            **chosen,
        )

    @property
    def _stops(self) -> tuple[str, ...]:
        return tuple(each.replace("\\n", "\n").replace("\\t", "\t") for each in self.stop)

    def _check_tables(self, envs: Sequence[Environment]) -> None:
        """Refuse options for task files without a task file."""
        tables = [env for env in envs if isinstance(env, Table)]
        if self.system and len(tables) < len(envs):
            raise ConfigurationError(f"system= applies to tables of tasks; {self.env} writes its own messages")
        if not tables and (self.answer != "auto" or self.columns != ("", "")):
            option = f"answer={self.answer}" if self.answer != "auto" else f"columns={','.join(self.columns)}"
            raise ConfigurationError(f"{option} applies to task files only; {self.env} scores completions itself")
