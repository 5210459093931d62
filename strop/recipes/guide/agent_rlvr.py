"""Agent-RLVR: failed tasks are retried with a teacher's guidance; DPO prefers the success to the earlier failure.

Key: agent-rlvr
Title: Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards
Paper: arXiv 2506.11425 (2025)
Claim: From 9.4 to 22.4 % of SWE-Bench Verified at 72B, and 27.8 % with a reward model at test time.
Reading: Details beyond a summary were not found. Pairs are the best and the worst rollout of a task: a success with
    guidance and the first failure without. Guidance is removed from the prompt before training. DPO with beta 0.1 and
    the initial policy as the reference. A task solved in the first wave never calls the teacher; an unsolved one makes
    no pair. A stand-in rule replaces the teacher: it gives the right steps up to the first that the completion lacks.
Left out: The outcome reward model that selects among rollouts at test time.
Acts: share/guided > 0 and margin != 0 with env=arithmetic:6
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.control.budgets.waves import AgainWhenLost
from strop.environments.format.hints import with_hint
from strop.errors import LLMClientError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.judges.batch_ask import heard
from strop.recipes.named_parts import named_part
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Player, Strategy
from strop.run import Run
from strop.standins.feedback import put_right
from strop.text.llm_prompt import question
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Origin, Rollout, Sampling, Start, Task

# Agent-RLVR's guidance (2506.11425): a teacher explains a failure, and the task is retried with that guidance.
#
# Readings: after a failed wave, each rollout is retried with guidance of its own, placed after the question. The
# teacher reads task, right answer and failed completion. If the teacher fails, there is no retry.

WANTED = (
    "The completion to the task failed. Say in a few words how to go about it: a plan, what is wrong in the "
    "completion, where to "
    "look. Do not give the answer away."
)


_FAILED = "I do not know where to begin."  # completion that is shown before the run


@dataclass(frozen=True)
class GuidedRetry(Strategy, Asks):
    """A first wave without guidance; later rollouts read the feedback of `teacher` on a failed one."""

    teacher: LLMClient
    prompt: str = WANTED  # what the teacher is asked, below the task, its answer and the failed completion
    tokens: int = 512  # most tokens of an answer

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.own:
            return await together(play(start) for start in starts)
        failed = [group.own[index % len(group.own)] for index in range(len(starts))]
        again = await together(self._again(*each, play) for each in zip(failed, starts, strict=True))
        return [rollout for rollout in again if rollout is not None]

    async def try_clients(self, task: Task) -> None:
        await self._hint(task, _FAILED, 0)

    async def _hint(self, task: Task, completion: str, key: int) -> str:
        asked = question(self.prompt, task=task.messages[-1].content, answer=task.answer, completion=completion)
        hint = await self.teacher.ask([Message("user", asked)], Sampling(temperature=0.0, max_tokens=self.tokens), key)
        return heard(self.teacher, hint)

    async def _again(self, failed: Rollout, start: Start, play: Player) -> Rollout | None:
        task = failed.task
        try:
            hint = await self._hint(task, failed.completion, start.key)
        except LLMClientError:
            return None
        rollout = await play(replace(start, messages=with_hint(task, hint), origin=Origin.GUIDED))
        return play.retold(rollout, task.messages) if rollout.turns else rollout


def agent_rlvr(
    setting: Setting = Setting(env="arithmetic:6", group_size=2),
    teacher: str = "rules",  # writes guidance (a named part)
    beta: float = 0.1,  # of DPO
) -> Run:
    """If all rollouts failed, each is retried once with guidance; pairs are trained without it."""
    return setting.run(
        "agent_rlvr",
        Constant(),
        (Dpo(beta),),
        budget=AgainWhenLost(setting.group_size, setting.group_size),
        strategy=GuidedRetry(named_part("teacher", teacher, setting, put_right, ("arithmetic",))),
        gates=(BestAndWorst(),),
        reduction=SequenceMean(),
    )
