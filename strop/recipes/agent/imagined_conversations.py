"""Conversations are made up, good and bad ones; what was better than expected in them is imitated more.

Title: Zero-Shot Goal-Directed Dialogue via RL on Imagined Conversations
Paper: arXiv 2311.05584 (2023)
Claim: An agent that learned offline from imagined talks is better at goals than a large model that is asked to be.
Reading: Only the abstract was at hand: implicit Q-learning over utterances, V an upper expectile of Q, the policy
    imitated with weight exp(beta (Q - V)), the reward on the last utterance. Rules of a guessing game imagine who asks
    and who answers, where the paper asks a large model for personas and talks. Nothing is sampled in training, so the
    policy acts in evaluation only. expectile, beta and the number of critic steps are ours.
Left out: Imagined talks by a model, and values of single tokens.
Acts: value_grad_norm > 0 and weight_won != 1 and weight_lost != 1 and reward_of/teacher < 1
"""

from __future__ import annotations

from strop.generate.agents.imagined import Imagined
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.steps.exponential_weights import ExponentialWeights
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.values.turn_critic import TurnCritic


def imagined_conversations(
    setting: Setting = Setting(world="guess:3", group_size=4, learning_rate=1e-4),
    expectile: float = 0.8,  # of Q that V learns: above 0.5, what good turns earn
    beta: float = 3.0,  # inverse temperature of the weights; 0: behaviour cloning
    limit: float = 20.0,  # of a weight
    discount: float = 0.95,  # from turn to turn
) -> Run:
    """Offline RL on made-up talks: a weighted likelihood."""
    values = TurnCritic(discount=discount, expectile=expectile, device=setting.device)
    return setting.run(
        "imagined_conversations",
        ExponentialWeights(beta, limit),
        (Reinforce(),),
        agent=Imagined(),
        values=values,
        reduction=SequenceMean(),
    )
