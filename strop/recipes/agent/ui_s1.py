"""Rollouts are compared with an expert step by step, and put back on its path twice; steps and rollouts earn advantage.

Title: UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning
Paper: arXiv 2509.11543 (2025)
Claim: At 7B 12 points more on AndroidWorld and 23.8 more on AITW than the model training began with.
Reading: The release's step reward and returns; the expert is the environment itself, asked where the rollout stands, so
    a mended rollout goes on in a live environment and not on a recording. A rollout's score is the sum of its steps,
    each rollout counted once; the release averages over rows of steps. Groups whose rollouts all scored alike are
    replaced. What an expert put in is read and never trained.
Left out: Screens; thoughts that another model writes for patches: the environment's own demonstration has its working.
Acts: steps_mended > 0 and credit_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.format.actions import action_in
from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.interfaces import Dialogue
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Episode
from strop.run import Run
from strop.training.arithmetic.turn_returns import set_turn_advantages
from strop.training.losses.clip import Clip
from strop.types import Group, Message, Metrics, Origin, Rollout, Task

# UI-S1's semi-online rollouts (2509.11543): where a completion leaves the expert's path, the expert's own takes its
# place.

_FORM, _ACTION = 0.1, 0.9  # what format and action are worth
_KIND, _READ = 0.5, 0.1  # of the action's worth: the right kind, any other that can be read


@dataclass(frozen=True)
class Patched(Agent):
    """Every completion is paid by how it compares with what the environment would do; the first `patches` mismatches
    are mended.

    From a mended step on the policy reads its own completions with the expert's in place of the wrong one, in a context
    of its own: what was wrong is trained, what was put there never. The next mismatch ends the rollout.
    """

    patches: int = 2  # mismatches that do not end a rollout
    repairs: bool = True  # False: the wrong completion stays and the environment is told of it, for a control
    max_turns: int = 16  # of one rollout

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.patches < 0 or self.max_turns < 1:
            raise ConfigurationError(f"Patched needs patches >= 0 and max_turns >= 1, got {self}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        expert = demonstrating(episode)
        await episode.reset(task)
        heard, paid, left, is_open = list(task.messages), list[float](), self.patches, True
        while is_open and len(paid) < self.max_turns and not dialogue.is_cut:
            wanted = expert.demonstrate()
            completion = await dialogue.completion()
            paid.append(step_reward(completion, wanted))
            is_right = action_in(completion) == action_in(wanted)
            left -= not is_right
            if left < 0:
                break
            taken = completion if is_right or not self.repairs else wanted
            answer = await episode.step(taken)
            heard += [taken, *answer.messages]
            is_open = not answer.done
            if is_open:
                _tell(dialogue, answer.messages, heard, is_mended=taken is not completion)
        return tuple(paid)


def _tell(dialogue: Dialogue, answer: Sequence[Message], heard: Sequence[Message], is_mended: bool) -> None:
    """The next completion reads the answer, behind another past where that was mended."""
    if is_mended:
        dialogue.restart(heard)
    else:
        dialogue.hear(answer)


def step_reward(completion: Message, wanted: Message) -> float:
    """A tenth for the format; nine for the action, half of them for its kind, a tenth for any other; 1 is a match."""
    own, right = action_in(completion), action_in(wanted)
    if not own.is_formed:
        return 0.0
    return _FORM + _ACTION * (1.0 if own == right else _KIND if own.kind == right.kind else _READ)


# UI-S1's advantage (2509.11543): a step against the same step of siblings, plus the rollout against its siblings.

_ROUNDING = 1e-6


@dataclass(frozen=True)
class StepAndEpisode(Advantage):
    """A of turn k = step * standardised return of turn k + episode * standardised reward of the rollout.

    The return of a turn with its full pay (1: the expert's action) reaches on to the next one's, discounted; that of
    any other is its own pay, and nothing of it or of what follows reaches back. Steps are compared with those of the
    same number; one that nobody else has gets 0. Each rollout counts once in the mean of rewards.
    """

    discount: float = 0.5  # from turn to turn
    step: float = 1.0  # weight of step advantage
    episode: float = 1.0  # weight of the rollout's

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
        """How many steps of a rollout were the expert's, and after how many it was put back on the path."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        matched = sum(_is_match(paid) for rollout in rollouts for paid in rollout.turn_rewards)
        mended = sum(turn.fresh for rollout in rollouts for turn in rollout.turns)
        count = max(len(rollouts), 1)
        return {"steps_matched": matched / count, "steps_mended": mended / count}


def step_returns(rollout: Rollout, discount: float) -> list[float]:
    """What each turn and those after it were paid, as far as the expert was followed."""
    if len(rollout.turn_rewards) != len(rollout.turns):
        raise ConfigurationError(f"StepAndEpisode needs pay for each turn of rollout {rollout.id}: use an agent's")
    later, found = 0.0, list[float]()
    for paid in reversed(rollout.turn_rewards):
        found.append(paid + discount * later if _is_match(paid) else paid)
        later = found[-1] if _is_match(paid) else 0.0
    return found[::-1]


def _is_match(paid: float) -> bool:
    return paid >= 1 - _ROUNDING


def _standardised(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """In units of the sample spread; zeros where all are equal or there is one."""
    centred = np.asarray(values, dtype=np.float64)
    centred = centred - centred.mean() if len(centred) else centred
    spread = centred.std(ddof=1) if len(centred) > 1 else 0.0
    return centred / (spread + _ROUNDING) if spread > _ROUNDING else np.zeros(len(centred))


def ui_s1(
    setting: Setting = Setting(env="keyvalue:5"),
    patches: int = 2,  # mismatches that do not end a rollout
    repairs: bool = True,  # False: a wrong completion stays, for a control
    discount: float = 0.5,  # from step to step
    episode: float = 1.0,  # weight of a rollout's advantage beside that of its steps
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,
) -> Run:
    """GRPO on steps and rollouts along an expert's path."""
    return setting.run(
        "ui_s1",
        StepAndEpisode(discount, episode=episode),
        (Clip(clip, clip),),
        agent=Patched(patches, repairs),
        gates=(ZeroVariance(),),
        minibatches=minibatches,
    )
