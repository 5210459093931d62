"""Of what agents did, the steps that helped are imitated, in rollouts that beat what their task let expect.

Title: DigiRL: Training In-The-Wild Device-Control Agents with Autonomous Reinforcement Learning
Paper: arXiv 2406.11896 (2024)
Claim: On Android in the Wild a 1.3B model goes from 17.7 to 67.2 % success, past agents of larger models.
Reading: The release: step advantages with a cost of 0.05 and half the outcome with each step before the end; a step is
    imitated where its advantage is positive. One classifier says both what a task lets expect and what a step does: it
    learns, and is asked, before the first token of all and before each turn. The choice is made within a batch and not
    among all rollouts so far, and a batch makes one step of the actor (20 epochs in the release) and five of the
    classifier. The environment judges.
Left out: The first phase on rollouts of others, which ranks by reward; two classifiers of which the lower counts.
Acts: imitated_share > 0 and imitated_share < 1 and value_grad_norm > 0 with share=0.5
"""

from __future__ import annotations

from typing import Literal

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.steps.hard_filtered import HardFiltered
from strop.training.losses.reinforce import Reinforce
from strop.training.values.turn_success import TurnSuccess


def digirl(
    setting: Setting = Setting(env="guess:1+guess:3", groups_per_step=16, group_size=4),
    share: float = 0.1,  # of the rollouts of a batch
    by: Literal[
        "instruction", "reward", "probability"
    ] = "instruction",  # what rollouts are ranked by; probability: a control
    cost: float = 0.05,  # of a step
    discount: float = 0.5,  # of the outcome, from turn to turn
) -> Run:
    """Regression onto filtered steps: a policy gradient whose advantage is 1 or 0."""
    values = TurnSuccess(steps=5, device=setting.device)
    return setting.run("digirl", HardFiltered(share, by, cost, discount), (Reinforce(),), values=values)
