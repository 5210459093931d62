"""UFO: multi-turn PPO with "try again" as the only feedback, a decaying reward for later answers, repetition penalty.

Title: A Simple "Try Again" Can Elicit Multi-Turn LLM Reasoning
Paper: arXiv 2507.14295 (2025)
Claim: Trained with feedback that never says more than that, models are up to 14 % more accurate over several turns.
Reading: As released: the reward of a right answer is halved with each earlier answer, up to 0.5 is subtracted for
    repeated answers, PPO without a discount per token. Answers are equal if the environment normalizes them to the
    same text, so another format is not another answer. A completion without an answer is not counted; at most three
    of them are tolerated.
Left out: The release's message after the last failure, which is that the answer was correct.
Acts: turns > 1 and reward/tries != 0 and value_grad_norm > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.recipes.agent.ufo.environment import SPARE_COMPLETIONS, TryAgain
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.roles import Environment, Reward
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import ZERO_TO_ONE, Group, Rollout, ScoreRange

# UFO's reward (2507.14295): a right answer earns less with every earlier answer; repeated answers are penalized.


@dataclass(frozen=True)
class Tries(Reward):
    """Sum of decay ** (earlier answers) * turn reward, minus price * (1 - distinct answers / answers).

    Completions without an answer do not count. Answers are equal if the environment normalizes them to the same text.
    """

    envs: tuple[Environment, ...]
    decay: float = 0.5  # factor on a right answer's reward for each earlier answer
    price: float = 0.5  # penalty in the limit of one answer repeated forever

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE
    is_inline: ClassVar[bool] = True  # environments only normalize answers

    def __post_init__(self) -> None:
        if not 0 <= self.decay <= 1 or self.price < 0:
            raise ConfigurationError(f"Tries needs 0 <= decay <= 1 and price >= 0, got {self.decay} and {self.price}")

    def __call__(self, group: Group) -> list[float]:
        env = env_of(self.envs, group.task)
        return [self._of(rollout, env) for rollout in group.rollouts]

    def _of(self, rollout: Rollout, env: Environment) -> float:
        found = [env.answer(turn.message.content) for turn in rollout.turns]
        tries = [reward for answer, reward in zip(found, rollout.turn_rewards, strict=False) if answer]
        answers = [answer for answer in found if answer]
        repeated = 1 - len(set(answers)) / len(answers) if answers else 0.0
        return sum(self.decay**before * reward for before, reward in enumerate(tries)) - self.price * repeated


def ufo(
    setting: Setting = Setting(env="countdown:3"),
    tries: int = 5,  # maximum number of answers of a rollout
    decay: float = 0.5,  # factor on a right answer's reward for each earlier answer
    price: float = 0.5,  # penalty of a rollout that repeats one answer
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per training batch
) -> Run:
    """PPO on episodes whose only feedback is that an answer was wrong."""
    run = setting.run(
        "ufo",
        Gae(trace=1.0),
        (Clip(clip, clip),),
        values=Critic(device=setting.device),
        agent=Chat(max_turns=tries + SPARE_COMPLETIONS),
        minibatches=minibatches,
    )
    wrap_envs(run, partial(_again, tries=tries))
    run.rewards = (Tries(run.envs, decay, price),)
    return run


def _again(env: Environment, tries: int) -> tuple[Environment, ...]:
    return (TryAgain(env, tries),)
