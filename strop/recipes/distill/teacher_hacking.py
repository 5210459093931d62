"""A student learns from a teacher that learned from an oracle, and its distance to both is measured.

Title: On Teacher Hacking in Language Model Distillation
Paper: arXiv 2502.02671 (2025)
Claim: Distillation on a fixed set of answers hacks the teacher: its distance falls while that to the oracle rises;
    fresh answers or more prompts prevent it.
Reading: Distances are exact forward KLs at the tokens of each draw before it is trained on; the paper measures on
    held-out prompts. Fixed answers are the worlds' own to a few tasks, over and over; fresh ones are the student's at
    those tasks. hacking.json says what came of it. The oracle is only looked at.
Left out: The teacher's own distillation from the oracle's answers (any run of strop makes one), answers sampled by the
    teacher, reverse and Jensen-Shannon distances.
Acts: forward_kl > 0 and golden/forward_kl > 0 with teacher=MODEL, oracle=MODEL
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.few import Few
from strop.errors import ConfigurationError, nearest
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.models.names import model_folder
from strop.observe.trackers.hacking_report import HackingReport
from strop.observe.watched import Watched
from strop.recipes.setting import Setting
from strop.roles import Agent
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.exact_kl import ExactKl

_ANSWERS: dict[str, Agent] = {"fixed": Demonstrate(least=1.0), "fresh": Chat()}


def teacher_hacking(
    setting: Setting = Setting(group_size=1, groups_per_step=32, learning_rate=3e-4),
    *,
    teacher: str,  # folder of the model that is imitated, with the same vocabulary
    oracle: str,  # folder of the model that the teacher stands for, with the same vocabulary
    answers: str = "fixed",  # fixed: the worlds' own, again and again; fresh: the student's
    tasks: int = 64,  # of each world, over and over
) -> Run:
    """The proxy is `forward_kl`, the golden measure `golden/forward_kl`."""
    if answers not in _ANSWERS:
        raise ConfigurationError(f"teacher_hacking has no answers {answers!r}: {nearest(answers, _ANSWERS)}")
    proxy = ExactKl("forward", str(model_folder(teacher)), weight=1.0)
    golden = Watched(ExactKl("forward", str(model_folder(oracle))), "golden")
    run = setting.run("teacher_hacking", Constant(), (proxy, golden), agent=_ANSWERS[answers])
    return replace(run, sampler=Few(run.worlds, tasks), trackers=(HackingReport("forward_kl", "golden/forward_kl"),))
