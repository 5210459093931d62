"""CPL's and COS(M+O)S' searches: N, Q and scores of small trees by hand, trees played through, and their pairs."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.tree_search.nodes import TreeNode, as_rollout, back_up_mean, best_and_worst, growing, leaf, quality
from strop.recipes.rollout.cosmos import PlotSearch, curiosity
from strop.recipes.rollout.cpl import PlanSearch
from strop.training.requirements import PolicyStatistic
from strop.types import SUCCESS, Group, Outcome, Rollout
from tests.building import TASK, turn
from tests.recipes.rollout.test_ettrl import Completions, player


def node(above: TreeNode | None, tokens: int = 1, outcome: Outcome = Outcome.PRUNED, logprob: float = 0.0) -> TreeNode:
    """The number of tokens tells what a piece says."""
    written = replace(turn(tokens), logprobs=np.full(tokens, logprob, np.float32))
    made = TreeNode(Rollout(str(tokens), TASK, (written,), outcome) if above else None, above)
    if above:
        above.below.append(made)
    return made


def test_two_by_two_by_hand() -> None:
    """a has the ends +1 and -1, b one of -1: N = 3, 2, 1 and Q = -1/3, 0, -1."""
    root = node(None)
    a, b = node(root, 1, logprob=-0.5), node(root, 2, logprob=-1.0)
    right, wrong, other = (node(above, size, Outcome.FINISHED) for above, size in ((a, 3), (a, 4), (b, 5)))
    for end, worth in ((right, 1.0), (wrong, -1.0), (other, -1.0)):
        back_up_mean(end, worth)
    assert [each.visits for each in (root, a, b, right)] == [3, 2, 1, 1]
    assert [quality(each) for each in (root, a, b, right, wrong)] == pytest.approx([-1 / 3, 0.0, -1.0, 1.0, -1.0])
    # 0 + 1.5 e^-0.5 sqrt 3 / 3 = 0.525; -1 + 1.5 e^-1 sqrt 3 / 2 = -0.522
    search = PlanSearch()
    assert search.puct(a) == pytest.approx(1.5 * math.exp(-0.5) * math.sqrt(3) / 3)
    assert search.puct(b) == pytest.approx(-1 + 1.5 * math.exp(-1.0) * math.sqrt(3) / 2)
    assert leaf(root, search.puct) is right, "Q = 1 below a, both ends being as likely"
    # -1 + 1.4 sqrt(ln 3 / 1) = 0.467 against 0 + 1.4 sqrt(ln 3 / 2) = 1.038
    bound = PlotSearch()
    assert bound.upper_bound(b) == pytest.approx(-1 + 1.4 * math.sqrt(math.log(3)))
    assert bound.upper_bound(a) == pytest.approx(1.4 * math.sqrt(math.log(3) / 2))
    assert bound.upper_bound(node(root)) == -math.inf
    assert best_and_worst(a) == (right, wrong) and best_and_worst(b) is None and quality(node(None)) == 0.0


def test_pairs_say_different_things_and_are_worth_different_amounts() -> None:
    root = node(None)
    same, twin, equal, unvisited = node(root, 2), node(root, 2), node(root, 3), node(root, 4)
    for each, worth in ((same, 1.0), (twin, -1.0), (equal, 1.0)):
        back_up_mean(each, worth)
    assert best_and_worst(root) is None and not unvisited.visits, "the twin of what was said before does not count"
    back_up_mean(equal, 0.0)
    assert best_and_worst(root) == (same, equal)
    made = as_rollout(same, 0.75, "root")
    assert (made.outcome, made.comparison_group, made.facts) == (Outcome.TRUNCATED, "root", {"noted": 0.75})
    assert as_rollout(node(root, 5, Outcome.FINISHED), 0.5, "").outcome is Outcome.FINISHED


def test_a_plan_goes_on_past_all_that_ended_or_failed() -> None:
    root = node(None)
    ended, failed, full, unlikely, likely = (
        node(root, size, outcome, logprob)
        for size, outcome, logprob in (
            (1, Outcome.FINISHED, 0.0),
            (2, Outcome.FAILED, 0.0),
            (3, Outcome.PRUNED, 0.0),
            (4, Outcome.PRUNED, -1.0),
            (5, Outcome.PRUNED, -0.5),
        )
    )
    end = node(full, 6, Outcome.TRUNCATED)
    back_up_mean(ended, 1.0)
    assert growing(root, PlanSearch().puct) is likely, "all others that can go on are less likely"
    assert leaf(root, PlanSearch().puct) is ended and not failed.visits and not end.can_grow
    deeper = node(likely, 7)
    assert growing(likely, PlanSearch().puct) is deeper and unlikely.can_grow
    assert growing(full, PlanSearch().puct) is None and growing(node(None), PlanSearch().puct) is not None


def searched(play: GroupPlayer, strategy: PlanSearch | PlotSearch, starts: int) -> list[Rollout]:
    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = float("x" in rollout.completion)
            rollout.facts[SUCCESS] = rollout.reward
            rollout.outcome = Outcome.FAILED if "q" in rollout.completion else rollout.outcome  # the reward's fault

    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        for rollout in groups[0].scored:
            rollout.policy_statistics["reference_logprobs"] = np.full(
                rollout.num_tokens, -float(rollout.num_tokens), np.float32
            )

    play.scorer, play.policy_statistic = score, statistics
    return asyncio.run(strategy(play.group, [play.another() for _ in range(starts)], play))


def test_a_plan_played_through(tmp_path: Path) -> None:
    """Two pieces `ab` and `cd`; below the first `x|` and `y|`, right and wrong, Q = 0; so next comes `cd`, whose ends
    `x|` and `zx|` are both right: of the root `cd` (Q = 1) and `ab` (Q = 0) are no pair, of `ab` its ends are."""
    play = player(tmp_path, ["ab-", "cd-", "x|", "y|", "x|", "zx|"], {}, Completions(1))
    found = searched(play, PlanSearch(2, 2, 2, 2), 3)
    assert [each.completion for each in found] == ["abx", "aby"] and {each.comparison_group for each in found} == {
        found[0].parent
    }
    assert [each.facts["noted"] for each in found] == pytest.approx([0.3, -0.3]), "solutions count 0.3"
    assert sum(each.num_sampled for each in (*found, *play.unused(found))) == 2 + 2 + 2 + 2 + 2 + 3


def test_steps_of_a_plan_are_a_pair_of_their_own(tmp_path: Path) -> None:
    """Below `ab` two wrong ends, below `cd` two right ones: Q = -2/3 and 2/3, with the visit that made the ends."""
    play = player(tmp_path, ["ab-", "cd-", "y|", "z|", "x|", "zx|"], {}, Completions(1))
    best, worst = searched(play, PlanSearch(2, 2, 2, 2), 3)
    assert [best.completion, worst.completion] == [
        "cd",
        "ab",
    ] and best.comparison_group == worst.comparison_group == "root"
    assert (best.facts["noted"], worst.facts["noted"]) == pytest.approx((2 / 3, -2 / 3))
    assert [each.outcome for each in (best, worst)] == [Outcome.TRUNCATED] * 2


def test_each_end_counts_once_and_a_search_stops_where_all_ended(tmp_path: Path) -> None:
    """`ab` has a right and a wrong end, Q = 0 however long it lasts; `cd` two wrong ones: no pair of the root."""
    play = player(tmp_path, ["ab-", "cd-", "x|", "y|", "w|", "z|"], {}, Completions(1))
    found = searched(play, PlanSearch(2, 2, 2, 2), 9)
    assert [each.completion for each in found] == ["abx", "aby"]
    assert [each.facts["noted"] for each in found] == pytest.approx([0.3, -0.3])


def test_of_steps_that_say_the_same_the_first_is_kept(tmp_path: Path) -> None:
    """Of `x|`, `x|`, `y|` below `ab` the second is none: Q = (0 + 1 - 1) / 3, and no 1 / 4 against `cd`."""
    play = player(tmp_path, ["ab-", "cd-", "ef-", "x|", "x|", "y|", *["w|", "v|", "z|"] * 2], {}, Completions(1))
    found = searched(play, PlanSearch(2, 2, 3, 3), 4)
    assert [each.completion for each in found] == ["abx", "aby"] and found[0].id == "0/7"


def test_a_reward_that_failed_is_in_no_pair(tmp_path: Path) -> None:
    (alone,) = searched(player(tmp_path, ["x|", "q|"], {}, Completions(1)), PlanSearch(4, 2, 2, 2), 2)
    assert (alone.completion, alone.facts["noted"]) == ("x", 0.0)
    play = player(tmp_path, ["x|", "q|", "yyy|"], {}, Completions(1))
    assert {each.completion for each in searched(play, PlotSearch(4, 2, 3), 1)} == {"x", "yyy"}


def test_without_a_pair_one_piece_is_brought_for_gates_to_drop(tmp_path: Path) -> None:
    alone = searched(player(tmp_path, ["x|", "zx|"], {}, Completions(1)), PlanSearch(4, 2, 2, 2), 3)
    assert [(each.facts["noted"], each.comparison_group) for each in alone] == [(0.0, "")]
    broken = searched(player(tmp_path, ["a|"] * 2, {}, Completions(1, is_broken=True)), PlanSearch(4, 2, 2, 2), 2)
    assert [each.outcome for each in broken] == [Outcome.FAILED]
    cut = player(tmp_path, ["xxx", "x|"], {}, Completions(1))
    cut.policy = replace(cut.policy, sampling=replace(cut.policy.sampling, max_tokens=3))
    best, worst = searched(cut, PlanSearch(9, 1, 2, 2), 1)
    assert (best.completion, worst.completion) == ("x", "xxx"), "what was cut off is not right"


def test_a_plot_played_through(tmp_path: Path) -> None:
    """The surprise of a piece is its number of tokens: 2, 2, 2 and 3, so m = 2.25 and d = 0.433.

    Three pieces lie 0.25 below: exp(-1/6) = 0.846; `xy|`, right, lies 0.75 above: 1 + exp(-1.5) = 1.223.
    """
    play = player(tmp_path, ["a|", "b|", "c|", "xy|"], {}, Completions(1))
    best, worst = searched(play, PlotSearch(4, 2, 4), 1)
    assert (best.completion, worst.completion) == ("xy", "a")
    assert best.facts == {"curiosity": pytest.approx(math.exp(-1.5)), "noted": pytest.approx(1 + math.exp(-1.5))}
    assert (
        worst.facts["noted"] == pytest.approx(math.exp(-1 / 6))
        and best.comparison_group == worst.comparison_group == "root"
    )


def test_a_plot_goes_on_from_its_best_piece(tmp_path: Path) -> None:
    """After `ab`, `cd` (equally curious) the first is expanded: `x|` and `yy|` below it."""
    play = player(tmp_path, ["ab-", "cd-", "x|", "yy|"], {}, Completions(1))
    found = searched(play, PlotSearch(2, 2, 2), 2)
    assert {each.completion for each in found} >= {"abx", "abyy"}
    assert len({each.comparison_group for each in found}) == len(found) // 2, "each node has a pair of its own"
    broken = searched(player(tmp_path, ["a|"] * 2, {}, Completions(1, is_broken=True)), PlotSearch(4, 2, 2), 2)
    assert [each.outcome for each in broken] == [Outcome.FAILED]


def test_a_plot_that_ended_is_visited_again_until_another_one_is_due(tmp_path: Path) -> None:
    """`x|` is worth 1 + 1, `cd` 0 + 1: 2 + 1.4 sqrt(ln(n + 1) / n) meets 1 + 1.4 sqrt(ln(n + 1)), n visits to `x|`.

    3.17 and 2.17, 3.04 and 2.47, 2.95 and 2.65, 2.89 and 2.78, 2.84 and 2.87: the sixth goes on from `cd`. Surprises
    are then 2, 2, 2 and 5, so that m = 2.75 and d^2 = 1.6875.
    """
    completions = ["x|", "cd-", "e|", "ffff|"]
    early = player(tmp_path, completions, {}, Completions(1))
    assert [each.completion for each in searched(early, PlotSearch(2, 2, 2), 5)] == ["x", "cd"] and len(early.made) == 2
    found = searched(player(tmp_path, completions, {}, Completions(1)), PlotSearch(2, 2, 2), 6)
    assert [each.completion for each in found] == ["x", "cd", "cde", "cdffff"]
    assert [each.facts["curiosity"] for each in found[2:]] == pytest.approx([math.exp(-1 / 6), math.exp(-1.5)])


def test_curiosity_is_an_inverted_u() -> None:
    assert curiosity(2.0, 2.0, 0.5) == 1.0 and curiosity(2.0, 2.0, 0.0) == 1.0
    assert curiosity(2.5, 2.0, 0.5) == pytest.approx(curiosity(1.5, 2.0, 0.5)) == pytest.approx(math.exp(-0.5))
    assert curiosity(3.5, 2.0, 0.5) < curiosity(2.5, 2.0, 0.5) < 1.0


def test_refuse_nonsense() -> None:
    for wrong in ({"tokens": 0}, {"deepest": 0}, {"first": 0}, {"width": 0}, {"explore": -1.0}):
        with pytest.raises(ConfigurationError, match="PlanSearch needs"):
            PlanSearch(**wrong)  # type: ignore[arg-type]
        if "first" not in wrong:
            with pytest.raises(ConfigurationError, match="PlotSearch needs"):
                PlotSearch(**wrong)  # type: ignore[arg-type]
