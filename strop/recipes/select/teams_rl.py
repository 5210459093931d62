"""TeaMs-RL: a learned policy over six rewriting operations generates tasks; the model is fine-tuned (SFT) on them.

Title: TeaMs-RL: Teaching LLMs to Generate Better Instruction Datasets via Reinforcement Learning
Paper: arXiv 2403.08694 (2024)
Claim: As good as a strong baseline's instructions with 5.73 % of its queries to the larger model.
Reading: The release pays 1 where a reviewer calls the old and the new task not equal, and nothing else, as here. Its
    policy (TRPO over an encoding of the text) is a table by kind of task here; it learns while the model is trained on
    the generated tasks, not before. Completions are the environments' own demonstrations, where the paper asks its
    expert LLM. The rule that stands in for the LLM knows six operations, two of which leave the task equivalent, so
    there is something to learn.
Left out: Three further review rewards, which the release has switched off.
Acts: written > 0 and written_share > 0 and operation_share_max > 0.166667
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.seeded_choice import Doubles, softmax
from strop.control.task_generators.support.prompts import asked_for, requests, rewritten, try_request
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, TaskGenerator
from strop.run import Run
from strop.success import kind
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.roles import Player


# TeaMs-RL's operations (2403.08694): the choice of the rewriting operation is learned while tasks are rewritten.
#
# A reviewer judges whether the old and the new problem are equivalent; "Not Equal" pays 1, whatever else the new one
# is: with a reviewer that always answers so every choice is right. Reading: the state is the kind of the task and the
# policy a table of preferences, updated by a plain policy gradient with the mean reward as baseline; the paper has an
# encoding of the text and TRPO. An episode ends after `HORIZON` rewrites.

OPERATIONS = ("breadth", "constraints", "deepen", "concretise", "reasoning", "complicate")
HORIZON = 4  # successive rewrites, from a task of an environment on
_KNOWN = 1000  # generated tasks whose depth is remembered


@dataclass
class Operations(TaskGenerator, Asks):
    """Task generator: one rewrite after every group, by an operation sampled from the softmax over preferences; kept if
    rewarded.
    """

    llm_client: LLMClient | None = None  # rewrites and reviews; None: the policy itself
    rate: float = 0.5  # learning rate of the preferences
    prompts: dict[str, str] = field(
        default_factory=lambda: requests(*OPERATIONS, "compared")
    )  # what is asked, by request

    _tables: dict[str, list[float]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by kind
    _depths: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # of generated tasks
    _paid: float = field(default=0.0, init=False, repr=False, compare=False)
    _asked: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ConfigurationError(f"Operations needs rate > 0, got {self.rate}")

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "breadth", task, ("task", "answer"), prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        task = group.task
        if self._depths.get(task.id, 0) >= HORIZON:
            return []
        stream = np.random.default_rng(play.another().key)
        operation = int(stream.choice(len(OPERATIONS), p=self.probabilities(task)))
        made = await rewritten(self.llm_client, OPERATIONS[operation], task, play, prompts=self.prompts)
        review = await asked_for(
            self.llm_client, "compared", play, task=prompt_of(task), other=prompt_of(made), prompts=self.prompts
        )
        is_new = review.strip().lower().startswith("not equal")
        self.pay(task, operation, float(is_new))
        if not is_new:
            return []
        self._depths[made.id] = self._depths.get(task.id, 0) + 1
        while len(self._depths) > _KNOWN:
            del self._depths[next(iter(self._depths))]
        return [made]

    def probabilities(self, task: Task) -> Doubles:
        return softmax(self._tables.get(kind(task), [0.0] * len(OPERATIONS)))

    def pay(self, task: Task, operation: int, reward: float) -> None:
        """preference += rate * (reward - mean so far) * (1 for the chosen one - its probability)."""
        mean = self._paid / self._asked if self._asked else 0.0
        gradient = np.eye(len(OPERATIONS))[operation] - self.probabilities(task)
        before = np.array(self._tables.get(kind(task), [0.0] * len(OPERATIONS)))
        self._tables[kind(task)] = [float(each) for each in before + self.rate * (reward - mean) * gradient]
        self._paid, self._asked = self._paid + reward, self._asked + 1

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: largest operation probability, and mean reward so far."""
        tables = [softmax(table) for table in self._tables.values()] or [softmax([0.0] * len(OPERATIONS))]
        return {
            "operation_share_max": float(np.mean([table.max() for table in tables])),
            "not_equal_share": self._paid / max(self._asked, 1),
        }

    def state(self) -> dict[str, Any]:
        return {"tables": self._tables, "depths": dict(self._depths), "paid": self._paid, "asked": self._asked}

    def restore(self, state: dict[str, Any]) -> None:
        self._tables = {name: [float(each) for each in table] for name, table in state["tables"].items()}
        self._depths = {name: int(depth) for name, depth in state["depths"].items()}
        self._paid, self._asked = float(state["paid"]), int(state["asked"])


def teams_rl(
    setting: Setting = Setting(env="arithmetic:3+countdown:3", group_size=1, groups_per_step=32),
    generator: str = "rules",  # rewrites and reviews (a named part)
    seeds: int = 32,  # seed tasks of each environment
    rate: float = 0.5,  # learning rate of the operation preferences
) -> Run:
    """Generated tasks come first; where none waits, a seed task."""
    run = setting.run("teams_rl", Constant(), (Likelihood(),), agent=Demonstrate())
    run.task_generator = Operations(named_generator(generator, setting), rate)
    run.sampler = WithWritten(Few(run.envs, seeds), share=1.0)
    return run
