"""web-agent-diagnosis: win shares against full enumeration, and what `strop diagnose` reads off run folders."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from strop.cli.commands.diagnose import diagnose
from strop.errors import ConfigurationError
from strop.observe.run_files.settings_table import settings_of, varied
from strop.stats.bootstrap import picked, standings


def by_force(values: Sequence[str], scores: Sequence[float], size: int) -> tuple[dict[str, float], dict[str, float]]:
    """Win shares and mean bests over every resample, each as likely as it is."""
    times = Counter(values)
    probability = [1 / (times[value] * len(times)) for value in values]
    wins, bests, held = (dict.fromkeys(times, 0.0) for _ in range(3))
    for drawn in product(range(len(values)), repeat=size):
        likely = math.prod(probability[run] for run in drawn)
        best = {
            value: max(scores[run] for run in drawn if values[run] == value) for value in {values[r] for r in drawn}
        }
        top = [value for value, score in best.items() if score == max(best.values())]
        for value in top:
            wins[value] += likely / len(top)
        for value, score in best.items():
            bests[value] += likely * score
            held[value] += likely
    return wins, {value: bests[value] / held[value] for value in bests}


@pytest.mark.parametrize(
    ("values", "scores"),
    [
        ("aab", [0.1, 0.9, 0.5]),
        ("abbb", [0.6, 0.2, 0.7, 0.6]),
        ("abc", [0.5, 0.5, 0.1]),
    ],
)
def test_shares_are_those_of_all_resamples(values: str, scores: list[float]) -> None:
    wins, bests = by_force(values, scores, 3)
    found = {each.value: each for each in standings(list(values), scores, 20_000, size=3)}
    assert sum(each.wins for each in found.values()) == pytest.approx(1.0)
    for value in wins:
        assert found[value].wins == pytest.approx(wins[value], abs=0.015)
        assert found[value].best == pytest.approx(bests[value], abs=0.01)
        assert found[value].runs == values.count(value)


def test_runs_that_are_there_twice_change_nothing() -> None:
    """Without the weights the value that was tried more often would win more often."""
    once, _ = by_force("aab", [0.1, 0.9, 0.5], 3)
    twice, _ = by_force("aaaab", [0.1, 0.9, 0.1, 0.9, 0.5], 3)
    assert once == pytest.approx(twice)
    found = {each.value: each.wins for each in standings(list("aaaab"), [0.1, 0.9, 0.1, 0.9, 0.5], 20_000, size=3)}
    assert found == pytest.approx(once, abs=0.015)


def test_intervals_are_of_the_best_and_leave_out_what_is_missing() -> None:
    """One run of b: its best is .5 wherever it is there at all; a's is .1 or .9."""
    first, second = standings(list("aab"), [0.1, 0.9, 0.5])
    assert (first.value, second.value) == ("a", "b") and first.wins > 0.5
    assert (second.best, second.low, second.high) == (0.5, 0.5, 0.5)
    assert (first.low, first.high) == (0.1, 0.9) and 0.1 < first.best < 0.9
    assert standings(list("ab"), [0.0, 1.0], seed=1) == standings(list("ab"), [0.0, 1.0], seed=1)
    assert standings(list("aab"), [0.1, 0.9, 0.5]) == standings(list("aab"), [0.1, 0.9, 0.5], 1000, size=3, seed=0)
    alone = {each.value: each for each in standings(["a", "b"], [0.0, 1.0], resamples=1, size=1)}
    assert sorted(each.wins for each in alone.values()) == [0.0, 1.0]
    assert any(math.isnan(each.best) for each in alone.values())


@pytest.mark.parametrize(("values", "scores", "resamples"), [([], [], 10), (["a"], [], 10), (["a"], [1.0], 0)])
def test_nothing_to_draw_from_is_refused(values: list[str], scores: list[float], resamples: int) -> None:
    with pytest.raises(ConfigurationError, match="as many values as scores"):
        standings(values, scores, resamples)


def test_a_checkpoint_is_picked_by_a_mean_of_three() -> None:
    """Means of three .5 .433 .45 .45 .533 .783 .725: the sixth is best, and its own score is .55."""
    assert picked([0.1, 0.9, 0.3, 0.15, 0.9, 0.55, 0.9]) == 0.55
    assert picked([0.2, 0.9, 0.1, 0.6, 0.7, 0.8]) == 0.8
    assert picked([0.5, 0.8]) == 0.8 and picked([0.4]) == 0.4, "the last of equals"
    assert picked([0.1, 0.0, 0.2]) == 0.2, "means .05 .1 .1, whatever their last bits"
    with pytest.raises(ConfigurationError, match="without any measurement"):
        picked([])


