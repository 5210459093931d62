"""What every recipe has in common: the model, the environments, the sizes. The algorithm is what a recipe adds to
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.code_execution import Isolation
from strop.environments.data.answer_extraction import Rule
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.evaluation import Evaluation
from strop.filter.rewards.from_environment import Checked, Earned
from strop.generate.engines.select_engine import EngineName, engine_on
from strop.recipes.environments import parse_envs
from strop.recipes.model_paths import chosen_model
from strop.recipes.user_rewards import own_rewards
from strop.roles import Advantage, Loss, Reward
from strop.run import Run
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Sampling


@dataclass(frozen=True)
class Setting:
    """Fields that any recipe takes."""

    env: str = "arithmetic:4"  # name:level, several joined by +; FILE.jsonl, dataset:FOLDER_OR_ID
    model: str = "pocket"  # a Hugging Face folder or id, a run, or the bundled model
    seed: int = 0  # of tasks, sampling and whatever else is left to probability
    steps: int = 100  # each trains on one batch and makes one version of the weights
    groups_per_step: int = 8  # tasks of one step
    group_size: int = 8  # rollouts per group
    learning_rate: float = 3e-5  # of Adam
    max_tokens: int = 64  # of one completion
    temperature: float = 1.0  # of sampling
    answer: Rule = "auto"  # how it is found in a completion to a task of a file: text, number, boxed, hashes, math
    reward: str = ""  # FILE.py:FUNCTION, several joined by +; `env` among them is the environment's own judgement
    columns: tuple[str, str] = ("", "")  # of a table: what is asked and the answer; empty: the usual names
    splits: tuple[str, str] = ("train", "test")  # of a dataset: trained on and measured on
    isolation: Isolation = "sandbox"  # of programs that the model writes; process: none, they run with your rights
    lag: int = 0  # weight versions that generation may run ahead; 0: synchronous
    heldout_tasks: int = 128  # per environment, to measure on
    heldout_every: int = 20  # steps between two measurements; 0: before and after only
    checkpoint_every: int = 20  # steps between two checkpoints
    threads: int = 1  # of the processor; bits depend on it
    device: str = "cpu"  # or cuda
    engine: EngineName = "own"  # or vllm, for families without a fast path and models that need several GPUs
    ranks: int = 1  # processes that train together, on CPUs or on a GPU each

    def run(self, recipe: str, advantage: Advantage, losses: tuple[Loss, ...], **parts: Any) -> Run:
        """A run in this setting; `parts` are further fields of `Run`."""
        table = Table("", self.answer, *self.columns, *self.splits)
        envs = parse_envs(self.env, self.seed, table, self.isolation)
        self._check_tables([env for env in envs if isinstance(env, Table)])
        judged: tuple[Reward, ...] = (Earned(),) if all(env.pays for env in envs) else (Checked(envs),)
        rewards = own_rewards(self.reward, judged) if self.reward else judged
        is_answered = all(env.is_answered for env in envs if isinstance(env, Table))
        plain: dict[str, Any] = {
            "rewards": rewards,
            "budget": Fixed(self.group_size),
            "admission": BoundedLag(self.lag),
            "sampling": Sampling(temperature=self.temperature, max_tokens=self.max_tokens),
            "engine": engine_on(self.device, self.engine),
            "trainer": TorchTrainer(learning_rate=self.learning_rate, device=self.device),
        }
        if "engine" in parts and self.engine != "own":
            raise ConfigurationError(f"{recipe} has an engine of its own, so engine={self.engine} does nothing")
        chosen = plain | parts
        if self.ranks != 1:
            chosen["trainer"] = Ranks(chosen["trainer"], self.ranks)
        return Run(
            envs=envs,
            sampler=Uniform(envs),
            advantage=advantage,
            losses=losses,
            recipe=recipe,
            model=chosen_model(self.model),
            seed=self.seed,
            steps=self.steps,
            groups_per_step=self.groups_per_step,
            evaluation=Evaluation(self.heldout_every, self.heldout_tasks, rewards=judged if is_answered else rewards),
            checkpoint_every=self.checkpoint_every,
            threads=self.threads,
            **chosen,
        )

    def _check_tables(self, tables: Sequence[Table]) -> None:
        """Whether what is said about files is about any, and whether completions to their tasks are judged by
        something.
        """
        if not tables and (self.answer != "auto" or self.columns != ("", "")):
            said = f"answer={self.answer}" if self.answer != "auto" else f"columns={','.join(self.columns)}"
            raise ConfigurationError(f"{said} is for tasks of files; {self.env} judges completions itself")
        for table in tables:
            if not self.reward and not table.is_answered:
                raise ConfigurationError(
                    f"nothing judges completions to {table.path} ({table.chosen[1]}): name the columns "
                    "(columns=PROMPT,ANSWER), or give a reward: reward=FILE.py:FUNCTION"
                )
