"""SeRL: the policy generates tasks from a few seeds; majority-vote reward; REINFORCE++ with KL in the reward.

Title: SeRL: Self-Play Reinforcement Learning for Large Language Models with Limited Data
Paper: arXiv 2505.20347 (2025)
Claim: On par with training on good data with verified answers, from few tasks and no labels but its own votes.
Reading: As released: 16 rollouts, tasks of 4 to 150 words that start with a letter and have a ROUGE-L of at most 0.7
    with any known one, self-rewards between 0.2 and 0.8 on average, REINFORCE++ with the KL penalty inside the return.
    The release generates 2000 tasks per iteration; here one follows from every group, and they are most of all batches.
    Ties and missing answers earn nothing (`mm_upt`). The environment's reward is logged with weight 0; it knows no
    answers to generated tasks. A rule stands in for the LLM with the bundled environments: generator=itself is the
    paper's.
Left out: Rewards that expire after a few steps.
Acts: written > 0 and written_share > 0 and kept_share < 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.prompts import ask_llm, requests, try_request
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.gates.reward_band import RewardBand
from strop.filter.rewards.majority_vote import Majority
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child
from strop.text.overlap import rouge_l
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.roles import Player


# SeRL's instructions (2505.20347): the policy generates tasks similar to a few examples; near copies are refused.
#
# They have no known answers: the reward is agreement with the majority of their rollouts (`rewards/majority_vote.py`).

_SHOWN = 4  # example tasks in one request
_LONGEST = 150  # words of a task
_KNOWN = 512  # tasks remembered, those sampled or generated last
_BANNED = ("image", "images", "graph", "graphs", "picture", "pictures", "file", "files", "map", "maps", "draw", "plot")


@dataclass
class SelfInstruct(TaskGenerator, Asks):
    """Task generator: one task after every group, without an answer, from that group's task and other examples.

    It is kept if it has `fewest` to 150 words, starts with a letter, mentions nothing that a text cannot contain, and
    has a ROUGE-L of at most `overlap` with every remembered task.
    """

    llm_client: LLMClient | None = None  # generates tasks; None: the policy itself
    fewest: int = 4  # words of a task
    overlap: float = 0.7  # largest ROUGE-L with a known task
    prompts: dict[str, str] = field(default_factory=lambda: requests("similar"))  # what is asked, by request

    _texts: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _written: int = field(default=0, init=False, repr=False, compare=False)
    _alike: int = field(default=0, init=False, repr=False, compare=False)  # refused for their overlap alone

    def __post_init__(self) -> None:
        if not 0 < self.fewest <= _LONGEST or not 0 <= self.overlap <= 1:
            raise ConfigurationError(
                f"SelfInstruct needs 0 < fewest <= {_LONGEST} and 0 <= overlap <= 1, got {self.fewest}, {self.overlap}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "similar", task, prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        asked, others = prompt_of(group.task), list(self._texts)
        stream = np.random.default_rng(play.another().key)
        shown = [others[place] for place in stream.permutation(len(others))[: _SHOWN - 1]]
        answer = await ask_llm(
            self.llm_client, "similar", play, task=asked, other="\n".join(shown), prompts=self.prompts
        )
        text = answer.get("task", "")
        self._written += 1
        if not self.is_fit(text):
            return []
        if any(rouge_l(text, other) > self.overlap for other in (*self._texts, asked)):
            self._alike += 1
            return []
        self._remember(text)
        return [child(group.task, text, "")]

    def is_fit(self, text: str) -> bool:
        """Whether a text passes the filters other than overlap."""
        words = text.lower().split()
        is_plain = not any(word.strip(".,;:!?") in _BANNED for word in words)
        return self.fewest <= len(words) <= _LONGEST and text[:1].isalpha() and is_plain

    def observe(self, group: Group) -> None:
        self._remember(prompt_of(group.task))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: share of generated tasks so far that were refused for their overlap."""
        return {"alike_share": self._alike / max(self._written, 1)}

    def _remember(self, text: str) -> None:
        self._texts.pop(text, None)
        self._texts[text] = None
        while len(self._texts) > _KNOWN:
            del self._texts[next(iter(self._texts))]

    def state(self) -> dict[str, Any]:
        return {"texts": list(self._texts), "written": self._written, "alike": self._alike}

    def restore(self, state: dict[str, Any]) -> None:
        self._texts = dict.fromkeys(state["texts"])
        self._written, self._alike = int(state["written"]), int(state["alike"])


def serl(
    setting: Setting = Setting(env="countdown:3", group_size=16),
    generator: str = "rules",  # generates tasks (a named part)
    seeds: int = 100,  # seed tasks of each environment; the paper has 500
    fewest: int = 4,  # words of a task
    overlap: float = 0.7,  # largest ROUGE-L of a new task with a known one
    low: float = 0.2,  # least mean self-reward of a group that is trained on
    high: float = 0.8,  # largest; above, the policy already agrees with itself
    kl: float = 1e-4,  # KL penalty to the reference, inside the return
) -> Run:
    """No labels: seeds provide the wording, the majority vote the reward."""
    run = setting.run("serl", TokenReturns(kl), (Clip(0.2, 0.2),), gates=(RewardBand(low, high),))
    truth = measured(run.envs)
    run.rewards = (Majority(run.envs), truth)
    run.task_generator = SelfInstruct(named_generator(generator, setting), fewest, overlap)
    run.sampler = WithWritten(Few(run.envs, seeds), share=0.8)
    return run
