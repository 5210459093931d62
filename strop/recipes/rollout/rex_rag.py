"""REX-RAG: GRPO plus probes that resume failed rollouts before their answer with a prompt; importance-corrected.

Title: REX-RAG: Reasoning Exploration with Policy Correction in Retrieval-Augmented Generation
Paper: arXiv 2508.08149 (2025)
Claim: 5.1 % better on average over seven question answering benchmarks than strong baselines at 3B, 3.6 % at 7B.
Reading: A key-value store behind tool calls replaces retrieval. The part that a probe takes from the failed rollout is
    its prefix and trained in the failed rollout alone, so of the release's mixture the inserted words, the sampled rest
    and plain rollouts remain. Each group keeps its own part of a batch's probes. Five rollouts, a fifth of failures
    probed, 8 % kept at first, clipping 0.2, KL 0.001, as released; the list of prompts is our own, shorter, and
    optimizer steps per batch are two.
Left out: Search engines, and the setting with DAPO (12 % at first).
Acts: fact/probes > 0 and share/branched > 0 with probability=0.9, initial_success=0.9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.concurrency import together
from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError
from strop.generate.policy import Policy
from strop.generate.turn_ops import as_prefix, said, shortened
from strop.recipes.setting import Setting
from strop.roles import Advantage, Loss, Player, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.requirements import LOGPROBS, Aux, Logprobs, Need
from strop.types import FloatArray, Group, IntArray, Metrics, Origin, Outcome, Rollout, Start

PROBES = Aux("probes")  # share of probes among the rollouts of a batch


@dataclass(frozen=True)
class MixedBehavior(Loss):
    """`inner` with the behavior policy (1 - a) * policy + a * probe; a: the probes' share of the batch.

    A probe's sampled tokens are the policy's in both. Inserted tokens (version -1) have the proximal policy's
    probability in the one and their recorded one in the other; tokens of plain rollouts (1 - a) times theirs.
    """

    inner: Loss

    scope: ClassVar[str] = "rollout"
    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal"), PROBES})
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice

    def __post_init__(self) -> None:
        if not self.inner.contains_ratio:
            raise ConfigurationError(
                f"MixedBehavior needs a loss with a ratio to the behavior policy, got {type(self.inner).__name__}"
            )

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        mixed, share = self.mixed(batch)
        loss, metrics = self.inner(output, replace(batch, behavior_logprobs=mixed))
        return loss, metrics | {"probes_share": batch.metric(share)}

    def mixed(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the mixture [T], and the share of probes [T]."""
        is_probe = batch.is_of(Origin.BRANCHED)  # [A]
        share = batch.aux[PROBES.name].to(batch.share.dtype)  # [T]
        if bool((batch.on_tokens(is_probe) & (share <= 0)).any()):
            raise ConfigurationError("MixedBehavior got probes with a recorded share of 0: use ProbesCounted")
        recorded = batch.behavior_logprobs
        policy = torch.where(batch.versions < 0, batch.logprobs_of("proximal"), recorded)
        other = torch.where(batch.on_tokens(is_probe), recorded, recorded.new_full((), -torch.inf))
        return torch.logaddexp(policy + torch.log1p(-share), other + share.log()), share


# REX-RAG's probes (2508.08149): a failed rollout is resumed before its answer, with words that prompt to think again.
#
# Readings: the prefix of a probe is the failed rollout before its answer, so it is trained once, in that rollout. The
# inserted words are trained with the probability that the prompt list gives each token after those before it. The
# number of probes kept is the group's share of what the release keeps of a batch; a fraction is rounded at random. The
# average of their success is updated once per version, and counts all probes that were made.

PROMPTS = ("wait, ", "once more: ", "let me see: ", "let me look again: ", "is that right? ", "another way: ")
_MADE, _WERE_RIGHT = "probes", "probes_right"  # facts of a group's first rollout: numbers of probes
_WINDOW = 64  # versions whose probes are counted separately: groups may finish late