RECIPE = """from strop.run import Run
run = Run(
    envs=(KeyValue(level={level}, seed={seed}),), seed={seed}, steps=3, threads={level},
    trainer=TorchTrainer(learning_rate={rate}, betas=(0.9, 0.999)), evaluation=Evaluation(every={level}), warmup=None,
)
"""


def folder(root: Path, name: str, heldout: Sequence[float], **fields: object) -> Path:
    path = root / name
    path.mkdir()
    (path / "recipe.py").write_text(RECIPE.format(**{"level": 1, "seed": 0, "rate": 0.1} | fields))
    rows = [{"step": step, "heldout": value} for step, value in enumerate(heldout)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "summary.json").write_text(json.dumps({"heldout_after": heldout[-1] if len(heldout) > 1 else None}))
    return path


def test_settings_are_read_and_not_executed(tmp_path: Path) -> None:
    found = settings_of(folder(tmp_path, "a", [0.1, 0.2], seed=7) / "recipe.py")
    assert found == {
        "envs.0": "KeyValue",
        "envs.0.level": "1",
        "steps": "3",
        "trainer": "TorchTrainer",
        "trainer.learning_rate": "0.1",
        "trainer.betas": "(0.9, 0.999)",
        "warmup": "None",
    }
    tables = [
        {"a": "1", "b": "x", "same": "0"},
        {"a": "2", "b": "y", "same": "0"},
        {"a": "1", "b": "x", "c": "4", "same": "0"},
    ]
    assert varied(tables) == {"a and b": ["1", "2", "1"], "c": ["–", "–", "4"]}
    assert varied([{"a": str(n), "b": str(n), "c": str(n)} for n in range(2)]) == {"a and b and 1 more": ["0", "1"]}


def test_a_folder_of_runs_is_diagnosed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        folder(tmp_path, f"low-{seed}", [0.1, 0.2 + seed / 100], seed=seed, rate=0.1)
        folder(tmp_path, f"high-{seed}", [0.1, 0.6 + seed / 100], seed=seed, rate=0.3)
    folder(tmp_path, "other", [0.1, 0.3], level=2)
    folder(tmp_path, "unfinished", [0.1])
    told = diagnose([tmp_path], 200, 0, as_json=True)
    assert json.loads(capsys.readouterr().out) == told and told["left_out"] == 1 and len(told["runs"]) == 6
    assert [Path(each).name for each in told["other_tasks"]] == ["other"], "measured on other tasks"
    ((name, values),) = told["settings"].items()
    assert name == "trainer.learning_rate" and all(each["low"] <= each["median"] <= each["high"] for each in values)
    assert values[0]["value"] == "0.3" and values[0]["wins"] > 0.95 and 0.6 <= values[0]["low"] <= values[0]["best"]
    diagnose([tmp_path / "low-0", tmp_path / "high-0"], 50, 0, as_json=False)
    assert "trainer.learning_rate" in (shown := capsys.readouterr().out) and "2 runs, 50 resamples;" in shown


def test_what_cannot_be_diagnosed_says_so(tmp_path: Path) -> None:
    one = folder(tmp_path, "a", [0.1, 0.2])
    with pytest.raises(ConfigurationError, match=r"at least 2 runs .* found 1 in 1 run folders"):
        diagnose([one], 10, 0, as_json=True)
    folder(tmp_path, "b", [0.1, 0.2], seed=1)
    with pytest.raises(ConfigurationError, match="all 2 runs have the same settings"):
        diagnose([tmp_path], 10, 0, as_json=True)
    (tmp_path / "apart").mkdir()
    folder(tmp_path / "apart", "c", [0.1, 0.2], level=2)
    with pytest.raises(ConfigurationError, match="no two of these runs have the same env"):
        diagnose([one, tmp_path / "apart"], 10, 0, as_json=True)
    with pytest.raises(ConfigurationError, match="is not a folder"):
        diagnose([tmp_path / "nowhere"], 10, 0, as_json=True)
