"""REINFORCE on programs told where they fail, against the greedy program, beside imitation of right ones.

Title: RLTF: Reinforcement Learning from Unit Test Feedback
Paper: arXiv 2307.04349 (2023)
Claim: Online samples and unit test feedback of several grains reach the best results on APPS and MBPP of their time.
Reading: Tokens of the line with the error are told -0.3, all of them where an error is everywhere, none where an answer
    is wrong; lines are found by number, where the release looks for their text. One attempt in each group is the
    world's program and imitated; the greedy program is judged and not trained. The bundled model has never written a
    program, so a short supervised run comes before, as the paper's model was fine-tuned first. lag=1 lets generation
    run beside training, as the paper's does; at 0 the draw is the buffer.
Left out: The buffer of 6400 programs, of which a draw takes some again.
Acts: fact/feedback < 1 and credit_within > 0 and teacher/nll > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from strop.environments.code_execution import Trials
from strop.filter.rewards.unit_test_feedback import UnitTestFeedback
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.greedy_beside import GreedyBeside
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.token_feedback import TokenFeedback
from strop.training.losses.among import Among
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.reinforce import Reinforce
from strop.types import Origin


def rltf(
    setting: Setting = Setting(world="programs:2"),
    is_adaptive: bool = True,  # the share of tests passed raises a wrong program
    fine: float = -0.3,  # told to each token that is to blame; 0: none
    imitation: float = 1.0,  # weight of the world's own programs
    warmup_steps: int = 30,  # of supervised training first
) -> Run:
    """Right 1, wrong from -0.3 up, a runtime error -0.6, one of syntax -1."""
    run = setting.run(
        "rltf",
        TokenFeedback(),
        (Among(Reinforce(), (Origin.POLICY,)), Among(Likelihood(imitation), (Origin.TEACHER,))),
        strategy=GreedyBeside(Demonstrated(Demonstrate())),
        reward_seconds=60.0,  # many programs may wait for the box
    )
    run.rewards = (UnitTestFeedback(is_adaptive, fine, Trials(setting.isolation)),)
    run.warmup = shown(setting, "rltf", warmup_steps)
    return run
