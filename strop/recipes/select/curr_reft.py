"""Curr-ReFT: GRPO on yes/no, then multiple-choice, then open questions; last, rejection-sampled self-imitation.

Title: Boosting the Generalization and Reasoning of Vision Language Models with Curriculum Reinforcement Learning
Paper: arXiv 2503.07065 (2025)
Claim: A model of 3B parameters does as well as those of 32B.
Reading: The three stages are consecutive GRPO runs with groups of 4, here one run in three equal parts. The first two
    ask about the tasks of the third: whether an answer is right, and which of four is. The bundled model has seen
    neither kind of question, so a short supervised run on demonstrations comes before; the paper's model needs none.
    Rejection sampling keeps what the environment scores as right, where the paper asks a judge.
Left out: Images, overlap of bounding boxes as a reward, and a format reward, which no environment here has.
Acts: warmup/stage > 0 and kept_share < 1 with warmup_steps=4, improved=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.verdict_questions import Judged
from strop.filter.gates.successes_only import Successes
from strop.filter.rewards.from_environment import Checked
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import SequenceMean


def curr_reft(
    setting: Setting = Setting(group_size=4, steps=150),
    warmup_steps: int = BundledOnly(12),  # supervised steps before RL, on all three kinds of tasks
    improved: int = 20,  # steps of imitation of right completions last
    kl: float = 0.04,  # weight of the KL penalty to the reference
) -> Run:
    """`steps` counts the three stages together; `warmup_steps` and `improved` steps come before and after."""
    curriculum = setting.run("curr_reft", GroupStandard(), (Clip(), Kl("k3", kl)), reduction=SequenceMean())
    curriculum.warmup = shown(setting, "curr_reft", warmup_steps)
    last = replace(setting, steps=improved)
    run = last.run("curr_reft", Constant(), (Likelihood(),), gates=(Successes(),), reduction=SequenceMean())
    run.warmup = curriculum
    _widen(run)
    third = max(setting.steps // 3, 1)
    true_false, choice, plain = (Uniform(curriculum.envs[kind::3]) for kind in range(3))
    curriculum.sampler = Staged((true_false, choice, plain), (third, third))
    run.sampler = Uniform(run.envs[2::3])
    return run


def _widen(run: Run) -> None:
    """Replace each environment by three (true/false, multiple choice, plain), in warm-ups too."""
    if run.warmup is not None:
        _widen(run.warmup)
    run.envs = tuple(each for env in run.envs for each in (Judged(env), Choice(env), env))
    run.sampler = Uniform(run.envs)
    if not all(env.pays for env in run.envs):
        run.rewards = (Checked(run.envs),)
        run.evaluation = replace(run.evaluation, rewards=run.rewards)