@dataclass
class Probes(Strategy):
    """Strategy: plain rollouts; each failed one is probed with probability `probability`, and of n rollouts n * q
    probes are kept.

    The probes kept are those whose inserted words the policy finds likeliest. q is the running average of their
    success. A probe is BRANCHED, its parent the rollout that failed.
    """

    prompts: tuple[str, ...] = PROMPTS  # one of them is inserted, chosen uniformly
    probability: float = 0.2  # that a failed rollout is probed
    success: float = 0.08  # initial success rate of probes
    rate: float = 0.1  # of the running average of success

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)
    _average: float = field(init=False, repr=False, compare=False)  # over versions before the window
    _counts: dict[int, tuple[float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.prompts or not all(self.prompts):
            raise ConfigurationError(f"Probes needs at least 1 prompt and no empty one, got {self.prompts}")
        if not all(0 <= share <= 1 for share in (self.probability, self.success, self.rate)):
            raise ConfigurationError(
                f"Probes needs probability, success and rate from 0 to 1, got {self.probability}, {self.success} and "
                f"{self.rate}"
            )
        self._average = self.success

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        made = await together(play(start) for start in starts)
        scores = await play.score(made)
        rng = np.random.default_rng(starts[0].key)
        failed = [
            each
            for each, score, number in zip(made, scores, rng.random(len(made)), strict=True)
            if each.outcome is Outcome.FINISHED
            and score is not None
            and not is_right(score)
            and number < self.probability
        ]
        chosen = rng.integers(len(self.prompts), size=len(failed)).tolist()
        resumed = [self._resumed(root, number, play.another()) for root, number in zip(failed, chosen, strict=True)]
        probes = await together(play(start) for start in resumed)
        right = sum(score is not None and is_right(score) for score in (await play.score(probes) if probes else []))
        made[0] = replace(made[0], facts=made[0].facts | {_MADE: float(len(probes)), _WERE_RIGHT: float(right)})
        count = int(len(starts) * self.share(group.version) + rng.random())
        return [*made, *await self._likeliest(probes, chosen, count, play)]

    def share(self, version: int) -> float:
        """q, the average success of probes over versions before this one."""
        average = self._average
        for at in sorted(at for at in self._counts if at < version):
            average = self._updated(average, at)
        return average

    def frequencies(self, number: int) -> FloatArray:
        """Log-probability of each token of a prompt after those before it, over all prompts; 0 for the first one."""
        words = [self._words(each) for each in range(len(self.prompts))]
        own = words[number]
        alike = [sum(each[:size] == own[:size] for each in words) for size in range(1, len(own) + 1)]
        return np.log(np.array([1.0, *(now / before for before, now in pairwise(alike))], np.float32))

    def _resumed(self, root: Rollout, number: int, start: Start) -> Start:
        """A start from the failed rollout before its answer, followed by the inserted words."""
        *before, last = root.turns
        places = self._known().template.places(last.whole)
        size = max(int((places <= max(root.completion.rfind(CLOSE), 0)).sum()) - last.num_prefix, 0)
        (open_,) = as_prefix((shortened(last, size),))
        words = said(open_, np.array(self._words(number), np.int64))
        turn = replace(words, logprobs=self.frequencies(number))
        return replace(start, turns=(*as_prefix(before), turn), origin=Origin.BRANCHED, parent=root.id)

    async def _likeliest(
        self, probes: Sequence[Rollout], chosen: Sequence[int], count: int, play: Player
    ) -> list[Rollout]:
        scored = [
            (each, len(self._words(number))) for each, number in zip(probes, chosen, strict=True) if each.is_scored
        ]
        if not count or not scored:
            return []
        looks = await play.look([each for each, _ in scored], frozenset({LOGPROBS}))
        means = [float(look[LOGPROBS.name][:size].mean()) for look, (_, size) in zip(looks, scored, strict=True)]
        best = sorted(range(len(means)), key=lambda place: -means[place])[:count]
        return [scored[place][0] for place in sorted(best)]

    def observe(self, group: Group) -> None:
        """Count the group's probes under its version."""
        facts = group.rollouts[0].facts if group.rollouts else {}
        if not facts.get(_MADE):
            return
        right, made = self._counts.get(group.version, (0.0, 0.0))
        self._counts[group.version] = (right + facts[_WERE_RIGHT], made + facts[_MADE])
        while len(self._counts) > _WINDOW:
            self._average = self._updated(self._average, oldest := min(self._counts))
            del self._counts[oldest]

    def _updated(self, average: float, version: int) -> float:
        right, made = self._counts[version]
        return average + self.rate * (right / made - average)

    def _words(self, number: int) -> list[int]:
        tokens: IntArray = self._known().template.encode_completion(self.prompts[number])
        return [int(token) for token in tokens]

    def _known(self) -> Policy:
        if self._policy is None:
            raise ConfigurationError("Probes has no tokenizer yet: call meet(policy) first")
        return self._policy

    def state(self) -> dict[str, Any]:
        return {"average": self._average, "told": [[at, *counts] for at, counts in self._counts.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        self._average = float(state["average"])
        self._counts = {int(at): (float(right), float(made)) for at, right, made in state["told"]}


# REX-RAG's share of probes (2508.08149): taken over the whole batch and stored on every turn for the mixing loss.
#
# Over a group of five and one probe it would be 1/6: plain rollouts would start at the ratio 1.2, the clipping bound;
# with two probes they would start beyond it, and right ones would get no gradient.


@dataclass(frozen=True)
class ProbesCounted(Advantage):
    """Advantage of `inner`; it stores on every turn the share of probes (BRANCHED rollouts) among rollouts with
    tokens.
    """

    inner: Advantage

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        probes = sum(rollout.origin is Origin.BRANCHED for rollout in rollouts)
        share = np.array([probes / max(len(rollouts), 1)], np.float32)  # one row for a whole turn
        for rollout in rollouts:
            rollout.turns = tuple(replace(turn, aux={**turn.aux, PROBES.name: share}) for turn in rollout.turns)


def rex_rag(
    setting: Setting = Setting(env="keyvalue:4", group_size=5),
    probability: float = 0.2,  # that a failed rollout is probed
    initial_success: float = 0.08,  # initial success rate of probes, which sets how many are kept
    kl: float = 0.001,  # weight of the KL penalty to the reference
) -> Run:
    """group_size plain rollouts and a few probes form one group."""
    losses = (MixedBehavior(Clip(0.2, 0.2)), Kl("k3", kl))
    strategy = Probes(probability=probability, success=initial_success)
    return setting.run("rex_rag", ProbesCounted(GroupStandard()), losses, strategy=strategy, minibatches=2)
