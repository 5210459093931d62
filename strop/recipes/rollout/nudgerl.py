"""NudgeRL: rollouts under short strategy prompts, advantages within and between prompts, distilled to the plain prompt.

Title: Nudging Beyond the Comfort Zone: Efficient Strategy-Guided Exploration for RLVR
Paper: arXiv 2605.15726 (2026)
Claim: Better than GRPO with up to 8 times as many rollouts, over five mathematics benchmarks.
Reading: Two contexts of four rollouts each; a rollout loses its context with probability 0.5. These are the release's
    configuration (its classes say 0.25, and 0.01 for the last term). The clipped loss reads each rollout behind the
    prompt it was sampled with. The last term, -A times the mean logprob without ratio or clipping and for both signs of
    A, reads all of them behind the plain prompt. So a rollout with a context is trained twice, the second time as a
    twin whose tokens are counted once. Two optimizer steps per batch, of whole tasks. Words before the question replace
    the contexts that a larger model writes for each problem.
Left out: Adapters, top_p 0.95, cosine schedule and warm-up of the learning rate.
Acts: share/replayed > 0 and between_contexts > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.environments.data.rows import columns_of
from strop.errors import ConfigurationError
from strop.generate.strategies.support.prompt_swap import twin, worded
from strop.recipes.setting import Setting
from strop.roles import Advantage, Player, Strategy
from strop.run import Run
from strop.training.arithmetic.twins import is_twin, made
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import WithTwins
from strop.types import Group, Metrics, Origin, Rollout, Start, Task

# NudgeRL's rollouts (2605.15726): a short context names a strategy for the task, or there is none.
#
# Reading: contexts are words before the question, the same for every task, as the bundled model knows them. In the
# paper a larger model writes five for each problem, and the release takes the first two.


@dataclass(frozen=True)
class Nudged(Strategy):
    """Strategy that assigns the words to the starts in turn; each start loses its word with probability `dropout`.

    The fact `context` is the number of the word, from 1, and 0 for none. A rollout with a word is followed by a twin
    that reads the task without it.
    """

    words: tuple[str, ...]  # each is put before the question, unless the task's row has contexts of its own
    dropout: float = 0.5  # probability of a rollout to lose its context

    def __post_init__(self) -> None:
        if not self.words or not all(self.words) or not 0 <= self.dropout <= 1:
            raise ConfigurationError(
                f"Nudged needs words that are not empty and 0 <= dropout <= 1, got {self.words} and {self.dropout}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        words = _contexts_of(group.task) or self.words
        contexts = [self._context_number(place, start, len(words)) for place, start in enumerate(starts)]
        prompted = [
            replace(start, messages=worded(group.task, words[context - 1]), origin=Origin.GUIDED) if context else start
            for start, context in zip(starts, contexts, strict=True)
        ]
        rollouts = await together(play(start) for start in prompted)
        for rollout, context in zip(rollouts, contexts, strict=True):
            rollout.facts["context"] = float(context)
        nudged = [each for each in rollouts if each.origin is Origin.GUIDED and each.is_scored and each.turns]
        return [*rollouts, *(twin(each, group.task.messages, play) for each in nudged)]

    def _context_number(self, place: int, start: Start, count: int) -> int:
        is_plain = np.random.default_rng(start.key).random() < self.dropout
        return 0 if is_plain else 1 + place % count


def _contexts_of(task: Task) -> tuple[str, ...]:
    """The contexts that a row brings in its column `context`: a text, or a list of texts."""
    given = columns_of(task).get("context")
    listed = given if isinstance(given, list) else [given]
    return tuple(text for text in listed if isinstance(text, str) and text.strip())


# NudgeRL's advantage (2605.15726): a rollout against its context, and its context against the whole group.

_NAME = "context"  # fact: number of the rollout's context; 0: none


@dataclass(frozen=True)
class ByContext(Advantage):
    """Advantage: (r - mean of its context) + between * (mean of its context - mean of all), whitened over the group.

    Without a context the first part is r - mean of all. Whitening subtracts the mean and divides by the population
    standard deviation + epsilon. A twin gets its parent's advantage, and 0 where the parent is not scored. With between
    = 1 this is GRPO, with or without contexts.
    """

    between: float = 1.1  # weight of the context's mean in its rollouts' advantage
    epsilon: float = 1e-5  # added to the standard deviation

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rollouts = made(group.scored)
            within, between = _parts(rollouts)
            advantage = within + self.between * between
            centred = advantage - advantage.mean() if len(advantage) else advantage
            whitened = centred / (centred.std() + self.epsilon) if len(advantage) else advantage
            advantages = {rollout.id: float(value) for rollout, value in zip(rollouts, whitened, strict=True)}
            for rollout in group.scored:
                rollout.set_advantage(
                    advantages.get(rollout.parent, 0.0) if is_twin(rollout) else advantages[rollout.id]
                )

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: distance between contexts, and mean reward of rollouts with a context minus those without."""
        rollouts = [rollout for group in groups for rollout in made(group.scored)]
        apart = [abs(float(each)) for group in groups for each in _parts(made(group.scored))[1]]
        nudged = [rollout.reward for rollout in rollouts if _context(rollout)]
        plain = [rollout.reward for rollout in rollouts if not _context(rollout)]
        gain = float(np.mean(nudged) - np.mean(plain)) if nudged and plain else 0.0
        return {"between_contexts": sum(apart) / max(len(apart), 1), "context_gain": gain}


def _parts(rollouts: Sequence[Rollout]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """r - mean of its context, and that mean - mean of all: [N], [N]. Without a context: r - mean, and 0."""
    rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
    rewards = rewards - rewards[:1]  # equal ones give exactly 0
    contexts = np.array([_context(rollout) for rollout in rollouts])
    mean = rewards.mean() if len(rewards) else 0.0
    own = np.full(len(rewards), mean)
    for context in set(contexts.tolist()) - {0.0}:
        own[contexts == context] = rewards[contexts == context].mean()
    return rewards - own, own - mean


def _context(rollout: Rollout) -> float:
    return rollout.facts.get(_NAME, 0.0)


def nudgerl(
    setting: Setting = Setting(env="guess:4"),
    words: str = "half+up",  # contexts before the question, joined by +
    dropout: float = 0.5,  # probability of a rollout to lose its context
    between: float = 1.1,  # weight of the context's mean in its rollouts' advantage
    distilled: float = 0.1,  # weight of the term that reads all rollouts without a context
) -> Run:
    """A group is group_size rollouts, assigned to the contexts in turn; some lose theirs."""
    plain = (Origin.POLICY, Origin.REPLAYED)
    return setting.run(
        "nudgerl",
        ByContext(between),
        (Among(Clip(0.2, 0.2), (Origin.POLICY, Origin.GUIDED)), Among(Reinforce(distilled), plain)),
        strategy=Nudged(tuple(words.split("+")), dropout),
        reduction=WithTwins(),
        minibatches=2,
    )
