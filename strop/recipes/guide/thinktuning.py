"""Feedback behind a few replies, after which the policy goes on; then GRPO over plain and extended ones.

Title: ThinkTuning: Instilling Cognitive Reflections without Distillation
Paper: arXiv 2508.07616 (2025)
Claim: 2.1 to 4 points above GRPO on MATH-500, AIME and GPQA-Diamond, with a teacher of the policy's own size.
Reading: The policy goes on behind the feedback, as in the paper; the release ends the reply there. Own tokens have
    clipped ratios, the teacher's the paper's shaping (`whole`: all tokens of such a reply, as released). The share of
    replies with feedback falls from 10 % to 1 % over the first third of the run; at 6 % the teacher leaves for good.
    Four optimizer steps per draw (32 of 128 tasks) and the mean over tokens. A rule stands for the teacher: it names
    the first step that is wrong and not the right one.
Left out: The few examples that make the same model a teacher: an address of a model takes its place.
Acts: feedback_share > 0 and said/leaning > 0 with share=0.6, steps=3, world=arithmetic:6
"""

from __future__ import annotations

from strop.generate.llm_clients.procedural import Procedural
from strop.generate.strategies.helped.with_feedback import WithFeedback
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.roles import Adviser
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.outside.advantage_aware import AdvantageAware
from strop.types import Origin

_RULE = "strop.standins.feedback:slip"
_DUAL = 3.0  # the loss of a token with A < 0 is at most so many times |A|


def thinktuning(
    setting: Setting = Setting(world="arithmetic:6", group_size=5),
    teacher: str = "rules",  # or http://HOST:PORT/v1#MODEL
    share: float = 0.1,  # of replies that get feedback, at first
    lean: float = 0.001,  # how far the weight of a teacher's token leans with its advantage
    whole: bool = False,  # a reply with feedback is shaped as a whole, the policy's own tokens too
) -> Run:
    """Few replies get feedback, ever fewer, and none after a seventh of the run."""
    plain, shaped = Clip(0.2, 0.2, dual=_DUAL), AdvantageAware(lean)
    apart = (Among(plain, sampled=True), Among(shaped, sampled=False))
    joined = (Among(plain, (Origin.POLICY,)), Among(shaped, (Origin.GUIDED,)))
    return setting.run(
        "thinktuning",
        GroupStandard(),
        joined if whole else apart,
        strategy=WithFeedback(_teacher(teacher), setting.steps, share),
        minibatches=4,
    )


def _teacher(text: str) -> Adviser:
    return (None if text == "rules" else parse_adviser(text)) or Procedural(_RULE)
