"""DigiRL: filtered imitation of turns with positive advantage in rollouts that beat their task's predicted return.

Title: DigiRL: Training In-The-Wild Device-Control Agents with Autonomous Reinforcement Learning
Paper: arXiv 2406.11896 (2024)
Claim: On Android in the Wild a 1.3B model goes from 17.7 to 67.2 % success, past agents of larger models.
Reading: As released: step advantages with a cost of 0.05 per step and the outcome halved with each step before the
    end; a step is imitated where its advantage is positive. One value model, trained as a classifier, predicts success
    both for the task (before the first token) and for each step (before each turn). Rollouts are ranked within a
    training batch, not among all rollouts so far. A batch makes one optimizer step of the actor (20 epochs in the
    release) and five of the classifier. The environment decides about success.
    The first phase imitates the successes of recorded episodes (`episodes=`), where there are any.
Left out: The ranking of recorded episodes by the value model; two classifiers of which the lower value counts.
Acts: imitated_share > 0 and imitated_share < 1 and value_grad_norm > 0 with share=0.5
"""

from __future__ import annotations

from typing import Literal

from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.steps.hard_filtered import HardFiltered
from strop.training.losses.reinforce import Reinforce
from strop.training.values.turn_success import TurnSuccess


def digirl(
    setting: Setting = Setting(env="guess:1+guess:3", groups_per_step=16, group_size=4),
    episodes: str = "",  # JSONL file of recorded episodes, whose successes are imitated before RL
    offline: int = 20,  # supervised steps on recorded episodes
    share: float = 0.1,  # share of a training batch's rollouts that are imitated
    by: Literal["instruction", "reward", "random"] = "instruction",  # ranking: R - V of the task, R, or none (control)
    cost: float = 0.05,  # subtracted from each step's advantage
    discount: float = 0.5,  # discount of the outcome per turn
) -> Run:
    """Filtered behaviour cloning of steps: a policy gradient whose advantage is 1 or 0."""
    values = TurnSuccess(steps=5, device=setting.device)
    run = setting.run("digirl", HardFiltered(share, by, cost, discount), (Reinforce(),), values=values)
    run.warmup = shown(setting, "digirl", offline, episodes) if episodes else None
    return run
