"""AceCoder's reward model: which of the reference's programs make pairs, and what is recited about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from strop.backends import Completion
from strop.environments.bundled.programs import Programs
from strop.environments.code.cases import Cases
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.reward.acecoder import ProgramPairs
from strop.types import Group, IntArray, Message, Origin, Outcome, Rollout, Sampling, Task
from tests.generate.talking import Recording, ids, policy_of, save_folder

TASK = Task((Message("user", "double x"),), str(Cases("f", ([1], [2], [3], [4]), (2, 4, 6, 8))), "programs", 1)
RIGHT, HALF, WORSE, NONE = (f"f=lambda x: {code}" for code in ("2*x", "2*x*(x<3)", "2*x*(x<2)", "0"))


@dataclass
class Policies(Recording):
    policy_names: list[str] = field(default_factory=list)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.policy_names.append(sampling.policy_name)
        return await super().sample(prompt, sampling, key)


def played(folder: Path, *completions: str) -> tuple[list[Rollout], GroupPlayer]:
    engine = Policies([f"{completion}|" for completion in completions])
    policy = policy_of(save_folder(folder), engine)
    strategy, env, group = ProgramPairs(), Programs(1), Group(0, TASK, [])
    strategy.meet(policy)
    play = GroupPlayer(group, policy, (env,), Chat(), 0, lambda group: None)  # type: ignore[arg-type,return-value]

    async def made() -> list[Rollout]:
        found = await strategy(group, [play.another() for _ in completions], play)
        await env.trials.close()
        await strategy.trials.close()
        return found

    found = asyncio.run(made())
    assert engine.policy_names == ["reference"] * len(completions)  # who writes programs is not who learns
    return found, play


def test_verdicts_on_pairs_by_pass_rate(tmp_path: Path) -> None:
    found, play = played(tmp_path, HALF, RIGHT, NONE, RIGHT, WORSE)
    assert [(each.comparison_group, each.completion, each.turn_rewards) for each in found] == [
        ("pair 0", "+", (1.0,)),
        ("pair 0", "-", (0.0,)),
        ("pair 1", "+", (1.0,)),
        ("pair 1", "-", (0.0,)),
    ]
    assert all(each.origin is Origin.TEACHER and each.num_tokens == 1 for each in found)
    shown = [each.turns[0].prompt.tolist() for each in found]
    for prompt, program in zip(shown, (RIGHT, HALF, RIGHT, WORSE), strict=True):
        text = ids(program)
        assert any(prompt[at : at + len(text)] == text for at in range(len(prompt))), "the model reads the program"
    assert [each.turns[0].aux["verdicts"].tolist() for each in found] == [[ids("+-")]] * 4
    unused = play.unused(found)
    assert len(unused) == 5 and all(each.outcome is Outcome.PRUNED for each in unused)


def test_a_task_without_a_pair_brings_nothing(tmp_path: Path) -> None:
    assert played(tmp_path, RIGHT, NONE, RIGHT)[0] == []
