"""The page reads what is new and nothing else; what a run takes back is taken back."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from strop.observe.dashboard.arms import arms_of, setting_of
from strop.observe.dashboard.downsampled_series import Column, Columns
from strop.observe.dashboard.jsonl_tail import Tail
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.report.compare_runs import mean_line
from strop.observe.report.default_charts import points_of
from strop.observe.report.svg_charts import Point
from strop.observe.run_files.jsonl_journals import Journal
from strop.storage.run_folder import RunFolder, read_rows
from tests.observe.dashboard.watching import guest
from tests.observe.folders import run_folder


def test_a_tail_reads_every_line_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = Tail(path)
    assert tail.news() == ([], False)
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert tail.news() == ([{"step": 1}, {"step": 2}], False) and tail.offset == 24
    with path.open("a") as file:
        file.write('ep": 3}\n')
    assert tail.news() == ([{"step": 3}], False)
    assert tail.news() == ([], False)


def test_a_tail_never_reads_what_lies_before_its_cursor(tmp_path: Path) -> None:
    """What stands there is made unreadable, but for the line that proves that it is the same file."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n')
    tail = Tail(path)
    assert len(tail.news().rows) == 3
    path.write_bytes(b"\xff" * 24 + b'{"step": 3}\n{"step": 4}\n')
    assert tail.news() == ([{"step": 4}], False)


