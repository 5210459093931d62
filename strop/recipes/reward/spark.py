"""SPARK: policy and judge are one model; GRPO also on questions and reflections recycled from its rollouts.

Title: SPARK: Synergistic Policy And Reward Co-Evolving Framework
Paper: arXiv 2509.22624 (2025)
Claim: SPARK-VL-7B gains 9.7 % on 7 reasoning, 12.1 % on 2 reward and 1.5 % on 8 general benchmarks.
Reading: As released: 8 rollouts, a KL penalty of 0.001, from each group one question about answers and one reflection,
    at most 32 of each after 64 tasks; here 4 of each after 8. They are queued and are half of all sampled tasks as long
    as any is queued, checked like any other task and trained with the same loss. Held-out accuracy is measured on all
    three kinds. The bundled model was never asked to judge, so a short supervised warm-up comes first.
Left out: Many wordings of each question, and images.
Acts: written_share > 0 and judged_share > 0 with warmup_steps=4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.environments.data.heldout_split import prompt_of
from strop.environments.data.lookup import env_of
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.judging.easier_question import asked
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.verdict_questions import Judged
from strop.errors import ConfigurationError
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, is_written
from strop.success import is_right, success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.roles import Player


# SPARK's recycled rollouts (2509.22624): answers become questions to judge, wrong completions become reflections.
#
# Each group gives one question about answers: whether one answer is right, or, for a mixed group, also which of two is
# right, in random order. A reflection shows a wrong rollout and asks the task again. Questions show answers without
# their chain of thought; completions without an answer are not used, and generated tasks are not recycled again.

_VERSIONS = 16  # weight versions whose counts are kept


@dataclass
class Recycled(TaskGenerator):
    """At most `judged` questions about answers and `reflected` reflections per weight version.

    The first half of the reflections shows the whole wrong completion, the rest its answer alone.
    """

    envs: tuple[Environment, ...]  # whose rollouts are used
    judged: int = 32  # questions about answers per version
    reflected: int = 32  # reflections per version
    pointwise: float = 0.3  # probability that a mixed group's question is about one answer, not two
    _counts: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by version

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.judged < 0 or self.reflected < 0 or not 0 <= self.pointwise <= 1:
            found = f"got {self.judged}, {self.reflected} and {self.pointwise}"
            raise ConfigurationError(f"Recycled needs judged >= 0, reflected >= 0 and 0 <= pointwise <= 1, {found}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if is_written(group.task) or all(env.name != group.task.source for env in self.envs):
            return []
        rng = np.random.default_rng(play.another().key)
        counts = self._of(group.version)
        judged = self._question(group, rng) if counts[0] < self.judged else None
        reflected = self._reflection(group, rng, counts[1]) if counts[1] < self.reflected else None
        counts[0] += judged is not None
        counts[1] += reflected is not None
        return [task for task in (judged, reflected) if task is not None]

    def _of(self, version: int) -> list[int]:
        """Counts of the tasks generated at this version; those of old versions are dropped."""
        counts = self._counts.setdefault(version, [0, 0])
        while len(self._counts) > _VERSIONS:
            del self._counts[min(self._counts)]
        return counts

    def _question(self, group: Group, rng: np.random.Generator) -> Task | None:
        env = env_of(self.envs, group.task)
        sides = {"yes": _answers(env, group, True), "no": _answers(env, group, False)}
        present = [key for key, answers in sides.items() if answers]
        if not present:
            return None
        if len(present) == 2 and rng.random() >= self.pointwise:
            right, wrong = (_one(sides[key], rng) for key in present)
            is_first = bool(rng.integers(2))
            shown = f"a {right} b {wrong}" if is_first else f"a {wrong} b {right}"
            return _item(group.task, shown, "a" if is_first else "b", Choice(env, 2))
        key = present[int(rng.integers(len(present)))]
        return _item(group.task, f"is it {_one(sides[key], rng)}?", key, Judged(env))

    def _reflection(self, group: Group, rng: np.random.Generator, count: int) -> Task | None:
        """A reflection on a wrong rollout; `count`, the number of earlier ones, decides how much of it is shown."""
        env = env_of(self.envs, group.task)
        wrong = [rollout for rollout in group.own if not is_right(rollout) and env.answer(rollout.completion)]
        if not wrong:
            return None
        completion = wrong[int(rng.integers(len(wrong)))].completion
        shown = completion if 2 * count < self.reflected else env.answer(completion)
        plain = " ".join(shown.replace(OPEN, " ").replace(CLOSE, " ").split())
        return child(group.task, f"{prompt_of(group.task)} wrong: {plain}", group.task.answer)

    def problems(self, run: Run) -> list[str]:
        known = {(env.name, env.level) for env in run.envs}
        needed = [made for env in self.envs for made in (Judged(env), Choice(env, 2))]
        foreign = [
            f"{env.name} runs in another process, so its answers cannot be read here"
            for env in self.envs
            if not env.is_inline
        ]
        absent = [each for each in needed if (each.name, each.level) not in known]
        return [
            *foreign,
            *(f"{each.name}:{each.level} is not among the environments of this run: add it" for each in absent),
        ]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the share of each kind of generated task in the batch and its accuracy; keeps no state."""
        kinds = [_kind(group.task) for group in groups]
        found: Metrics = {}
        for kind in ("judged", "compared", "reflected"):
            own = [rollout for group, each in zip(groups, kinds, strict=True) if each == kind for rollout in group.own]
            found[f"{kind}_share"] = kinds.count(kind) / max(len(kinds), 1)
            found |= {f"{kind}_right": sum(map(success, own)) / len(own)} if own else {}
        return found

    def state(self) -> dict[str, Any]:
        return {"counts": [[version, *counts] for version, counts in self._counts.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._counts = {int(version): [int(each) for each in counts] for version, *counts in state["counts"]}


def _kind(task: Task) -> str:
    if task.source.startswith("judged-"):
        return "judged"
    return "compared" if task.source.startswith("choice-") else "reflected" if is_written(task) else ""


def _answers(env: Environment, group: Group, wanted: bool) -> list[str]:
    """Answers of the policy's right or wrong rollouts; completions without an answer are left out."""
    chosen: list[Rollout] = [each for each in group.own if is_right(each) == wanted]
    return [answer for rollout in chosen if (answer := env.answer(rollout.completion))]


def _one(answers: Sequence[str], rng: np.random.Generator) -> str:
    return answers[int(rng.integers(len(answers)))]


def _item(parent: Task, question: str, key: str, env: Environment) -> Task:
    """A task of `env` about `parent`, with the parent in its lineage."""
    made = asked(parent, question, key, env.name)
    return replace(made, id=child(replace(parent, source=env.name), prompt_of(made), made.answer).id)


def spark(
    setting: Setting = Setting(),
    judged: int = 4,  # questions about answers generated per step
    reflected: int = 4,  # reflections generated per step
    pointwise: float = 0.3,  # probability that a mixed group's question is about one answer, not two
    warmup_steps: int = BundledOnly(12),  # supervised warm-up steps before RL, on all kinds of questions
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """The verifier labels every rollout, so judging is trained without further labels."""
    run = setting.run("spark", GroupStandard(), (Clip(), Kl("k3", kl)))
    run.warmup, tried = shown(setting, "spark", warmup_steps), run.envs
    wrap_envs(run, lambda env: (env, Judged(env), Choice(env, 2)))
    run.sampler = WithWritten(Uniform(tried), share=0.5)
    run.task_generator = Recycled(tried, judged, reflected, pointwise)
    return run
