"""mobile-r1, stepagent and ui-s1: actions read and compared, stages, mended rollouts and their advantage, by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.format.actions import Action, action_in
from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.single_action import OneAction, paid
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.turn_ops import as_prefix
from strop.recipes.agent.mobile_r1 import ActionsFirst, StepFormat
from strop.recipes.agent.stepagent import (
    DiscriminatorAdvantage,
    ExpertStepGroup,
    ExpertStepPairs,
    OneDemonstration,
    stepagent,
)
from strop.recipes.agent.ui_s1 import Patched, StepAndEpisode, step_returns, step_reward
from strop.roles import Agent
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Origin, Outcome, Rollout, Task, ToolCall
from tests.building import TASK, turn
from tests.generate.talking import Recording, policy_of, save_folder

SECRET = json.dumps({"store": {"red": 3, "blue": 4, "gold": 9}, "total": 7})
STORE = Task((Message("user", "sum red blue"),), SECRET, "keyvalue", 2)
RED, BLUE, GOLD = (f"<call>get {key}</call>" for key in ("red", "blue", "gold"))
ENOUGH = "<think>3+4=7</think>7"


def said(text: str) -> Message:
    return Message("assistant", text)


def player(folder: Path, completions: list[str], agent: Agent, version: int = 0) -> tuple[GroupPlayer, Recording]:
    async def score(group: Group) -> None:
        return None

    engine = Recording([f"{completion}|" for completion in completions])
    policy = policy_of(save_folder(folder), engine)
    return GroupPlayer(Group(0, STORE, [], version), policy, (KeyValue(2),), agent, 0, score), engine


def played(folder: Path, completions: list[str], agent: Agent) -> Rollout:
    play, _ = player(folder, completions, agent)
    return asyncio.run(play(play.another()))


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (said(RED), Action("get", "red")),
        (said("<think>3+4=7</think><call>set gold 7</call>"), Action("set", "gold 7")),
        (said("<think>3+4=7</think> 7 "), Action("answer", "7")),
        (said(f"<think>{RED}</think>7"), Action("answer", "7")),
        (Message("assistant", "", (ToolCall("get", "red"),)), Action("get", "red")),
        (said(RED + BLUE), Action()),
        (said("<call>get <call>get red</call>"), Action()),
        (said("<call>get red"), Action()),
        (said("get red</call>"), Action()),
        (said("<think>7"), Action()),
        (said(""), Action()),
        (said("<call></call>"), Action()),
    ],
)
def test_actions_are_read(completion: Message, expected: Action) -> None:
    assert action_in(completion) == expected
    assert action_in(completion).is_formed == (expected != Action())


# ---- mobile-r1


def test_an_action_is_paid_its_kind_and_its_arguments() -> None:
    assert [paid(said(text), said(RED)) for text in (RED, GOLD, "7", "<call>get red")] == [2.0, 1.0, 0.0, 0.0]


def test_one_action_is_asked_where_the_turns_before_lead(tmp_path: Path) -> None:
    """After `get red` the expert gets blue: that is 2, another key 1; the turns before earn nothing."""
    for completion, earned in ((BLUE, 2.0), (GOLD, 1.0), ("7", 0.0)):
        play, engine = player(tmp_path, [completion], OneAction())
        shown = asyncio.run(play(play.another(), Demonstrate()))
        start = play.another(turns=as_prefix(shown.turns[:1]), origin=Origin.BRANCHED)
        found = asyncio.run(play(start))
        assert found.turn_rewards == (0.0, earned) and len(engine.prompts) == 1
        assert [len(turn.tokens) for turn in found.turns] == [0, len(completion) + 1]
        assert [message.content for message in found.turns[1].told] == ["3"]


def test_stages(tmp_path: Path) -> None:
    """Siblings act at the same place; from version `until` on they are whole rollouts and nothing is shown."""
    places = set()
    for seed in range(6):
        play, _ = player(tmp_path, ["7"] * 3, Chat())
        play.seed = seed
        group = play.group
        starts = [play.another() for _ in range(3)]
        found = asyncio.run(ActionsFirst(Demonstrate(), OneAction(), until=1)(group, starts, play))
        counts = [len(rollout.turns) for rollout in found]
        assert counts == counts[:1] * 3 and all(rollout.num_tokens == 2 for rollout in found)
        last = counts[0] == 3
        assert [rollout.turn_rewards[-1] for rollout in found] == [2.0 if last else 0.0] * 3
        assert len(play.unused(found)) == 1 and play.unused(found)[0].num_sampled == 0
        places.add(counts[0])
    assert places == {1, 2, 3}, "from the first completion to the last"
    play, _ = player(tmp_path, ["7"] * 2, Chat(), version=1)
    found = asyncio.run(
        ActionsFirst(Demonstrate(), OneAction(), until=1)(play.group, [play.another() for _ in range(2)], play)
    )
    assert [rollout.turn_rewards for rollout in found] == [(1.0,), (1.0,)] and len(play.made) == 2
    with pytest.raises(ConfigurationError, match="until >= 0"):
        ActionsFirst(Demonstrate(), OneAction(), -1)


def test_the_share_of_well_formed_completions(tmp_path: Path) -> None:
    found = played(tmp_path, [RED, RED + BLUE, "7"], Chat())
    begun = Rollout("1", STORE, (*as_prefix(found.turns[:1]), *found.turns[1:]), Outcome.FINISHED)
    empty = Rollout("2", STORE, (), Outcome.FAILED)
    assert StepFormat()(Group(0, STORE, [found, begun, empty])) == pytest.approx([2 / 3, 1 / 2, 0.0])


# ---- stepagent


def test_an_action_beside_the_experts_at_the_same_place(tmp_path: Path) -> None:
    """The first of a group is what the expert did there, worth 2, by nobody's weights; the others are the policy's."""
    places = set()
    for seed in range(6):
        play, _ = player(tmp_path, [RED, GOLD], Chat())
        play.seed = seed
        strategy = ExpertStepGroup(Demonstrate(), OneDemonstration(), OneAction())
        found = asyncio.run(strategy(play.group, [play.another() for _ in range(3)], play))
        before = len(found[0].turns) - 1
        assert [len(rollout.turns) for rollout in found] == [before + 1] * 3
        assert found[0].completion == (RED, BLUE, ENOUGH)[before] and found[0].num_sampled == 0
        assert [rollout.turn_rewards[-1] for rollout in found] == [2.0, *((2.0, 1.0), (1.0, 1.0), (0.0, 0.0))[before]]
        assert all(sum(rollout.turn_rewards[:-1]) == 0 for rollout in found)
        past = [[turn.whole.tolist() for turn in rollout.turns[:-1]] for rollout in found]
        assert past[0] == past[1] == past[2] and all(len(turn.tokens) == 0 for turn in found[1].turns[:-1])
        assert found[0].turns[-1].versions.tolist() == [-1] * found[0].num_tokens
        others = Origin.BRANCHED if before else Origin.POLICY
        assert [rollout.origin for rollout in found] == [Origin.TEACHER, others, others], "whose tokens these are"
        places.add(before)
    assert places == {0, 1, 2}
    play, _ = player(tmp_path, [], Chat())
    with pytest.raises(ConfigurationError, match="group_size >= 2"):
        asyncio.run(ExpertStepGroup(Demonstrate(), OneDemonstration(), OneAction())(play.group, [play.another()], play))


def test_the_inverse_form_is_a_policy_gradient_on_steps_that_a_discriminator_pays() -> None:
    run = stepagent(form="inverse", rate=0.3)
    assert (run.strategy, run.advantage) == (ExpertStepPairs(Demonstrate()), DiscriminatorAdvantage(0.3))
    assert (run.losses, run.gates, run.reduction) == ((Reinforce(),), (ZeroVariance(),), SequenceMean())
    (paid_by,) = run.rewards
    assert isinstance(paid_by, Noted) and run.recipe == "stepagent"


def test_an_action_that_is_the_experts_makes_no_pair() -> None:
    """Of equals there is no better one; of several the worst is the other of the pair."""
    pair = [rollout(2.0, reward=2.0), rollout(2.0, reward=2.0)]
    assert BestAndWorst()(Group(0, TASK, pair)).group is None
    kept = BestAndWorst()(Group(0, TASK, [*pair, rollout(1.0, reward=1.0), rollout(0.0, reward=0.0)])).group
    assert kept is not None and [each.reward for each in kept.rollouts] == [2.0, 0.0]


# ---- ui-s1


def test_what_a_step_earns() -> None:
    texts = (RED, GOLD, "7", "<call>get red")
    assert [step_reward(said(text), said(RED)) for text in texts] == pytest.approx([1.0, 0.55, 0.19, 0.0])


def heard(engine: Recording, folder: Path) -> list[str]:
    template = policy_of(folder, engine).template
    return [template.text(prompt) for prompt in engine.prompts]


def test_a_mended_rollout_goes_on_behind_the_experts_completion(tmp_path: Path) -> None:
    play, engine = player(tmp_path, [GOLD, BLUE, ENOUGH], Patched(1))
    found = asyncio.run(play(play.another()))
    assert found.turn_rewards == pytest.approx((0.55, 1.0, 1.0)) and found.outcome is Outcome.FINISHED
    assert [turn.fresh for turn in found.turns] == [False, True, False]
    assert [turn.message.content for turn in found.turns] == [GOLD, BLUE, ENOUGH]
    assert all((turn.versions > 0).all() for turn in found.turns), "nothing of the expert's is written"
    second, third = heard(engine, tmp_path)[1:]
    assert RED in second and GOLD not in second and "3" in second
    assert third.startswith(second) and BLUE in third


def test_the_mismatch_after_the_last_patch_ends_it(tmp_path: Path) -> None:
    assert played(tmp_path, [GOLD, RED], Patched(0)).turn_rewards == pytest.approx((0.55,))
    assert played(tmp_path, [RED, "7", "7"], Patched(1)).turn_rewards == pytest.approx((1.0, 0.19, 1.0))
    assert len(played(tmp_path, [GOLD, RED, BLUE], Patched(1)).turns) == 2
    assert len(played(tmp_path, [RED, BLUE, ENOUGH], Patched(2, max_turns=2)).turns) == 2


def test_without_repairs_the_wrong_completion_stays(tmp_path: Path) -> None:
    play, engine = player(tmp_path, [GOLD, RED, BLUE, ENOUGH], Patched(1, repairs=False))
    found = asyncio.run(play(play.another()))
    assert found.turn_rewards == pytest.approx((0.55, 1.0, 1.0, 1.0)) and not any(turn.fresh for turn in found.turns)
    assert GOLD in heard(engine, tmp_path)[1] and "9" in heard(engine, tmp_path)[1]
    for patches, turns in ((-1, 16), (2, 0)):
        with pytest.raises(ConfigurationError, match="patches >= 0 and max_turns >= 1"):
            Patched(patches, max_turns=turns)


def rollout(*paid: float, reward: float = 0.0, lengths: tuple[int, ...] = ()) -> Rollout:
    turns = tuple(turn(size) for size in lengths or (1,) * len(paid))
    return Rollout("0", TASK, turns, Outcome.FINISHED, reward=reward, turn_rewards=paid)


def test_the_cards_returns() -> None:
    assert step_returns(rollout(1.0, 1.0, 1.0), 0.5) == [1.75, 1.5, 1.0]
    assert step_returns(rollout(1.0, 0.5, 1.0), 0.5) == [1.0, 0.5, 1.0]
    with pytest.raises(ConfigurationError, match="reward for each turn"):
        step_returns(Rollout("0", TASK, (turn(1),), Outcome.FINISHED), 0.5)


def test_credit_of_steps_and_rollouts() -> None:
    """Rewards 2 and .5; returns (1.5, 1) and (.5): a pair is +-1/sqrt 2, a step that is alone 0; the failed is out."""
    good, bad = rollout(1.0, 1.0, reward=2.0, lengths=(2, 1)), rollout(0.5, reward=0.5)
    failed = Rollout("2", TASK, (), Outcome.FAILED)
    group = Group(0, TASK, [good, failed, bad])
    StepAndEpisode(step=1.0, episode=0.5)([group])
    half = 2**-0.5
    assert good.advantages is not None and bad.advantages is not None and failed.advantages is None
    assert good.advantages == pytest.approx([1.5 * half, 1.5 * half, 0.5 * half], abs=1e-5)
    assert bad.advantages == pytest.approx([-1.5 * half], abs=1e-5)
    told = StepAndEpisode().learn([group])
    assert told == {"steps_matched": 1.0, "steps_mended": 0.0}
    alike = Group(0, TASK, [rollout(1.0, reward=1.0) for _ in range(3)])
    StepAndEpisode()([alike])
    assert all(np.array_equal(each.advantages, [0.0]) for each in alike.rollouts if each.advantages is not None)
    with pytest.raises(ConfigurationError, match="discount from 0 to 1, got 2"):
        StepAndEpisode(2.0)
