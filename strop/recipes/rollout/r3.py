"""R^3: PPO with a reverse curriculum; rollouts start from prefixes of demonstrations of several lengths.

Title: Training Large Language Models for Reasoning through Reverse Curriculum Reinforcement Learning
Paper: arXiv 2402.05808 (2024)
Claim: 4.1 points better on average than RL from the prompt over eight reasoning tasks, with outcome rewards alone.
Reading: All start states are mixed, as in the paper's final method; `every` gives the staged variant that it compares
    with. Cuts are evenly spaced, one of the release's two ways; five of them, as in its data. A wrong answer earns 0.1
    and none 0; the release's mathematics gives 0.2. PPO with lambda 0.95, clipping 0.2, two epochs over the batch as
    one minibatch, and a k2 loss of weight 0.05 in place of a KL term in the reward. The critic is a separate network,
    so the weight of its loss (5) has no counterpart. Demonstrations are the environment's; one that its environment
    does not reward with 1 ends the run.
Left out: Demonstrations of other models, and supervised training before.
Acts: share/branched > 0 and fact/shared > 0
"""

from __future__ import annotations

from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def r3(
    setting: Setting = Setting(env="arithmetic:7"),
    places: int = 5,  # cuts of a demonstration, in addition to the prompt
    every: int = 0,  # versions for which each cut is the only start, the last one first; 0: all are mixed
    answered: float = 0.1,  # reward of a wrong answer; no answer earns 0
    kl: float = 0.05,  # weight of the KL penalty to the reference
    epochs: int = 2,  # over the batch
) -> Run:
    """The demonstration's prefix is not trained on."""
    run = setting.run(
        "r3",
        Gae(trace=0.95),
        (Clip(0.2, 0.2), Kl("k2", kl)),
        values=Critic(device=setting.device),
        strategy=ReverseCurriculum(Demonstrate(least=1.0), places, every),
        epochs=epochs,
    )
    judged = as_one(run.rewards)
    run.rewards = (GradedAnswer(judged, right=1.0, wrong=answered, missing=0.0),)
    return run
