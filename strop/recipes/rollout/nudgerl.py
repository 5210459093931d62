"""Attempts are nudged by short contexts, credit is divided within and between them, and a term teaches it without any.

Title: Nudging Beyond the Comfort Zone: Efficient Strategy-Guided Exploration for RLVR
Paper: arXiv 2605.15726 (2026)
Claim: Better than GRPO with up to 8 times as many attempts, over five mathematics benchmarks.
Reading: Two contexts of four attempts each, of which every one is dropped with probability 0.5, are the release's
    configuration (its classes say 0.25, and 0.01 for the last term). The clipped loss reads each attempt behind the
    prompt it was sampled with; the last term, -A times the mean logprob with neither ratio nor clip and for both signs
    of A, reads all of them behind the plain one. So a nudged attempt is trained twice, the second time as a twin
    whose tokens are counted once. Two optimizer steps per draw, of whole tasks. Words before the question stand for
    the contexts that a larger model writes for each problem.
Left out: Adapters, top_p 0.95, cosine and warm-up of the learning rate.
Acts: share/replayed > 0 and between_contexts > 0
"""

from __future__ import annotations

from strop.generate.strategies.helped.nudged import Nudged
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.by_context import ByContext
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.with_twins import WithTwins
from strop.types import Origin


def nudgerl(
    setting: Setting = Setting(world="guess:4"),
    words: str = "half+up",  # one before the question, joined by +
    dropout: float = 0.5,  # chance of an attempt to have none
    between: float = 1.1,  # weight of what a context does for the task, in its attempts' credit
    distilled: float = 0.1,  # weight of the term that reads all attempts without a context
) -> Run:
    """A group is group_size attempts dealt to the words, some of which lose theirs."""
    plain = (Origin.POLICY, Origin.REPLAYED)
    return setting.run(
        "nudgerl",
        ByContext(between),
        (Among(Clip(0.2, 0.2), (Origin.POLICY, Origin.GUIDED)), Among(Reinforce(distilled), plain)),
        strategy=Nudged(tuple(words.split("+")), dropout),
        reduction=WithTwins(),
        minibatches=2,
    )