@pytest.mark.parametrize("text", ['{"step": 1}\n', '{"step": 1}\n{"step": 2, "other": 5}\n{"step": 3}\n', ""])
def test_a_file_that_was_written_again_is_read_again(tmp_path: Path, text: str) -> None:
    """Shorter, longer or empty: a run that goes on from a checkpoint forgets what came behind it."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n')
    tail = Tail(path)
    tail.news()
    path.write_text(text)
    assert tail.news() == ([json.loads(line) for line in text.splitlines()], True)


def test_lines_that_a_crash_spoiled_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "rew{"step": 1}\n[]\n7\n{"no": 1}\n{"step": 2}\n')
    assert Tail(path).news().rows == [{"step": 2}]


def test_a_short_run_has_every_point_of_the_written_report(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=40)
    run = LiveRun(folder)
    run.look()
    rows = read_rows(folder.metrics)
    for name in ("reward", "heldout", "kl", "tokens_generated"):
        assert run.columns.points(name) == points_of(name, rows)


def test_a_long_run_keeps_a_screenful_and_its_mean() -> None:
    column = Column()
    for step in range(1, 10_001):
        column.add(Point(step, float(step)))
    points = column.points
    assert 240 < len(points) <= 480 and column.size == 32
    assert points[0].value == pytest.approx(16.5) and points[0].step == 32  # the mean of 1 to 32, at its last step
    assert (
        column.last is not None
        and column.last.value == 10_000
        and column.at([5_000.0, 20.0]) == pytest.approx([5_000, 20], rel=0.01)
    )


def test_minutes_are_counted_over_all_steps() -> None:
    columns = Columns()
    columns.add({"step": step, "seconds": 30.0} for step in (1, 2, 3, 4))
    assert columns.value("minutes") == 2.0


def test_the_page_changes_when_the_run_goes_on_and_only_then(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "one", steps=4, planned=9)
    client = guest(tmp_path / "runs")
    for path in ("/", "/now", "/curves"):
        shown = client.get(path)
        again = client.get(path, headers={"if-none-match": shown.headers["etag"]})
        assert shown.status_code == 200 and (again.status_code, again.content) == (304, b"")
    shown = client.get("/now")
    Journal(folder.metrics, folder.timing).stepped(5, {"reward": 0.125}, {"seconds": 2.0})
    part = client.get("/now", headers={"if-none-match": shown.headers["etag"], "x-part": "main"})
    assert part.status_code == 200 and "step 5 of 9" in part.text and "0.125" in part.text
    assert "<html" not in part.text and "<nav" not in part.text


def test_a_run_that_goes_on_from_a_checkpoint_takes_back_what_came_behind_it(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=8)
    run = LiveRun(folder)
    run.look()
    journal = Journal(folder.metrics, folder.timing)
    journal.forget_after(3)
    journal.stepped(4, {"reward": 0.5}, {"seconds": 1.0})
    run.look()
    assert run.step == 4 and [point.step for point in run.columns.points("reward")] == [1, 2, 3, 4]
    assert run.columns.value("minutes") == pytest.approx((3 * 1.4 + 1.0) / 60)


def status(folder: RunFolder, **changed: object) -> None:
    groups = [{"number": 7, "what": "rollouts", "seconds": 12.0, "in_env": {"7/0": 9.0}}]
    told = {"pid": os.getpid(), "written": time.time(), "ended": "", "step": 4, "steps": 9, "groups_per_step": 2}
    told |= {"loops": {"training": {"what": "waits for groups", "seconds": 3.0}}, "waiting": 1, "num_running": 1}
    folder.status.write_text(json.dumps(told | {"groups": groups, "engine": {}, "still_seconds": 0.0} | changed))


def test_now_says_who_waits_for_whom_and_how_long_it_takes(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=4, planned=9)
    status(folder)
    page = guest(tmp_path / "run").get("/now").text
    assert "Training waits for 1 group; the oldest, group 7, has waited 9 s for its environment." in page
    assert "about 0:07 left" in page  # 5 steps of 1.4 s each
    assert re.search(r"<td>7</td><td>its environment \(1 rollouts in it\)</td><td>9</td><td>12</td>", page)


def test_now_says_how_long_engines_have_nothing_to_do(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=1)
    assert "Engines" not in guest(tmp_path / "run").get("/now").text  # an earlier version, which told nothing of them
    times = {"seconds": 8.6, "generate_seconds": 5.0, "train_seconds": 2.0, "engine_seconds": 2.5, "host_seconds": 3.0}
    Journal(folder.metrics, folder.timing).stepped(2, {"reward": 0.5}, times)  # and 1.4 s of the first step
    page = guest(tmp_path / "run").get("/now").text
    shown = re.findall(r'</i>(\d+%) <span class="soft">([^<]*)</span>', page)
    assert shown == [
        ("20%", "waits for engines"),
        ("30%", "waits for environments and rewards"),
        ("20%", "trains"),
        ("30%", "publishes, evaluates, saves"),
        ("25%", "have requests"),
        ("75%", "have nothing to do"),
    ]


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "running"),
        ({"written": 0.0}, "silent"),
        ({"written": 0.0, "pid": 2**22 + 1}, "killed"),
        ({"ended": "KeyError: 1"}, "stopped"),
        ({"ended": "ended"}, "stopped"),
        ({"ended": "ended", "step": 9}, "complete"),
    ],
)
def test_a_run_is_what_its_status_says(tmp_path: Path, changed: dict[str, object], state: str) -> None:
    folder = run_folder(tmp_path / "run", steps=4, planned=9)
    status(folder, **changed)
    run = LiveRun(folder)
    run.look()
    assert run.state == state


def test_runs_that_differ_in_their_seed_alone_are_one_arm(tmp_path: Path) -> None:
    text = "run = Run(envs=(Sums(level=1, seed={seed}),), seed={seed}, recipe='grpo', trainer=Adam(rate={rate}))\n"
    for name, seed, rate in (("a-seed1", 1, 0.1), ("a-seed0", 0, 0.1), ("b", 0, 0.2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.py").write_text(text.format(seed=seed, rate=rate))
    assert "level=1" in setting_of(tmp_path / "b" / "recipe.py")
    runs = [LiveRun(RunFolder(tmp_path / name)) for name in ("a-seed1", "b", "a-seed0")]
    found = {name: [run.name for run in arm] for name, arm in arms_of(runs).items()}
    assert found == {"a": ["a-seed0", "a-seed1"], "b": ["b"]}


def test_several_runs_lie_over_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run_folder(tmp_path / name, steps=6)
    client = guest(tmp_path)
    page = client.get("/curves", params={"run": ["one", "two"], "along": "tokens"}).text
    assert page.count('<svg class="overlay"') == 9 and "Along tokens." in page and 'class="band"' in page
    alone = client.get("/curves", params={"run": "one"}).text
    assert 'svg class="chart' in alone and "grad_norm" not in alone and "All other metrics (2)" in alone
    assert "grad_norm" in client.get("/curves", params={"run": "one", "all": "1"}).text


def test_the_band_of_a_share_ends_at_0_and_1() -> None:
    curves = [([0.0, 1.0], [0.1, 0.9]), ([0.0, 1.0], [0.3, 1.0])]
    shares = mean_line("arm", curves, is_share=True, is_smoothed=False).points
    plain = mean_line("arm", curves, is_share=False, is_smoothed=False).points
    assert (shares[0][1], shares[0][2], shares[-1][3]) == (0.2, 0.0, 1.0)
    assert plain[0][2] < 0 and plain[-1][3] > 1 and [point[1] for point in plain] == [point[1] for point in shares]


def test_what_was_found_at_the_end_of_a_run_is_shown_and_escaped(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=4)
    found = {"name": "length explosion", "evidence": "from 10 to <b>90</b> tokens", "remedy": "a `price` on length"}
    folder.summary.write_text(json.dumps({"is_complete": True, "findings": [found]}))
    page = guest(tmp_path / "run").get("/now").text
    assert "<strong>length explosion</strong>: from 10 to &lt;b&gt;90&lt;/b&gt; tokens. What helps:" in page
    assert "  a <code>price</code> on" in page
