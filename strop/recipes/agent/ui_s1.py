"""UI-S1: semi-online GRPO, with expert steps patched in after mismatches and both step-level and episode advantages.

Title: UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning
Paper: arXiv 2509.11543 (2025)
Claim: At 7B 12 points more on AndroidWorld and 23.8 more on AITW than the model training began with.
Reading: Step rewards and returns are the release's. With `episodes=` the expert is a recording, as in the paper: a
    patched rollout goes on where the recording does. Else it is the environment itself, queried in the rollout's
    state. A rollout's score is the sum of its step rewards and each rollout counts once; the release averages over rows
    of steps. Groups of equal scores are replaced. Tokens of the expert are context without loss.
Left out: Screens; chains of thought that another model writes for patches: the environment's demonstration has one.
Acts: steps_mended > 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.format.actions import action_in
from strop.environments.format.demonstrations import demonstrating
from strop.environments.needs import DEMONSTRATIONS, TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.recipes.warmup import recorded
from strop.roles import Advantage, Agent, Dialogue, Episode
from strop.run import Run
from strop.training.arithmetic.turn_returns import set_turn_advantages
from strop.training.losses.clip import Clip
from strop.types import Group, Message, Metrics, Origin, Rollout, Task

# UI-S1's semi-online rollouts (2509.11543): an expert step replaces a completion that differs from it.

_FORM, _ACTION = 0.1, 0.9  # rewards for the format and for the action
_KIND, _READ = 0.5, 0.1  # share of the action's reward for the right kind, and for any other valid action


@dataclass(frozen=True)
class Patched(Agent):
    """Agent that rewards each completion by its match with the expert's and patches the first `patches` mismatches.

    After a patch the rollout continues in a new context with the expert's step in place of the wrong completion. The
    wrong completion is trained on, the expert's step is not. The next mismatch ends the rollout.
    """

    patches: int = 2  # mismatches that are patched; the next one ends the rollout
    repairs: bool = True  # False: the wrong completion is executed (control)
    max_turns: int = 16  # maximum number of turns of a rollout

    origin: ClassVar[Origin] = Origin.POLICY
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS, TURNS)

    def __post_init__(self) -> None:
        if self.patches < 0 or self.max_turns < 1:
            raise ConfigurationError(f"Patched needs patches >= 0 and max_turns >= 1, got {self}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        expert = demonstrating(episode)
        await episode.reset(task)
        heard, rewards, left, is_open = list(task.messages), list[float](), self.patches, True
        while is_open and len(rewards) < self.max_turns and not dialogue.is_cut:
            wanted = expert.demonstrate()
            completion = await dialogue.completion()
            rewards.append(step_reward(completion, wanted))
            is_right = action_in(completion) == action_in(wanted)
            left -= not is_right
            if left < 0:
                break
            taken = completion if is_right or not self.repairs else wanted
            answer = await episode.step(taken)
            heard += [taken, *answer.messages]
            is_open = not answer.done
            if is_open:
                _continue(dialogue, answer.messages, heard, is_patched=taken is not completion)
        return tuple(rewards)


def _continue(dialogue: Dialogue, answer: Sequence[Message], heard: Sequence[Message], is_patched: bool) -> None:
    """Append the environment's messages, in a new context after a patch."""
    if is_patched:
        dialogue.restart(heard)
    else:
        dialogue.hear(answer)


def step_reward(completion: Message, wanted: Message) -> float:
    """0.1 for the format, plus 0.9 for the same action, 0.45 for the same kind or 0.09 for any other action."""
    own, right = action_in(completion), action_in(wanted)
    if not own.is_formed:
        return 0.0
    return _FORM + _ACTION * (1.0 if own == right else _KIND if own.kind == right.kind else _READ)


# UI-S1's advantage (2509.11543): step-level plus episode-level group-relative terms.

_ROUNDING = 1e-6


@dataclass(frozen=True)
class StepAndEpisode(Advantage):
    """A of turn k = step * standardized return of turn k + episode * standardized reward of the rollout.

    The return of a turn that matches the expert (reward 1) is its reward plus the discounted return of the next turn;
    returns of other turns are their reward only and are not added to earlier ones. Turn k is compared with turn k of
    siblings, and gets 0 if no sibling has one. Each rollout counts once in the mean reward.
    """

    discount: float = 0.5  # discount per turn
    step: float = 1.0  # weight of the step-level term
    episode: float = 1.0  # weight of the episode-level term

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1:
            raise ConfigurationError(f"StepAndEpisode needs a discount from 0 to 1, got {self.discount}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rollouts = group.scored
            returns = [step_returns(rollout, self.discount) for rollout in rollouts]
            longest = max(map(len, returns), default=0)
            steps = [_standardised([each[k] for each in returns if len(each) > k]) for k in range(longest)]
            columns = [iter(column.tolist()) for column in steps]
            for rollout, own, whole in zip(rollouts, returns, _standardised(group.rewards), strict=True):
                advantages = [self.step * next(columns[k]) + self.episode * float(whole) for k in range(len(own))]
                set_turn_advantages(rollout, advantages)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: steps per rollout that match the expert, and patched steps per rollout."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        matched = sum(_is_match(reward) for rollout in rollouts for reward in rollout.turn_rewards)
        patched = sum(turn.fresh for rollout in rollouts for turn in rollout.turns)
        count = max(len(rollouts), 1)
        return {"steps_matched": matched / count, "steps_mended": patched / count}


def step_returns(rollout: Rollout, discount: float) -> list[float]:
    """The return of each turn: discounted rewards up to the first turn that differs from the expert."""
    if len(rollout.turn_rewards) != len(rollout.turns):
        raise ConfigurationError(
            f"StepAndEpisode needs a reward for each turn of rollout {rollout.id}: use the agent Patched"
        )
    later, found = 0.0, list[float]()
    for reward in reversed(rollout.turn_rewards):
        found.append(reward + discount * later if _is_match(reward) else reward)
        later = found[-1] if _is_match(reward) else 0.0
    return found[::-1]


def _is_match(reward: float) -> bool:
    return reward >= 1 - _ROUNDING


def _standardised(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """(value - mean) / sample std; zeros where all are equal or there is one."""
    centred = np.asarray(values, dtype=np.float64)
    centred = centred - centred.mean() if len(centred) else centred
    spread = centred.std(ddof=1) if len(centred) > 1 else 0.0
    return centred / (spread + _ROUNDING) if spread > _ROUNDING else np.zeros(len(centred))


def ui_s1(
    setting: Setting = Setting(env="keyvalue:5"),
    episodes: str = "",  # JSONL file of recorded expert episodes, in place of the environment
    patches: int = 2,  # mismatches that are patched; the next one ends the rollout
    repairs: bool = True,  # False: wrong completions are executed instead (control)
    discount: float = 0.5,  # discount per step
    episode: float = 1.0,  # weight of the episode-level advantage relative to the step-level one
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per training batch
) -> Run:
    """GRPO on patched rollouts, with advantages of steps and of whole rollouts."""
    return (replace(setting, env=recorded(episodes)) if episodes else setting).run(
        "ui_s1",
        StepAndEpisode(discount, episode=episode),
        (Clip(clip, clip),),
        agent=Patched(patches, repairs),
        gates=(ZeroVariance(),),
        minibatches=minibatches,
    )
