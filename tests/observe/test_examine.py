"""Every rule about a run's health: told of a run that has the disease, silent about one that has not.

Runs of the pocket model are made sick on purpose where that takes a second; the others are metrics worked by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.launch.running.launch import launch
from strop.observe.examine import examine, judged, rules
from strop.observe.health import HealthFinding
from strop.observe.report.write_report import render
from strop.observe.run_files.run_history import History, read_history
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.stats.intervals import Difference
from strop.storage.ledger.fates_by_kind import KindFates, kinds_of, tries_and_tasks
from strop.storage.ledger.schema import Offered
from strop.storage.run_folder import RunFolder
from strop.types import Message, Outcome, Rollout, Task
from tests.observe.folders import TOKENIZER, rollout, run_folder, turn
from tests.parts import LongerIsBetter

SPECIALS = {4: "<|user|>", 5: "<|assistant|>", 2: "<|end|>"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunFolder]:
    """Short runs of the pocket model, each made once."""
    root, made = tmp_path_factory.mktemp("runs"), dict[str, RunFolder]()

    def run(name: str, recipe: str, change: Callable[[Run], Run] = lambda run: run, **values: Any) -> RunFolder:
        if name not in made:
            sizes = {"groups_per_step": 2, "group_size": 4, "heldout_tasks": 16, "heldout_every": 0, "steps": 8}
            launch(change(build(recipe_named(recipe), sizes | values)), root / name, name)
            made[name] = RunFolder(root / name / name)
        return made[name]

    return run


def names(folder: RunFolder) -> dict[str, HealthFinding]:
    return {verdict.name: verdict for verdict in examine(folder)}


def found(name: str, history: History) -> HealthFinding | None:
    return next((verdict for verdict in judged(history) if verdict.name == name), None)


def rows(steps: int = 20, heldout: tuple[float, float] | None = None, half: float = 0.05, **ends: Any) -> list[Any]:
    """Metrics that go on a straight line from one value to another, and held-out accuracy before and after."""
    made: list[dict[str, float]] = [{"step": 0}]
    for step in range(1, steps + 1):
        way = (step - 1) / max(steps - 1, 1)
        pairs = {name: end if isinstance(end, tuple) else (end, end) for name, end in ends.items()}
        made.append({"step": step, **{name: low + way * (high - low) for name, (low, high) in pairs.items()}})
    for row, value in zip((made[0], made[-1]), heldout or (), strict=False):
        row |= {"heldout": value, "heldout_low": value - half, "heldout_high": value + half}
    return made


def group(right: int, tried: int = 4, version: int = 0) -> Offered:
    lowest, highest = float(right == tried), float(right > 0)
    return Offered("env", 1, True, 9.0, 9.0, version, None, right, tried, tried, lowest, highest)


# ---- runs


def test_a_healthy_run_is_called_healthy(runs: Callable[..., RunFolder]) -> None:
    assert names(runs("healthy", "pocket", steps=16, groups_per_step=4)) == {}


def test_completions_that_are_cut_before_their_end(runs: Callable[..., RunFolder]) -> None:
    found = names(runs("cut", "pocket", max_tokens=8, steps=12))
    assert found["too many truncated"].is_grave and "100% of the last rollouts" in found["too many truncated"].evidence
    assert "at max_tokens=8 and context=512" in found["too many truncated"].evidence
    assert "nearly no completion came to an end" in found["tokenizer or template mismatch"].evidence
    assert "6 of 6 of them with nothing right (mean reward 0)" in found["groups without contrast"].evidence
    assert found["groups without contrast"].is_grave


def test_tasks_that_are_solved(runs: Callable[..., RunFolder]) -> None:
    found = names(runs("easy", "grpo", env="arithmetic:1", groups_per_step=6))
    assert list(found) == ["data exhausted"] and not found["data exhausted"].is_grave


def test_a_reward_that_is_hacked(runs: Callable[..., RunFolder]) -> None:
    """Length is paid and nothing else: completions grow to the limit, which earns most, and accuracy is gone."""
    folder = runs(
        "long",
        "pocket",
        lambda run: replace(run, rewards=(LongerIsBetter(),)),
        steps=16,
        learning_rate=1e-3,
        max_tokens=48,
        groups_per_step=4,
        heldout_tasks=32,
    )
    found = names(folder)
    assert {"reward without accuracy", "length explosion", "truncated ones rewarded"} <= set(found)
    assert "reward and held-out accuracy part ways" in found["reward without accuracy"].evidence
    assert "data exhausted" not in found, "a reward above 1 is no right answer"
    page = render(folder)
    assert page.count("<strong>length explosion</strong>") == 1
    summary = json.loads(folder.summary.read_text())
    assert [each["name"] for each in summary["findings"]] == list(found)


def test_an_objective_that_cannot_act(runs: Callable[..., RunFolder]) -> None:
    inert = names(runs("inert", "gspo", lambda run: replace(run, minibatches=1), steps=3))
    assert "Gspo is a plain policy gradient" in inert["an objective that cannot act"].evidence
    assert "an objective that cannot act" not in names(runs("acts", "gspo", steps=3, groups_per_step=4))
    assert "clipping too much" not in names(runs("acts", "gspo")), (
        "whole completions are clipped on purpose, and not far"
    )
    still = names(runs("still", "grpo", lambda run: replace(run, epochs=2), steps=3, learning_rate=1e-12))
    assert "weights hardly move" in still["an objective that cannot act"].remedy


def test_a_policy_that_runs_away_from_its_data(runs: Callable[..., RunFolder]) -> None:
    far = names(runs("far", "grpo", lambda run: replace(run, minibatches=2, epochs=4), steps=4, learning_rate=1e-3))
    assert "lag 0, 4 epochs of 2 minibatches" in far["off-policy data"].evidence


# ---- metrics


def test_the_reward_rises_and_accuracy_stands_still() -> None:
    rising: dict[str, Any] = {"reward": (0.2, 0.8)}
    sick = found("reward without accuracy", History(rows(heldout=(0.3, 0.32), **rising)))
    # a gain of 0.02 with sqrt(0.05^2 + 0.05^2) = 0.07 is at most 9 points, less than 10 and than half of 0.6
    assert sick is not None and "rose by 0.6 over 20 steps" in sick.evidence and "at most +9 points" in sick.evidence
    assert found("reward without accuracy", History(rows(heldout=(0.3, 0.6), **rising))) is None, "both rise"
    assert found("reward without accuracy", History(rows(heldout=(0.3, 0.32), reward=0.5))) is None, "neither rises"
    assert found("reward without accuracy", History(rows(heldout=(0.96, 0.97), **rising))) is None, "no room to rise"
    paired = found(
        "reward without accuracy", History(rows(heldout=(0.3, 0.32), **rising), gain=Difference(0.02, 0, 0.04))
    )
    assert paired is not None and "at most +4 points" in paired.evidence
    other = History(rows(heldout=(0.3, 0.32), **rising), {"evaluation.envs.0": "Compose"})
    assert found("reward without accuracy", other) is None, "measured in environments that are not trained"


def test_accuracy_that_was_higher_on_the_way() -> None:
    """0.05 twice is 0.071, and the highest of 3 stands out by 0.846 * 0.05 / 1.96 = 0.022: together 0.092."""
    metrics = rows(heldout=(0.5, 0.5))
    metrics[10] |= {"heldout": 0.6, "heldout_low": 0.55, "heldout_high": 0.65}
    sick = found("accuracy fell", History(metrics))
    assert sick is not None and "was 60% at step 10 and is 50% at step 20" in sick.evidence and not sick.is_grave
    metrics[10] |= {"heldout": 0.592, "heldout_low": 0.542, "heldout_high": 0.642}
    assert found("accuracy fell", History(metrics)) is None
    gone = found("accuracy fell", History(rows(heldout=(0.6, 0.1))))
    assert gone is not None and gone.is_grave, "even from the beginning"


def test_completions_that_grow_and_earn_nothing() -> None:
    grows = {"length": (20.0, 60.0), "truncated_share": 0.0}
    sick = found("length explosion", History(rows(reward=0.5, **grows)))
    assert sick is not None and "from 24 to 56 tokens" in sick.evidence and "did not rise" in sick.evidence
    assert found("length explosion", History(rows(reward=(0.2, 0.8), **grows))) is None, "longer and better"
    assert found("length explosion", History(rows(reward=0.5, length=(20.0, 25.0), truncated_share=0.0))) is None


def test_a_policy_that_says_the_same_every_time() -> None:
    metrics: dict[str, Any] = {"entropy": (0.5, 0.01), "no_contrast_share": (0.1, 0.9)}
    wrong, right = [group(0), group(1)] * 10, [group(4)] * 20
    sick = found("entropy collapse", History(rows(**metrics), groups=wrong))
    assert sick is not None and sick.is_grave
    assert "with 15% of the rollouts right" in sick.evidence, "the last 5 groups have 1, 0, 1, 0 and 1 of 4"
    assert found("entropy collapse", History(rows(**metrics), groups=right)) is None, "sure of the right thing"
    assert found("entropy collapse", History(rows(entropy=(0.5, 0.2), no_contrast_share=0.9), groups=wrong)) is None


def test_groups_that_are_failed_alike() -> None:
    alike: dict[str, Any] = {"no_contrast_share": 0.8, "advantage": 0.2, "dropped_groups": 0.0, "reward": 0.02}
    sick = found("groups without contrast", History(rows(**alike), groups=[group(0)] * 20))
    assert sick is not None and not sick.is_grave and "5 of 5 of them with nothing right" in sick.evidence
    assert found("groups without contrast", History(rows(**alike), groups=[group(4)] * 20)) is None, "solved"
    assert found("groups without contrast", History(rows(**alike | {"advantage": 1.0}), groups=[group(0)] * 20)) is None
    assert found("groups without contrast", History(rows(**alike | {"no_contrast_share/all": 0.1}))) is None, "helped"


def test_tasks_known_by_heart() -> None:
    groups, metrics = [group(4)] * 40, rows(heldout=(0.2, 0.3))
    sick = found("tasks known by heart", History(metrics, groups=groups, tries=(40, 8)))
    assert sick is not None and "each of 8 tasks was tried 5 times; 100% of the last" in sick.evidence
    assert "and 30% of held-out ones (at most 35% at 95%)" in sick.evidence
    assert found("tasks known by heart", History(metrics, groups=groups, tries=(40, 40))) is None, "all different"
    known = History(rows(heldout=(0.2, 0.95)), groups=groups, tries=(40, 8))
    assert found("tasks known by heart", known) is None, "held-out ones are solved as well"


def test_most_tokens_are_clipped() -> None:
    sick = found("clipping too much", History(rows(clipped_share=0.5, drift=0.3, lag=2.0)))
    assert sick is not None and "50% of the tokens" in sick.evidence and "0.3, lag 2" in sick.evidence
    assert found("clipping too much", History(rows(clipped_share=0.2, drift=0.3, lag=2.0))) is None
    assert found("clipping too much", History(rows(clipped_share=0.5, drift=0.002, lag=0.0))) is None


def test_engine_and_trainer_disagree() -> None:
    sick = found("off-policy mismatch", History(rows(rescored_outside=0.05, kl_behavior=0.0)))
    assert sick is not None and sick.is_grave and "5.0% of the tokens" in sick.evidence
    old = found("off-policy mismatch", History(rows(mismatch=0.1, kl_behavior=0.0)))
    assert old is not None and "a mean |log ratio| of 0.1" in old.evidence
    assert found("off-policy mismatch", History(rows(rescored_outside=0.001, mismatch=0.001, kl_behavior=0.0))) is None
    assert found("off-policy data", History(rows(kl_behavior=0.02, lag=4.0))) is None
    estimated = {"trainer.view": "AllHidden", "trainer.view.prompt_share": "0.15"}
    assert found("off-policy data", History(rows(kl_behavior=0.5), estimated)) is None
    assert found("off-policy data", History(rows(kl_behavior=0.5), {"trainer.view": "None"})) is not None


def test_who_waits_for_whom() -> None:
    ahead = {"admission.lag": "4"}
    slow = found("starved trainer", History(rows(seconds=10.0, generate_seconds=8.0, train_seconds=1.5), ahead))
    assert slow is not None and "of 200 s the trainer waited 80% for groups and trained 15%" in slow.evidence
    idle = History(rows(seconds=10.0, generate_seconds=0.1, train_seconds=9.0), ahead)
    assert found("idle engine", idle) is not None and found("starved trainer", idle) is None
    even = History(rows(seconds=10.0, generate_seconds=3.0, train_seconds=6.5), ahead)
    assert found("idle engine", even) is None and found("starved trainer", even) is None
    waves = History(rows(seconds=10.0, generate_seconds=8.0, train_seconds=1.5), {"admission.lag": "0"})
    assert found("starved trainer", waves) is None, "without lag one side always waits"


def test_cut_rollouts_that_are_paid() -> None:
    cut = KindFates("env", 1, finished=80, paid_finished=40.0, truncated=40, paid_truncated=24.0, failed=0)
    sick = found("truncated ones rewarded", History([], kinds=[cut]))
    assert (
        sick is not None and "40 rollouts that were cut earned 0.6 on average, and 80 that ended 0.5" in sick.evidence
    )
    assert found("truncated ones rewarded", History([], kinds=[replace(cut, paid_truncated=4.0)])) is None
    assert found("truncated ones rewarded", History([], kinds=[replace(cut, truncated=4, paid_truncated=4.0)])) is None


def test_a_env_that_fails_for_one_kind(tmp_path: Path) -> None:
    broken = KindFates("market", 3, 40, 9.0, 0, 0.0, failed=60, error="environment market: gone")
    whole = KindFates("market", 1, 99, 9.0, 0, 0.0, failed=1)
    sick = found("environment failing for one kind", History([], kinds=[whole, broken]))
    assert sick is not None and sick.is_grave
    assert "60 of 100 rollouts of market level 3" in sick.evidence and "1.0% of all others" in sick.evidence
    assert sick.evidence.endswith("most often: environment market: gone")
    assert found("environment failing for one kind", History([], kinds=[whole])) is None
    # by hand: 40 groups, of which every 20th has a failed rollout beside two that ended
    folder = run_folder(tmp_path / "run", steps=20)
    (kind,) = kinds_of(folder.ledger)
    assert (kind.name, kind.finished, kind.truncated, kind.failed) == ("arithmetic level 4", 80, 0, 2)
    assert (kind.paid_finished, kind.error) == (40.0, "environment arithmetic: gone")
    assert tries_and_tasks(folder.ledger) == (40, 40)


def asked(
    prompt: str, answer: str, completion: str, reward: float = 0.0, outcome: Outcome = Outcome.FINISHED
) -> Rollout:
    task = Task((Message("user", prompt),), answer, "env", 1)
    return replace(
        rollout(task, "0/0", reward, turn(completion, f"<|user|>{prompt}<|end|><|assistant|>")), outcome=outcome
    )


def test_completions_with_marks_of_other_roles() -> None:
    talks = [asked("1+1", "2", "2<|user|>2+2")] * 3 + [asked("1+1", "2", "2")] * 5
    sick = found("tokenizer or template mismatch", History([], rollouts=talks, specials=SPECIALS))
    assert sick is not None and "3 of 8 completions hold markers of the template such as '<|user|>'" in sick.evidence
    assert (
        found("tokenizer or template mismatch", History([], rollouts=talks[1:] + talks[-1:], specials=SPECIALS)) is None
    )
    padded = [asked("1+1", "2", "2<|end|><|end|>")] * 8  # ends behind an end are those of a canvas
    assert found("tokenizer or template mismatch", History([], rollouts=padded, specials=SPECIALS)) is None
    silent = found("tokenizer or template mismatch", History([], rollouts=[asked("1+1", "2", " ")] * 8))
    assert silent is not None and "8 of 8 completions are empty" in silent.evidence
    doubled = [asked("<|user|>1", "2", "2")] * 8
    for each in doubled:
        assert each.turns[0].prompt[:2].tolist() == [4, 4]
    twice = found("tokenizer or template mismatch", History([], rollouts=doubled, specials=SPECIALS))
    assert twice is not None and "prompts begin with '<|user|>' twice" in twice.evidence
    assert TOKENIZER.token_to_id("<|user|>") == 4


def test_rollouts_that_run_out_of_turns_are_not_cut_within_a_completion() -> None:
    """Their last completion ends with its mark; the others stop in the middle."""
    metrics, talks = rows(truncated_share=1.0), [asked("1+1", "2", "2", outcome=Outcome.TRUNCATED)] * 8
    turns = History(metrics, {"agent.max_turns": "8"}, rollouts=talks, specials=SPECIALS)
    told = found("too many truncated", turns)
    assert told is not None and "100% of the last rollouts ran out of turns (max_turns=8)" in told.evidence
    assert found("tokenizer or template mismatch", turns) is None
    (said,) = talks[0].turns
    short = replace(talks[0], turns=(replace(said, tokens=said.tokens[:-1]),))
    cut = History(metrics, rollouts=[short] * 8, specials=SPECIALS)
    assert found("tokenizer or template mismatch", cut) is not None
    assert (told := found("too many truncated", cut)) is not None and told.is_grave
    wide = History(metrics, {"sampling.max_tokens": "64", "context": "512"}, rollouts=[short] * 8, specials=SPECIALS)
    assert found("too many truncated", wide) is None, "one token of 64, because a part asked for no more"


def test_weights_that_have_no_reason_to_move_are_not_called_inert() -> None:
    still: dict[str, Any] = {"drift": 1e-7}
    setting = {"losses.0": "Gspo", "losses.0.low": "0.1", "trainer": "TorchTrainer"}
    assert found("an objective that cannot act", History(rows(advantage=0.8, **still), setting)) is not None
    assert found("an objective that cannot act", History(rows(advantage=0.0, **still), setting)) is None
    several = setting | {"trainer": "TurnByTurn"}
    assert found("an objective that cannot act", History(rows(advantage=0.8, **still), several)) is None
    plain = setting | {"losses.0": "Clip"}
    assert found("an objective that cannot act", History(rows(advantage=0.8, **still), plain)) is None


def test_answers_that_stand_there_and_are_not_found() -> None:
    said = [asked("1+1", "66", "The answer is 66.")] * 16
    sick = found("answers that are not found", History([], rollouts=said))
    assert sick is not None and "16 of 16 completions" in sick.evidence and "'66' is right" in sick.evidence
    others = [asked("1+1", "6", "The answer is 66.")] * 16
    assert found("answers that are not found", History([], rollouts=others)) is None, "6 is not in 66"
    assert found("answers that are not found", History([], rollouts=[*said, asked("1", "6", "6", 1.0)])) is None


def test_too_few_to_tell(tmp_path: Path) -> None:
    sick = found("too few to tell", History(rows(heldout=(0.5, 0.54))))
    # sqrt(0.05^2 + 0.05^2) = 0.0707 around +4 points
    assert sick is not None and "+4.0 points in one run" in sick.evidence and "from -3 to +11" in sick.evidence
    assert found("too few to tell", History(rows(heldout=(0.5, 0.7)))) is None
    # +2, +4 and +12 points: mean 6, spread 5.29, 4.303 * 5.29 / sqrt(3) = 13.1
    seeds = [(0.5, 0.52), (0.5, 0.54), (0.5, 0.62)]
    several = found("too few to tell", History(rows(heldout=(0.5, 0.54)), siblings=seeds))
    assert several is not None and "+6.0 points on average over 3 seeds" in several.evidence
    assert "from -7 to +19" in several.evidence
    near = [(0.5, 0.52), (0.5, 0.53), (0.5, 0.54)]
    assert found("too few to tell", History(rows(heldout=(0.5, 0.54)), siblings=near)) is None, "three that agree"
    still = [(0.5, 0.5), (0.5, 0.501), (0.5, 0.499)]
    assert found("too few to tell", History(rows(heldout=(0.5, 0.54)), siblings=still)) is None, "nothing changed"
    paired = History(rows(heldout=(0.5, 0.54)), gain=Difference(0.04, 0.01, 0.07))
    assert found("too few to tell", paired) is None, "on the same tasks it is sure"
    for seed in (0, 1):
        folder = run_folder(tmp_path / f"seed{seed}", steps=4)
        folder.recipe.write_text(folder.recipe.read_text().replace("seed=0", f"seed={seed}"))
        folder.summary.write_text(json.dumps({"heldout_before": 0.2, "heldout_after": 0.3 + seed}))
    other = run_folder(tmp_path / "other", steps=5)
    assert sorted(read_history(folder).siblings) == [(0.2, 0.3), (0.2, 1.3)] and not read_history(other).siblings


def test_rules_are_the_files_of_their_folder() -> None:
    folder = Path(__file__).parents[2] / "strop" / "observe" / "health"
    written = sum(path.read_text().count("(HealthRule):") for path in folder.glob("*.py"))
    assert len(rules()) == written >= 17 and all(rule.judge(History([])) is None for rule in rules())


def test_rewards_that_never_pay() -> None:
    dead = History(rows(2, reward=(0.3, 0.3), no_contrast_share=(1.0, 1.0), rollouts=(16, 32)))
    (told,) = [each for each in judged(dead) if each.name == "reward that never changes"]
    assert told.is_grave and "all 32 rollouts of 2 steps earned 0.3" in told.evidence
    paid = {"reward/right": (0.2, 0.6), "reward/format": (0.0, 0.0), "reward": (0.2, 0.6)}
    alive = History(rows(4, no_contrast_share=(0.5, 0.5), rollouts=(16, 64), **paid))
    (told,) = [each for each in judged(alive) if each.name == "a reward that never pays"]
    assert told.evidence == "reward/format stayed at 0 over 64 rollouts" and not told.is_grave
    few = History(rows(1, reward=(0.0, 0.0), no_contrast_share=(1.0, 1.0), rollouts=(8, 8)))
    assert not [each for each in judged(few) if "never" in each.name]
