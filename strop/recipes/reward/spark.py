"""Policy and judge are one model: rollouts become questions about answers and second thoughts, trained beside tasks.

Title: SPARK: Synergistic Policy And Reward Co-Evolving Framework
Paper: arXiv 2509.22624 (2025)
Claim: SPARK-VL-7B gains 9.7 % on 7 reasoning, 12.1 % on 2 reward and 1.5 % on 8 general benchmarks.
Reading: As released: 8 rollouts, a penalty of 0.001 to the reference, of each group one question about answers and one
    second thought, at most 32 of each after 64 tasks; here 4 of each after 8. They wait in a queue and are half of all
    draws as long as any waits, checked like any other task and trained by the same loss. Accuracy is measured of all
    three kinds. The bundled model was never asked to judge, so a short supervised run comes before.
Left out: Many wordings of each question, and images.
Acts: written_share > 0 and judged_share > 0 with taught=4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from strop.recipes.warmup import shown
from strop.roles import Environment, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, is_written
from strop.success import success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# SPARK's second use of rollouts (2509.22624): what was tried becomes something to judge, or to think over again.
#
# Of each group one question about answers: where all were right whether one of them is, where all were wrong whether
# one of those is; of a mixed group either about one answer, or which of two is right, in an order left to probability.
# A
# wrong rollout is shown again and the task asked anew. A judge sees answers and no working; completions without an
# answer
# are no item, and neither items nor tasks that were written become items again.

_RIGHT = 1.0 - 1e-9
_VERSIONS = 16  # of the weights, whose counts are remembered


@dataclass
class Recycled(TaskGenerator):
    """At most `judged` questions about answers and `reflected` second thoughts for each version of the weights.

    The first half of the second thoughts shows the whole wrong completion, the rest its answer alone.
    """

    envs: tuple[Environment, ...]  # whose rollouts are used
    judged: int = 32  # questions about answers, of one version
    reflected: int = 32  # second thoughts, of one version
    pointwise: float = 0.3  # probability that a mixed group is asked about one answer and not about two
    _counts: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by version

    def __post_init__(self) -> None:
        if self.judged < 0 or self.reflected < 0 or not 0 <= self.pointwise <= 1:
            told = f"got {self.judged}, {self.reflected} and {self.pointwise}"
            raise ConfigurationError(f"Recycled needs judged >= 0, reflected >= 0 and pointwise within 0..1, {told}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if is_written(group.task) or all(env.name != group.task.source for env in self.envs):
            return []
        rng = np.random.default_rng(play.another().key)
        counts = self._of(group.version)
        judged = self._question(group, rng) if counts[0] < self.judged else None
        reflected = self._second_thought(group, rng, counts[1]) if counts[1] < self.reflected else None
        counts[0] += judged is not None
        counts[1] += reflected is not None
        return [task for task in (judged, reflected) if task is not None]

    def _of(self, version: int) -> list[int]:
        """What was written at this version so far; those long past are forgotten."""
        counts = self._counts.setdefault(version, [0, 0])
        while len(self._counts) > _VERSIONS:
            del self._counts[min(self._counts)]
        return counts

    def _question(self, group: Group, rng: np.random.Generator) -> Task | None:
        env = env_of(self.envs, group.task)
        sides = {"yes": _answers(env, group, True), "no": _answers(env, group, False)}
        given = [key for key, answers in sides.items() if answers]
        if not given:
            return None
        if len(given) == 2 and rng.random() >= self.pointwise:
            right, wrong = (_one(sides[key], rng) for key in given)
            is_first = bool(rng.integers(2))
            shown = f"a {right} b {wrong}" if is_first else f"a {wrong} b {right}"
            return _item(group.task, shown, "a" if is_first else "b", Choice(env, 2))
        key = given[int(rng.integers(len(given)))]
        return _item(group.task, f"is it {_one(sides[key], rng)}?", key, Judged(env))

    def _second_thought(self, group: Group, rng: np.random.Generator, count: int) -> Task | None:
        """`count` were written before, which says how much is shown."""
        env = env_of(self.envs, group.task)
        wrong = [rollout for rollout in group.own if success(rollout) < _RIGHT and env.answer(rollout.completion)]
        if not wrong:
            return None
        completion = wrong[int(rng.integers(len(wrong)))].completion
        shown = completion if 2 * count < self.reflected else env.answer(completion)
        plain = " ".join(shown.replace(OPEN, " ").replace(CLOSE, " ").split())
        return child(group.task, f"{prompt_of(group.task)} wrong: {plain}", group.task.answer)

    def problems(self, run: Run) -> list[str]:
        known = {(env.name, env.level) for env in run.envs}
        needed = [made for env in self.envs for made in (Judged(env), Choice(env, 2))]
        foreign = [f"answers of {env.name} are not ours to read here" for env in self.envs if not env.is_inline]
        absent = [each for each in needed if (each.name, each.level) not in known]
        return [*foreign, *(f"{each.name}:{each.level} is no environment of this run: add it" for each in absent)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much of the batch is of each kind, and how well the policy does at it."""
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


def _answers(env: Environment, group: Group, is_right: bool) -> list[str]:
    """Those of the policy's rollouts that were right, or wrong; none of completions without an answer."""
    chosen: list[Rollout] = [each for each in group.own if (success(each) >= _RIGHT) == is_right]
    return [answer for rollout in chosen if (answer := env.answer(rollout.completion))]


def _one(answers: Sequence[str], rng: np.random.Generator) -> str:
    return answers[int(rng.integers(len(answers)))]


def _item(parent: Task, question: str, key: str, env: Environment) -> Task:
    """A task of an environment that asks about another one's, which goes back to its parent."""
    made = asked(parent, question, key, env.name)
    return replace(made, id=child(replace(parent, source=env.name), prompt_of(made), made.answer).id)


def spark(
    setting: Setting = Setting(),
    judged: int = 4,  # questions about answers that follow from one step
    reflected: int = 4,  # second thoughts that follow from one step
    pointwise: float = 0.3,  # probability that a mixed group is asked about one answer and not about two
    taught: int = 12,  # steps of supervised training first, on all kinds of questions
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """Right and wrong are known of every rollout, so that judging can be trained without any label."""
    run = setting.run("spark", GroupStandard(), (Clip(), Kl("k3", kl)))
    run.warmup, tried = shown(setting, "spark", taught), run.envs
    wrap_envs(run, lambda env: (env, Judged(env), Choice(env, 2)))
    run.sampler = WithWritten(Uniform(tried), share=0.5)
    run.task_generator = Recycled(tried, judged, reflected, pointwise)
    return run
