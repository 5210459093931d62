"""SCOPE: failed rollouts keep their right steps and are completed by an expert; GRPO with shaped off-policy tokens.

Title: Recycling Failures: Salvaging Exploration in RLVR via Fine-Grained Off-Policy Guidance
Paper: arXiv 2602.24110 (2026)
Claim: 13.5 % more diversity, 46.6 % average accuracy on mathematics and 53.4 % out of distribution.
Reading: Only the abstract is known. Steps are judged by whether their calculations hold, in place of a process reward
    model, and completed by the environment's own demonstration. At most half of a group's failures are salvaged, so
    that wrong rollouts remain. Kept tokens are clipped at 0.2, an expert's weighted by p / (p + 0.1), as in other
    papers; rewards are standardized over the mixed group; two optimizer steps per batch.
Left out: A trained process reward model.
Acts: share/guided > 0 and said/share > 0 and fact/kept > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.format.demonstrations import Works
from strop.environments.needs import EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge, is_chain
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.policy import Policy
from strop.generate.turn_ops import cut, handed_on, said
from strop.recipes.setting import Setting
from strop.roles import Agent, Environment, Player, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.outside.shaped_probability import ShapedProbability
from strop.types import Group, IntArray, Message, Origin, Outcome, Rollout, Start, Task

# SCOPE's salvage (2602.24110): a failed rollout keeps its right steps, and an expert completes it.
#
# Readings, as only the abstract is known: `judge` finds the steps, and the first one with a value below 0.5 is the
# first wrong one. The completion is that of the environment's own demonstration, and only where it starts with the same
# steps. The salvaged rollout takes the place of the failed one in its group and holds the kept tokens; the rest of the
# failed one is pruned. At most half of a group's failures are salvaged.

_RIGHT_FROM = 0.5  # least value of a right step


def _calculates(env: Environment, task: Task) -> bool:
    worked = env.demonstration(task) if isinstance(env, Works) else None
    return not isinstance(env, Works) or (worked is not None and is_chain(worked.text))


_CALCULATIONS = EnvNeed(
    "solutions in calculations",
    "the rule that judges steps reads such as 12+3=15 and no prose: add a column `completion` with them to each row",
    is_met_by=_calculates,
)


@dataclass
class Salvaged(Strategy):
    """Strategy of plain rollouts; those that failed after a right step are completed by `expert` and scored again.

    A salvaged rollout is GUIDED, its parent the failed one; its fact `kept` is the share of its tokens that the policy
    sampled. Rollouts with several turns are not salvaged: the environment's answers would not fit.
    """

    expert: Agent
    most: float = 0.5  # of a group's failures that are salvaged
    judge: StepJudge = field(default_factory=Calculations)  # rates how right each step is

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (_CALCULATIONS,)

    def __post_init__(self) -> None:
        if not 0 < self.most <= 1:
            raise ConfigurationError(f"Salvaged needs 0 < most <= 1, got {self.most}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        made = await together(play(start) for start in starts)
        scores = await play.score(made)
        failed = [each for each, score in zip(made, scores, strict=True) if score is not None and not is_right(score)]
        allowed = int(self.most * len(failed))
        if not allowed or not any(self._kept(each) for each in failed):
            return made
        shown = await play(play.another(), self.expert)
        if shown.outcome is not Outcome.FINISHED or len(shown.turns) != 1:
            return made
        salvageable = [(each, at) for each in failed if (at := self._joins(each, shown))][:allowed]
        saved = await together(self._saved(each, at, shown, play) for each, at in salvageable)
        pruned = {each.id: _pruned(each, at) for each, at in salvageable}
        return [*(pruned.get(each.id, each) for each in made), *saved]

    def _kept(self, rollout: Rollout) -> str:
        """The text before the first wrong step; empty where that is the first step, or where none is wrong."""
        steps = self.judge.steps(rollout) if len(rollout.turns) == 1 else []
        wrong = next((index for index, step in enumerate(steps) if step.value < _RIGHT_FROM), 0)
        return rollout.completion[: steps[wrong].start] if wrong else ""

    def _joins(self, rollout: Rollout, shown: Rollout) -> int:
        """Number of tokens kept: all before the first wrong step if the demonstration starts with the same, else 0."""
        kept = self._kept(rollout)
        if not kept or not shown.completion.startswith(kept):
            return 0
        turn = rollout.turns[0]
        places = self._known().template.places(turn.whole)
        return max(int((places <= len(kept)).sum()) - turn.num_prefix, 0)

    async def _saved(self, rollout: Rollout, at: int, shown: Rollout, play: Player) -> Rollout:
        (kept,) = cut(rollout.turns, at)
        text = self._known().template.text(kept.whole)
        turn = replace(
            said(kept, self._rest(shown.completion[len(text) :])), message=Message("assistant", shown.completion)
        )
        start = play.another(turns=(turn,), origin=Origin.GUIDED, parent=rollout.id)
        saved = await play(start)
        return replace(saved, facts=saved.facts | {"kept": at / max(saved.num_tokens, 1)})

    def _rest(self, text: str) -> IntArray:
        template = self._known().template
        return np.append(template.encode_completion(text), template.end)

    def _known(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("Salvaged has no tokenizer yet: call meet(policy) first")
        return self._policy


def _pruned(rollout: Rollout, at: int) -> Rollout:
    """The failed rollout without its kept tokens, which belong to the salvaged one."""
    return replace(rollout, turns=(handed_on(rollout.turns[0], at),), outcome=Outcome.PRUNED)


def scope(
    setting: Setting = Setting(env="arithmetic:6"),
    most: float = 0.5,  # of a group's failures that are salvaged
    gamma: float = 0.1,  # probability scale of the weight p / (p + gamma) of an expert's token
    clip: float = 0.2,  # clipping range of sampled tokens
) -> Run:
    """A salvaged rollout takes the failed one's place in its group."""
    return setting.run(
        "scope",
        GroupStandard(),
        (Among(Clip(clip, clip), sampled=True), Among(ShapedProbability(gamma), sampled=False)),
        strategy=Salvaged(Demonstrate(least=1.0), most),
        minibatches=2,
    )
