"""CoMAS: multi-agent discussion with REINFORCE++ per agent, rewarded by a scorer of solutions and evaluations.

Title: CoMAS: Co-Evolving Multi-Agent Systems via Interaction Rewards
Paper: arXiv 2510.08529 (2025)
Claim: Without labels better than untrained agents in all settings tried, and more so with more agents.
Reading: The agents are policy names of one policy, each with its own baseline and standard deviation; the KL
    coefficient is ours. A rule that knows no answers stands in for the scoring agent, so no scorer is trained. Two
    rounds, where the paper has two for each of four agents: the bundled model's context is short. One evaluation per
    solution. The environment's own reward is logged with weight 0.
Left out: Separate weights for each agent, and a reward for the format of a score.
Acts: policy_names > 1 and scored_share > 0 and solution_pay > 0 with steps=1
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of, judged_or_none, text_of
from strop.filter.judges.readers import Number
from strop.filter.paid_text import Paid, Span
from strop.generate.agents.chat import Chat
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Dialogue, Episode, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.comparisons import scored_discussion
from strop.text.llm_prompt import judgement
from strop.training.arithmetic.td_traces import KL_STATISTICS, kl_payments, whitened
from strop.training.arithmetic.turn_returns import token_payments
from strop.training.losses.clip import Clip
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Message, Metrics, Origin, Rollout, Sampling, Task, Turn

# CoMAS's reward (2510.08529): a solution and the evaluation that looks for its flaws share one point.
#
# A scorer reads both and answers 3 if the solution is right and the evaluation useless, 1 if a fatal error was found,
# and 2 in between. If its answer cannot be parsed, both turns get no reward and are not trained on.

NAME = "scored"  # span over the tokens of scored turns
ASKED = (
    "The completion answers the task, and the other text looks for its flaws. Answer with 3 if the completion is "
    "right and the other finds nothing, 2 if there is something in both, 1 if the other finds a fatal error."
)
_SAMPLING = Sampling(temperature=0.0, max_tokens=256)  # of the scorer
_SCORE = Number(1, 3, clamps=False)


@dataclass(frozen=True)
class Interactions(Reward):
    """(score - 1) / 2 at the end of a solution, (3 - score) / 2 at the end of its evaluation; both turns alternate."""

    scorer: LLMClient
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below task, solution and evaluation

    is_inline: ClassVar[bool] = True  # awaits its scorer, which has a deadline

    def __call__(self, group: Group) -> Awaitable[Sequence[Paid]]:
        return all_of(self._paid(rollout) for rollout in group.rollouts)

    async def _paid(self, rollout: Rollout) -> Paid:
        rounds = list(zip(rollout.turns[0::2], rollout.turns[1::2], strict=False))
        scores = await all_of(self._score(rollout, solution, evaluation) for solution, evaluation in rounds)
        found = [(number, score) for number, score in enumerate(scores) if score is not None]
        paid = [(2 * number, (score - 1) / 2) for number, score in found]
        paid += [(2 * number + 1, (3 - score) / 2) for number, score in found]
        return Paid(0.0, tuple(_span(rollout.turns[turn], turn, value) for turn, value in sorted(paid)))

    async def _score(self, rollout: Rollout, solution: Turn, evaluation: Turn) -> int | None:
        parts = {"completion": solution.message.content, "other": evaluation.message.content}
        asked = judgement(self.prompt, task=text_of(rollout.task), **parts)
        score = await judged_or_none(self.scorer, asked, _SCORE, _SAMPLING)
        return None if score is None else round(score)


def _span(turn: Turn, number: int, value: float) -> Span:
    return Span(number, 0, len(turn.message.content), value, name=NAME)


# CoMAS's discussion (2510.08529): in each round one agent solves and another looks for flaws in the solution.


@dataclass(frozen=True)
class Discussion(Agent):
    """Discussion of `agents` policy names of one policy; each turn's agent is sampled uniformly, in a new context.

    Turns alternate: a solution, then an evaluation of it. Both read the last `history` rounds, without their scores.
    The environment gets the last solution.
    """

    agents: int = 4  # number of policy names
    rounds: int = 8  # of a rollout: two for each agent
    history: int = 2  # rounds in a turn's context

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.agents < 1 or self.rounds < 1 or self.history < 0:
            raise ConfigurationError(
                f"Discussion needs agents >= 1, rounds >= 1 and history >= 0, got {self.agents}, {self.rounds} and "
                f"{self.history}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "Discussion cannot continue a rollout: use a strategy that starts rollouts without a prefix"
            )
        await episode.reset(task)
        rng, messages = random.Random(dialogue.key), list[Message]()
        while len(messages) < 2 * self.rounds:
            context = self._context(task, messages)
            talk = dialogue.aside(context, f"agent {rng.randrange(self.agents)}")
            if talk.is_cut:
                break  # the discussion no longer fits into the context
            messages.append(await talk.completion())
        solutions = messages[0::2]
        paid = (await episode.step(solutions[-1])).reward if solutions else None
        return () if paid is None else (*[0.0] * (len(messages) - 1), paid)

    def _context(self, task: Task, messages: list[Message]) -> tuple[Message, ...]:
        """Context of the next turn: the task, then the last rounds; an evaluation also reads its solution."""
        count = 2 * self.history + len(messages) % 2
        words = " ".join(_plain(each) for each in messages[len(messages) - min(count, len(messages)) :])
        *before, question = task.messages
        content = f"{question.content} hint: {words}" if words else question.content
        return (*before, replace(question, content=content))


def _plain(message: Message) -> str:
    return message.content.replace(OPEN, " ").replace(CLOSE, " ").strip()


# CoMAS's advantage (2510.08529): REINFORCE++ for each agent separately, over the tokens of scored turns.

_SCORED = "span/scored"  # see `filter/span_rewards.py`


@dataclass(frozen=True)
class PerPolicy(Advantage):
    """A_t = (r - kl * sum of log(policy / reference) from t to its turn's end - mean) / (std + epsilon).

    r is the turn's reward; mean and population std are over all tokens that one policy name sampled in scored turns of
    the batch. Tokens of other turns get 0.
    """

    kl: float = 0.01  # coefficient of log(policy / reference)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.kl < 0:
            raise ConfigurationError(f"PerPolicy needs kl >= 0, got {self.kl}")

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return KL_STATISTICS if self.kl else frozenset()

    def __call__(self, groups: Sequence[Group]) -> None:
        by_policy: dict[str, list[tuple[Rollout, slice, NDArray[np.float64]]]] = {}
        for rollout in (each for group in groups for each in group.scored):
            rollout.set_advantage(0.0)
            for turn, tokens, returns in self._turns(rollout):
                by_policy.setdefault(turn.sampling.policy_name, []).append((rollout, tokens, returns))
        for own in by_policy.values():
            standard = whitened([returns for _, _, returns in own], self.epsilon)
            for (rollout, tokens, _), advantage in zip(own, standard, strict=True):
                assert rollout.advantages is not None
                rollout.advantages[tokens] = advantage

    def _turns(self, rollout: Rollout) -> list[tuple[Turn, slice, NDArray[np.float64]]]:
        """Each scored turn, the slice of its tokens, and their returns."""
        paid, price = token_payments(rollout), kl_payments(rollout, self.kl)
        found, first = [], 0
        for turn in rollout.turns:
            tokens = slice(first, first := first + len(turn.tokens))
            if _is_scored(turn) and len(turn.tokens):
                found.append((turn, tokens, paid[tokens].sum() + price[tokens][::-1].cumsum()[::-1]))
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the number of policy names, the share of scored turns and the mean reward of scored solutions."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        turns = [turn for rollout in rollouts for turn in rollout.turns]
        pays = [pay for rollout in rollouts for pay in self._solutions(rollout)]
        return {
            "policy_names": float(len({turn.sampling.policy_name for turn in turns})),
            "scored_share": float(np.mean([_is_scored(turn) for turn in turns])) if turns else 0.0,
            "solution_pay": float(np.mean(pays)) if pays else 0.0,
        }

    def _solutions(self, rollout: Rollout) -> list[float]:
        """Rewards of the scored solutions: every other turn, from the first."""
        paid, ends = token_payments(rollout), np.cumsum([0, *(len(turn.tokens) for turn in rollout.turns)])
        sums = [float(paid[low:high].sum()) for low, high in pairwise(ends)]
        return [pay for pay, turn in zip(sums[0::2], rollout.turns[0::2], strict=True) if _is_scored(turn)]


def _is_scored(turn: Turn) -> bool:
    return bool(turn.aux.get(_SCORED, np.zeros(1)).any())


def comas(
    setting: Setting = Setting(),
    judge: str = "rules",  # scores solutions by the discussion (a named part)
    agents: int = 4,  # policy names of the one policy
    rounds: int = 2,  # solutions per rollout, each with an evaluation
    history: int = 2,  # rounds in a turn's context
    kl: float = 0.01,  # coefficient of log(policy / reference) in the return
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """REINFORCE++ for each policy name separately, on rewards from the discussion."""
    run = setting.run("comas", PerPolicy(kl), (Clip(clip, clip),), agent=Discussion(agents, rounds, history))
    scorer = named_part("judge", judge, setting, scored_discussion)
    run.rewards, run.reward_seconds = (Interactions(scorer), measured(run.envs)), reward_seconds(judge)
    run.evaluation = replace(run.evaluation, agent=Chat())  # a discussion ends with an evaluation, not with an answer
    return run
