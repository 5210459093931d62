"""SCOPE: what is kept of a failed rollout, what an expert adds, and that every token stays in one place."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic, terms_of
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.scope import Salvaged
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Task
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like

SHOWN = "1+1=2 2+2=4 4+1=5 5"


class Sums(Completions):
    """An environment of one completion that knows the worked solution above."""

    def demonstrate(self) -> Message:
        return Message("assistant", SHOWN)


def played(folder: Path, completions: list[str], most: float = 1.0, env: Completions | None = None) -> list[Rollout]:
    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = float(rollout.completion.endswith(" 5"))
            rollout.facts[SUCCESS] = rollout.reward

    policy = policy_of(save_folder(folder), Recording([f"{completion}|" for completion in completions] * 2))
    play = GroupPlayer(Group(0, TASK, []), policy, (env or Sums(1),), Chat(), 0, score)
    strategy = Salvaged(Demonstrate(), most)
    strategy.meet(policy)
    return asyncio.run(strategy(play.group, [play.another() for _ in completions], play))


def test_right_steps_are_kept_and_the_rest_is_the_experts(tmp_path: Path) -> None:
    """The third step is wrong: 12 tokens are kept; `4+1=5 5` and the end, 8 tokens, are pruned."""
    lost, saved = played(tmp_path, ["1+1=2 2+2=4 4+1=6 6"])
    assert lost.id == "0/0" and lost.outcome is Outcome.PRUNED and saved.id == "0/2" and saved.parent == "0/0"
    (turn,) = saved.turns
    assert turn.message.content == SHOWN and saved.origin is Origin.GUIDED and saved.outcome is Outcome.FINISHED
    assert turn.tokens.tolist() == ids(SHOWN + "|") and turn.num_prefix == 0
    assert turn.versions.tolist() == [1] * 12 + [-1] * 8 and turn.logprobs.tolist() == [-0.5] * 12 + [0.0] * 8
    assert saved.facts == {"kept": 12 / 20} and saved.num_sampled == 12
    (rest,) = lost.turns
    assert rest.prefix.tolist() == ids("1+1=2 2+2=4 ") and rest.tokens.tolist() == ids("4+1=6 6|")
    assert rest.versions.tolist() == [1] * 8 and rest.message.content == "1+1=2 2+2=4 4+1=6 6"


@pytest.mark.parametrize(
    ("completion", "why"),
    [
        ("1+1=3 3+2=5 6", "its first step is wrong"),
        ("1+1=2 2+2=5 5", "right in the end"),
        ("1+1=2 1+3=4 4+1=6 6", "another right way than the demonstration's"),
        ("7", "no step at all"),
        ("1+1=2 2+2=4 4+1=5 7", "no step is wrong, and what a judge does not see cannot be salvaged"),
    ],
)
def test_what_cannot_be_salvaged_stays(tmp_path: Path, completion: str, why: str) -> None:
    (rollout,) = played(tmp_path, [completion])
    assert rollout.outcome is Outcome.FINISHED and rollout.origin is Origin.POLICY and rollout.num_sampled, why


def test_at_most_a_share_of_the_failures(tmp_path: Path) -> None:
    """Of six rollouts two are right and four failed, three of which could be salvaged: half of four are."""
    wrong = "1+1=2 2+2=5 6"
    found = played(tmp_path, ["3", wrong, SHOWN, wrong, wrong, SHOWN], most=0.5)
    assert [index for index, each in enumerate(found) if each.outcome is Outcome.PRUNED] == [1, 3]
    assert [each.parent for each in found[6:]] == ["0/1", "0/3"] and [each.completion for each in found[6:]] == [
        SHOWN
    ] * 2
    assert len(played(tmp_path, [wrong], most=0.9)) == 1, "less than one is none"


def test_environments_that_fail_answer_or_have_no_demonstration(tmp_path: Path) -> None:
    wrong = "1+1=2 2+2=5 6"
    assert [each.outcome for each in played(tmp_path, [wrong], env=Sums(1, is_broken=True))] == [Outcome.FAILED]
    assert len(played(tmp_path, [wrong] * 2, env=Sums(2))) == 2, "two turns are not joined"
    with pytest.raises(ConfigurationError, match=r"Completions has no demonstrate\(\)"):
        played(tmp_path, [wrong], env=Completions(1))
    with pytest.raises(ConfigurationError, match="most <= 1, got 0"):
        Salvaged(Demonstrate(), 0)
    with pytest.raises(ConfigurationError, match="meet"):
        Salvaged(Demonstrate())._known()


def slipping(prompt: str, key: int) -> str:
    """The first step right, the second wrong for odd keys."""
    one, two, three = terms_of(Task((Message("user", prompt),), "", ""))
    total = one + two + three + key % 2
    return f"<think>{one}+{two}={one + two} {one + two}+{three}={total}</think>{total}"


def test_in_a_run_every_token_stays_in_one_place(tmp_path: Path) -> None:
    engine, strategy = Counting(slipping), Salvaged(Demonstrate(least=1.0), 1.0)
    env = Hearing(Arithmetic(2))
    found = flown(save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db", strategy, engine, envs=(env,))
    saved = [each for each in found.rollouts.values() if each.origin is Origin.GUIDED]
    assert saved and found.row["reward_of/guided"] == 1.0
    for each in saved:
        lost = found.rollouts[each.parent]
        kept = lost.turns[0].prefix
        assert each.turns[0].tokens[: len(kept)].tolist() == kept.tolist() and each.num_sampled == len(kept)
        assert each.completion == env.solution(each.task) and lost.outcome is Outcome.PRUNED
    assert sorted(found.heard) == sorted(each.completion for each in found.rollouts.values())
    assert len(found.rollouts) == 24 + len(saved) + len({each.id.split("/")[0] for each in saved})
