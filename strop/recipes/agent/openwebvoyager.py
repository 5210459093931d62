"""Imitate first, then explore: each task is tried until a judge is satisfied, and what satisfied it is imitated.

Title: OpenWebVoyager: Building Multimodal Web Agents via Iterative Real-World Exploration, Feedback and Optimization
Paper: arXiv 2410.19609 (2024)
Claim: An open multimodal web agent grows better with each round of exploring, judging and imitating, over several
    test sets.
Reading: `group_size` is how often a task is tried at most. Pages are short texts, and the expert whose visits are
    imitated first is the site itself. The judge reads the task, the last three pages and the answer; a rule that reads
    them too stands for the larger model. A round is a step, and goes on from the last weights, as released.
Left out: Screenshots, and the tree of elements that is read beside them.
Acts: tries > 1 and kept_share < 1 and reward/success_verdict > 0 and warmup/nll > 0 with taught=12, steps=1,
    world=pages:1
"""

from __future__ import annotations

from strop.control.budgets.until_good import UntilGood
from strop.filter.gates.successes_only import Successes
from strop.filter.rewards.env_reward import Earned
from strop.filter.rewards.judged.success_verdict import SuccessVerdict
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.sequence_mean import SequenceMean


def openwebvoyager(
    setting: Setting = Setting(world="pages:2", group_size=5),
    judge: str = "rules",  # who says whether a visit succeeded: rules, itself, a folder, or http://HOST/v1#MODEL
    pages: int = 3,  # that the judge is shown, the last ones
    taught: int = 20,  # steps of supervised training on the expert's visits first
) -> Run:
    """One success of each task, and its likelihood."""
    parts = {"budget": UntilGood(setting.group_size), "gates": (Successes(),), "reduction": SequenceMean()}
    run = setting.run("openwebvoyager", Constant(), (Likelihood(),), **parts)
    run.rewards = (
        SuccessVerdict(parse_judge(judge, "strop.standins.judges.web_success:judged"), pages),
        Earned(weight=0.0),
    )
    run.reward_seconds = judge_seconds(judge)
    run.warmup = shown(setting, "openwebvoyager", taught)
    return run
