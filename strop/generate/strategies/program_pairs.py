"""AceCoder's reward model (2502.01718): programs that the model writes make pairs by the tests they pass, and verdicts
on both are recited.

Papers: acecoder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.code_execution import Trials, cases_of, program_in
from strop.environments.judging.verdict import BAD, GOOD
from strop.filter.pass_rate_pairs import PassRatePairs
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.policy_names import REFERENCE
from strop.generate.strategies.support.forced_reply import Saying
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.roles import Strategy
from strop.types import Group, IntArray, Start, Trajectory


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

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        made = await together(play(replace(start, voice=REFERENCE)) for start in starts)
        counted = [attempt for attempt in made if attempt.is_scored]
        tried = await together(self.trials.of(attempt.reply, cases_of(group.task)) for attempt in counted)
        programs = [program_in(attempt.reply).text for attempt in counted]
        chosen = self.pairs(programs, [trial.share for trial in tried])
        told = [
            (counted[place].reply, word, f"pair {number}")
            for number, pair in enumerate(chosen)
            for place, word in zip(pair, (GOOD, BAD), strict=True)
        ]
        begun = [
            (play.another(family=family), Saying(word, float(word == GOOD), reply)) for reply, word, family in told
        ]
        said = await together(play(start, agent) for start, agent in begun)
        # a pair of which one has no room for its verdict in the context is none
        short = {attempt.family for attempt in said if not has_verdict(attempt)}
        return [as_verdict(attempt, self._ids) for attempt in said if attempt.family not in short]
