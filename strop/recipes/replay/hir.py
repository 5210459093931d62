"""Nothing is thrown away: a wrong attempt is a right answer to the instruction to be wrong.

Title: The Wisdom of Hindsight Makes Language Models Better Instruction Followers
Paper: arXiv 2302.05206 (2023)
Claim: Better than PPO and than fine-tuning on right answers over 12 BigBench tasks, close to supervised training.
Reading: All attempts are asked to be right; what was right is trained behind that instruction, what was wrong behind
    the opposite one, each against the other by the mean log-probability of a token. Labels of tokens and preference are
    smoothed alike, by 0.2 in the release, whose answers are a letter in brackets; of 25 characters at temperature 1 not
    one in a hundred would come out as it was meant (reward 0.94 to 0.03 in four steps), so here it is 0.002. Entropy
    0.001, ten passes over the attempts of a round, which is a step. Two words that the bundled model knows stand for
    `generate a correct answer` and `a wrong answer`. Held-out tasks are asked with the first. A twin's tokens are
    counted once.
Left out: Training on random parts of an answer, with the part before them in the prompt; the KL term, which is off.
Acts: relabelled > 0 and preferred != 0.5 with epochs=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.strategies.instructed import Instructed
from strop.generate.strategies.relabelled import Relabelled
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.hindsight import Hindsight
from strop.training.reductions.with_twins import WithTwins


def hir(
    setting: Setting = Setting(group_size=4),
    right: str = "careful",  # the word that asks for a right answer
    wrong: str = "quick",  # the word that a wrong answer satisfies
    smoothing: float = 0.002,  # of the labels
    contrast: float = 1.0,  # weight of the preference for the instruction that was satisfied
    epochs: int = 10,  # passes over the attempts of a step
) -> Run:
    """group_size attempts at each task, trained behind the instruction that they satisfied."""
    asked = Instructed(right)
    run = setting.run(
        "hir",
        Constant(),
        (Hindsight(smoothing, contrast),),
        strategy=Relabelled(asked, wrong),
        reduction=WithTwins(),
        epochs=epochs,
    )
    return replace(run, evaluation=replace(run.evaluation, strategy=asked))
