"""Offline implicit Q-learning over turns on simulated conversations: behaviour cloning weighted by exp(beta * (Q - V)).

Title: Zero-Shot Goal-Directed Dialogue via RL on Imagined Conversations
Paper: arXiv 2311.05584 (2023)
Claim: An agent that learned offline from imagined conversations is better at goals than a prompted large model.
Reading: Only the abstract was available. Implicit Q-learning over utterances: V is an upper expectile of Q, the policy
    imitates with weight exp(beta (Q - V)), and the reward is on the last utterance. Rules of a guessing game simulate
    both speakers, where the paper prompts a large model for personas and conversations. Nothing is sampled in
    training, so the policy acts in evaluation only. The values of expectile, beta and critic steps are ours.
Left out: Conversations simulated by a model, and values of single tokens.
Acts: value_grad_norm > 0 and weight_won != 1 and weight_lost != 1 and reward_of/teacher < 1
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from strop.environments.bundled.guess import Guess, parse
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import think
from strop.environments.needs import EnvNeed, bundled_need
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Dialogue, Episode
from strop.run import Run
from strop.training.advantages.per_turn import noted_turns
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean
from strop.training.values.turn_critic import TurnCritic
from strop.types import Group, Message, Metrics, Origin, Task

# Imagined conversations (2311.05584): both speakers are simulated, in successful and in failed conversations.

Persona = Literal["halves", "wanders", "counts"]


@dataclass(frozen=True)
class Imagined(Agent):
    """Scripted player of the guessing game, with a persona sampled for each rollout; the policy samples nothing.

    "halves" bisects the range and always wins, "wanders" guesses uniformly within it and wins sometimes, "counts"
    guesses upwards from the lowest number and rarely wins. Offline RL needs failures as well as successes.
    """

    personas: tuple[Persona, ...] = ("halves", "wanders", "counts")

    origin: ClassVar[Origin] = Origin.TEACHER
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (bundled_need("guessing games", Guess),)

    def __post_init__(self) -> None:
        if not self.personas:
            raise ConfigurationError("Imagined needs at least 1 persona, got 0")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        rng, (low, high, turns) = random.Random(dialogue.key), parse(prompt_of(task))
        persona, rewards = rng.choice(self.personas), list[float]()
        for _ in range(turns):
            guess = _guess(persona, low, high, rng)
            dialogue.say(said := Message("assistant", think([f"{low}..{high}"], str(guess))))
            answer = await episode.step(said)
            rewards.append(answer.reward or 0.0)
            if answer.done or dialogue.is_cut:
                break
            dialogue.hear(answer.messages)
            is_higher = answer.messages[-1].content == "higher"
            low, high = (guess + 1, high) if is_higher else (low, guess - 1)
        return tuple(rewards)


def _guess(persona: Persona, low: int, high: int, rng: random.Random) -> int:
    match persona:
        case "halves":
            return (low + high) // 2
        case "counts":
            return low
    return rng.randint(low, high)


# Implicit Q-learning's policy extraction (2110.06169): weighted imitation of turns that were better than expected.


@dataclass(frozen=True)
class ExponentialWeights(Advantage):
    """Advantage exp(beta * (Q - V)) of the token's turn, at most `limit`.

    The optimal policy is the behaviour policy times this weight. beta = 0 is behaviour cloning.
    """

    beta: float = 3.0  # inverse temperature
    limit: float = 20.0  # largest weight

    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.beta < 0 or self.limit < 1:
            raise ConfigurationError(
                f"ExponentialWeights needs beta >= 0 and limit >= 1, got {self.beta} and {self.limit}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            turn_advantages, lengths = noted_turns(rollout, "ExponentialWeights")
            weights = np.minimum(np.exp(np.minimum(self.beta * turn_advantages, 50.0)), self.limit)
            rollout.advantages = np.repeat(weights, lengths).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the mean weight of successful rollouts and of failed ones."""
        found: dict[str, list[float]] = {}
        for rollout in (rollout for group in groups for rollout in group.scored):
            if rollout.advantages is not None and len(rollout.advantages):
                name = "weight_won" if rollout.reward > 0 else "weight_lost"
                found.setdefault(name, []).append(float(rollout.advantages.mean()))
        return {name: float(np.mean(values)) for name, values in found.items()}


def imagined_conversations(
    setting: Setting = Setting(env="guess:3", group_size=4, learning_rate=1e-4),
    expectile: float = 0.8,  # expectile of Q that V is fitted to; above 0.5 it leans to good turns
    beta: float = 3.0,  # inverse temperature of the weights; 0: behaviour cloning
    limit: float = 20.0,  # largest weight
    discount: float = 0.95,  # discount per turn
) -> Run:
    """Offline RL on simulated conversations: a weighted likelihood."""
    values = TurnCritic(discount=discount, expectile=expectile, device=setting.device)
    return setting.run(
        "imagined_conversations",
        ExponentialWeights(beta, limit),
        (Reinforce(),),
        agent=Imagined(),
        values=values,
        reduction=SequenceMean(),
    )
