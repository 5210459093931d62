"""ER-PRM: a process reward model trained on entropy-regularized success rates of solution prefixes.

Title: Entropy-Regularized Process Reward Model
Paper: arXiv 2412.11006 (2024)
Claim: 1 % on GSM8K and 2 to 3 % on MATH with best-of-N, more than 1 % under RLHF.
Reading: Labels are not rounded to three decimals, as in the release, and no absolute value hides a wrong sign. A step
    is a sentence or line, and of the bundled model a calculation of the chain of thought; the label of a whole solution
    is its own reward. The verdict is + or -, as released. The number of completions per step and the sizes are ours,
    for a small model.
Left out: Best-of-N and rejection sampling; `strop train par judge=FOLDER` trains on the resulting model.
Acts: label > 0 and label_error > 0 and share/teacher > 0 with samples=4, steps=1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from strop.concurrency import together
from strop.environments.judging.verdict_questions import BAD, GOOD
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import StepJudge, WorkedSteps
from strop.filter.rewards.from_environment import Earned
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.policy import Policy
from strop.generate.rollout_limits import REFERENCE
from strop.generate.strategies.support.forced_completion import ForcedCompletion
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.recipes.setting import Setting
from strop.roles import Loss, Player, Strategy
from strop.run import Run
from strop.success import success
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.verdict_logits import VERDICTS, verdict_scores
from strop.training.batch import Batch, Output
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Need
from strop.types import Group, IntArray, Metrics, Origin, Outcome, Rollout, Start

# ER-PRM's labels (2412.11006): the value of each solution prefix, from completions of it by the initial policy.


@dataclass
class PrefixSuccess(Strategy):
    """Verdicts on solution prefixes, each rewarded with its label; solutions and completions are not returned.

    A solution of the reference policy is cut after each step. Each prefix is completed `samples` times, and its label
    is (1 / eta) log(mean of exp(eta * reward)); the label of the whole solution is its own reward. Needs the engine
    `WithReference`, because the model that learns is not the one that solves. `steps` only locates the steps.
    """

    samples: int = 8  # completions per prefix
    eta: float = 1.0  # 0: the mean; > 0: nearer to the best; < 0: nearer to the worst
    steps: StepJudge = field(default_factory=WorkedSteps)

    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"PrefixSuccess needs samples >= 1, got {self.samples}")

    def problems(self, run: Run) -> list[str]:
        """Errors: rewards that would judge a verdict's text in place of its label, which is paid in its turn."""
        if all(isinstance(reward, Earned) for reward in run.rewards):
            return []
        named = ", ".join(type(reward).__name__ for reward in run.rewards)
        return [
            f"labels of steps are paid by the environment, and here {named} pays: take tasks whose answers are numbers "
            "or text, without reward= and answer=math"
        ]

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        sampled = await together(play(replace(start, policy_name=REFERENCE, origin=Origin.TEACHER)) for start in starts)
        scored = zip(sampled, await play.score(sampled), strict=True)
        solutions = [(whole, success(paid)) for whole, paid in scored if paid is not None and _is_whole(whole)]
        # the prefix up to the last step is the whole solution, which has its own label
        prefixes = [
            (whole, whole.completion[: step.end]) for whole, _ in solutions for step in self.steps.steps(whole)[:-1]
        ]
        labels = await self._labels([text for _, text in prefixes], play)
        labelled = [(*each, label) for each, label in zip(prefixes, labels, strict=True)]
        labelled += [(whole, whole.completion, score) for whole, score in solutions]
        verdicts = [await self._verdict(*each, play) for each in labelled if not math.isnan(each[2])]
        # verdicts that do not fit into the context are dropped
        return [as_verdict(rollout, self._ids) for rollout in verdicts if has_verdict(rollout)]

    async def _labels(self, prefixes: Sequence[str], play: Player) -> list[float]:
        """Label of each prefix; completions without a reward do not count, and without any the label is NaN."""
        asked = [text for text in prefixes for _ in range(self.samples)]
        more = [play.another(prefill=text, policy_name=REFERENCE, origin=Origin.TEACHER) for text in asked]
        scores = await play.score(await together(play(start) for start in more))
        parts = [scores[first : first + self.samples] for first in range(0, len(scores), self.samples)]
        return [entropic_mean([success(scored) for scored in part if scored is not None], self.eta) for part in parts]

    async def _verdict(self, whole: Rollout, text: str, label: float, play: Player) -> Rollout:
        return await play(play.another(parent=whole.id), ForcedCompletion(GOOD if label >= 0.5 else BAD, label, text))


def _is_whole(rollout: Rollout) -> bool:
    return rollout.outcome is Outcome.FINISHED and len(rollout.turns) == 1


def entropic_mean(values: Sequence[float], eta: float) -> float:
    """(1 / eta) log(mean of exp(eta * value)), between the mean and the maximum for eta > 0; NaN of none."""
    if not values:
        return math.nan
    if eta == 0:
        return sum(values) / len(values)
    largest = max(eta * value for value in values)
    return (largest + math.log(sum(math.exp(eta * value - largest) for value in values) / len(values))) / eta


# A process reward model's loss: binary cross-entropy between the verdict's probability and a prefix's label.


@dataclass(frozen=True)
class StepVerdict(Loss):
    """-(r log p + (1 - r) log(1 - p)), p = sigmoid(score) the probability of the good verdict, r the rollout's reward.

    Every token carries its rollout's loss, for the sequence-mean reduction.
    """

    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({VERDICTS})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        labels = batch.rewards
        if bool(((labels < 0) | (labels > 1)).any()):
            raise ConfigurationError(f"StepVerdict needs labels from 0 to 1, got {labels.min():g} to {labels.max():g}")
        scores = verdict_scores(output, batch)
        each = functional.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype), reduction="none")
        loss = torch.where(batch.trainable, batch.on_tokens(each), 0.0)
        far = (scores.detach().sigmoid() - labels).abs()
        return loss, {"label": batch.metric(batch.on_tokens(labels)), "label_error": batch.metric(batch.on_tokens(far))}


def er_prm(
    setting: Setting = Setting(group_size=2, learning_rate=3e-4),
    samples: int = 8,  # completions per prefix
    eta: float = 1.0,  # of the entropic mean over them: 0: the mean; > 0: nearer to the best
) -> Run:
    """group_size solutions per task are cut after each step and completed by the initial policy."""
    return setting.run(
        "er_prm",
        Constant(),
        (StepVerdict(),),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=PrefixSuccess(samples, eta),
        reduction=SequenceMean(),
    )
