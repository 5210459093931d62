"""REINFORCE++ on programs that pass every test, or please a reward model that learned from pairs by pass rate.

Title: ACECODER: Acing Coder RL via Automated Test-Case Synthesis
Paper: arXiv 2502.01718 (2025)
Claim: Best of 32 by its reward model gains 10 points for an 8B model; 80 steps of RL with tests gain over 25 points on
    HumanEval-plus for a 7B one.
Reading: 1 where all tests pass and 0 else, as released; a share of tests invites special cases. With learns_pairs the
    reward model is made instead: programs of the model it begins as make pairs, and a checkpoint of that run is what
    `reward_model` reads. Tests are the environment's own, which are right by what steps mean, where the paper's are
    written
    by a model and kept where a stronger one's program passes them. The bundled model has never written a program, so a
    short supervised run comes before.
Left out: Tests that a model writes, which hardtests has; best of N at the end.
Acts: reward/passed_tests > 0 and advantage > 0 with warmup_steps=0, model=CODER
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.code_execution import Trials, cases_of, program_in
from strop.environments.judging.verdict import BAD, GOOD
from strop.errors import ConfigurationError
from strop.filter.rewards.reward_model import Scored
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.policy_names import REFERENCE
from strop.generate.reward_model import RewardModel
from strop.generate.strategies.support.forced_completion import Saying
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Group, IntArray, Rollout, Start

# AceCoder's pairs (2502.01718): a program that passes many tests against one that passes clearly fewer, but some.
#
# Reading: pairs are taken in the order of the winners' pass rates, then of the losers', equal ones in the order of the
# rollouts.

_ROUNDING = 1e-9  # 1 - 0.6 is a little less than 0.4


@dataclass(frozen=True)
class PassRatePairs:
    """The better passes at least `least` of the tests and `gap` more than the other, which passes some.

    A loser that passes nothing crashes, as a rule, and teaches nothing. Equal programs count once.
    """

    least: float = 0.8  # share of tests that a winner passes
    gap: float = 0.4  # by which it passes more than the loser
    most: int = 3  # pairs of one task

    def __post_init__(self) -> None:
        if not (0 < self.gap <= self.least <= 1 and self.most >= 1):
            raise ConfigurationError(
                f"pairs need 0 < gap <= least <= 1 and most >= 1, got {self.gap:g}, {self.least:g} and {self.most}"
            )

    def __call__(self, programs: Sequence[str], rates: Sequence[float]) -> list[tuple[int, int]]:
        """Places of winner and loser of each pair."""
        once = [place for place, text in enumerate(programs) if text not in programs[:place]]
        ranked = sorted(once, key=lambda place: -rates[place])
        found = [
            (winner, loser)
            for above, winner in enumerate(ranked)
            for loser in ranked[above + 1 :]
            if self.is_pair(rates[winner], rates[loser])
        ]
        return found[: self.most]

    def is_pair(self, better: float, worse: float) -> bool:
        is_clear = better - worse >= self.gap - _ROUNDING
        return better >= self.least - _ROUNDING and is_clear and worse > 0


# AceCoder's reward model (2502.01718): programs that the model writes make pairs by the tests they pass, and verdicts
# on both are recited.


@dataclass
class ProgramPairs(Strategy):
    """Two verdicts of one token for each pair, a family of their own; the winner's is paid 1, the loser's 0.

    The reference writes the programs, since the policy becomes the reward model: that needs the engine `WithReference`.
    Programs are made and not brought. A task without a pair brings nothing.
    """

    pairs: PassRatePairs = field(default_factory=PassRatePairs)
    trials: Trials = field(default_factory=Trials)
    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        made = await together(play(replace(start, policy_name=REFERENCE)) for start in starts)
        counted = [rollout for rollout in made if rollout.is_scored]
        tried = await together(self.trials.of(rollout.completion, cases_of(group.task)) for rollout in counted)
        programs = [program_in(rollout.completion).text for rollout in counted]
        chosen = self.pairs(programs, [trial.share for trial in tried])
        told = [
            (counted[place].completion, word, f"pair {number}")
            for number, pair in enumerate(chosen)
            for place, word in zip(pair, (GOOD, BAD), strict=True)
        ]
        begun = [
            (play.another(comparison_group=family), Saying(word, float(word == GOOD), completion))
            for completion, word, family in told
        ]
        said = await together(play(start, agent) for start, agent in begun)
        # a pair of which one has no room for its verdict in the context is none
        short = {rollout.comparison_group for rollout in said if not has_verdict(rollout)}
        return [as_verdict(rollout, self._ids) for rollout in said if rollout.comparison_group not in short]


def acecoder(
    setting: Setting = Setting(env="programs:1+programs:2"),
    is_binary: bool = True,  # or the share of tests passed
    learns_pairs: bool = False,  # make the reward model
    reward_model: str = "",  # checkpoints/step-N of the run that made one, which pays in place of the tests
    kl: float = 0.001,  # coefficient of the per-token KL penalty log(policy / reference)
    clip: float = 0.2,  # PPO clip range of the importance ratio
    warmup_steps: int = 20,  # supervised warm-up steps before RL
) -> Run:
    """Returns of the batch, standardised; the penalty is within them."""
    trials = Trials(setting.isolation)
    if learns_pairs:
        engine = WithReference(engine_on(setting.device), engine_on(setting.device))
        parts = {"strategy": ProgramPairs(trials=trials), "engine": engine, "reduction": SequenceMean()}
        run = setting.run("acecoder", Constant(), (BradleyTerry(),), **parts)
    else:
        run = setting.run("acecoder", TokenReturns(kl=kl), (Clip(clip, clip),), minibatches=2, reward_seconds=60.0)
        tests = PassedTests("all" if is_binary else "share", trials, weight=0.0 if reward_model else 1.0)
        judged = (Scored(RewardModel(reward_model, setting.device)),) if reward_model else ()
        run.rewards = (tests, *judged)
    run.warmup = shown(setting, "acecoder", warmup_steps)
    return run
