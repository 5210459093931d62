"""Effect experiments: test of a mechanism's claim at equal generated tokens, over seeds, against two controls.

An experiment is a file `effects/KEY.py` that defines `experiment`; its result goes to `effects/results/KEY.json`. A
null or negative result is a result.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from strop.capabilities import OnDevice, inside
from strop.errors import ConfigurationError, nearest
from strop.launch.experiments.side_by_side import Job, SideBySide, how_many
from strop.models.torch_setup import device_problem
from strop.observe.metrics.tokens_to_target import mean_curve, share_of_tokens
from strop.observe.report.compare_runs import metrics_of
from strop.observe.run_files.provenance import code, commit, hardware, versions
from strop.recipes.setting import Setting
from strop.run import Run
from strop.stats.intervals import Difference, paired
from strop.storage.run_folder import RunFolder

ARMS = ("treatment", "control", "negative")
_NO_LIMIT = 1_000_000_000  # steps: the token budget ends an arm
_BESIDE = Path(__file__).parents[2] / "effects"  # of a clone

Arm = Callable[[Setting], Run]
Metrics = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """Claim and the runs that test it; each arm builds its run from a setting, whose seed and device it keeps."""

    key: str  # of the paper
    claim: str
    treatment: Arm
    control: Arm  # the same without the mechanism, or what the paper compares with
    negative: Arm  # the mechanism without what it lives from; must not show the effect
    tokens: int  # generated, by each arm of each seed
    metric: str = "heldout_after"  # or heldout_area, the mean over the whole run
    higher_is_better: bool = True
    smallest: float = 0.02  # a difference below this would not matter
    path: Path = Path()  # its file, once loaded; other processes load it from there, too

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigurationError(f"experiment {self.key} needs tokens >= 1, got {self.tokens}")


def find_experiment(word: str, folder: Path | None = None) -> Path:
    """The file that a key or a path means: in `folder`, in effects/ here, or in the clone's."""
    if word.endswith(".py"):
        path = Path(word)
        if not path.is_file():
            raise ConfigurationError(f"there is no experiment file {path}")
        return path.resolve()
    folders = [folder] if folder is not None else [Path("effects"), _BESIDE]
    for each in folders:
        if (path := each / f"{word}.py").is_file():
            return path.resolve()
    found = sorted({path.stem for each in folders for path in each.glob("*.py")})
    none = "experiments are not installed with the package; name a file, or the folder of a checkout with --effects"
    hint = nearest(word, found) if found else none
    raise ConfigurationError(f"there is no experiment {word!r} in {folders[-1]}: {hint}")


def load_experiment(path: Path) -> Experiment:
    """The experiment of a file."""
    experiment = runpy.run_path(str(path)).get("experiment")
    if not isinstance(experiment, Experiment):
        raise ConfigurationError(f"{path} defines no `experiment`")
    if experiment.key != path.stem:
        raise ConfigurationError(f"{path} is the experiment of {experiment.key!r}: its file name must be its key")
    return replace(experiment, path=path)


@dataclass(frozen=True)
class Plan:
    """Runs of a result: seeds, the setting that all of them start from, and their folders."""

    experiment: Experiment
    seeds: int
    setting: Setting
    runs: Path

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise ConfigurationError(f"an interval over seeds needs at least 2 seeds, got {self.seeds}")

    @property
    def root(self) -> Path:
        """Runs of other code, another budget or another setting are not gone on with: they have another folder."""
        what = (code(), self.experiment.path.read_text(), self.experiment.tokens, self.setting)
        return self.runs / f"{self.experiment.key}-{hashlib.sha256(repr(what).encode()).hexdigest()[:8]}"

    @property
    def arms(self) -> dict[str, list[RunFolder]]:
        root = self.root
        return {arm: [RunFolder(root / _name(arm, seed)) for seed in range(self.seeds)] for arm in ARMS}

    @property
    def jobs(self) -> list[Job]:
        """Seed by seed, so that after each the comparison is fair."""
        path, tokens = self.experiment.path, self.experiment.tokens
        wanted = [(arm, replace(self.setting, seed=seed)) for seed in range(self.seeds) for arm in ARMS]
        return [Job(_name(arm, each.seed), partial(run_of, path, arm, each, tokens)) for arm, each in wanted]


def _name(arm: str, seed: int) -> str:
    return f"{arm}-seed{seed}"


def run_of(path: Path, arm: str, setting: Setting, tokens: int) -> Run:
    """One arm's run of one seed, made from the experiment's file."""
    make: Arm = getattr(load_experiment(path), arm)
    run = make(setting)
    devices = {part.device for part in inside((run.engine, run.trainer), OnDevice)}
    if run.seed != setting.seed or devices - {setting.device}:
        raise ConfigurationError(
            f"{arm} of {path} runs with seed {run.seed} on {' and '.join(sorted(devices))}, and was asked for seed "
            f"{setting.seed} on {setting.device}: make its setting from the one it is given, with replace(setting, ...)"
        )
    return replace(run, steps=_NO_LIMIT, max_generated_tokens=tokens)


def run_experiment(plan: Plan, jobs: int = 0, tell: Callable[[], None] = lambda: None) -> Metrics:
    """All arms over all seeds, `jobs` of them side by side (0: as cores allow); returns the result."""
    if problem := device_problem(plan.setting.device):
        raise ConfigurationError(problem)
    wanted = plan.jobs
    processes = jobs or how_many(len(wanted), plan.setting.threads)
    SideBySide(plan.root, processes, plan.setting.device.startswith("cuda"), tell).run(wanted)
    metrics = {arm: [metrics_of(folder) for folder in folders] for arm, folders in plan.arms.items()}
    return judge(plan.experiment, metrics) | {
        "setting": {name: value for name, value in vars(plan.setting).items() if value != getattr(Setting(), name)},
        "processes": processes,
        "hardware": hardware(plan.setting.device),
        "versions": versions(),
        "commit": commit(),
        "code": code(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }


def judge(experiment: Experiment, metrics: Mapping[str, Sequence[Metrics]]) -> Metrics:
    """Metrics by seed, paired differences with intervals, and what they mean for the claim."""
    effect, beyond_chance = (_difference(metrics, experiment.metric, other) for other in ("control", "negative"))
    return {
        "key": experiment.key,
        "claim": experiment.claim,
        "verdict": verdict(effect, beyond_chance, experiment),
        "metric": experiment.metric,
        "difference": effect.mean,
        "low": effect.low,
        "high": effect.high,
        "against_negative": _plain(beyond_chance),
        "area": {
            "against_control": _plain(_difference(metrics, "heldout_area", "control")),
            "against_negative": _plain(_difference(metrics, "heldout_area", "negative")),
        },
        "tokens_to_end_of_control": _shares(metrics),
        "means": {arm: sum(_values(metrics[arm], experiment.metric)) / len(metrics[arm]) for arm in ARMS},
        "smallest": experiment.smallest,
        "higher_is_better": experiment.higher_is_better,
        "tokens": experiment.tokens,
        "seeds": [row["seed"] for row in metrics["treatment"]],
        "arms": {arm: list(metrics[arm]) for arm in ARMS},
    }


def _shares(metrics: Mapping[str, Sequence[Metrics]]) -> dict[str, float | None]:
    """Tokens to where the control ends, as a share of the control's, by mean curves; None: never got there."""
    curves = {arm: mean_curve([row["heldout_curve"] for row in rows]) for arm, rows in metrics.items()}
    return {arm: share_of_tokens(curves[arm], curves["control"]) for arm in ARMS if arm != "control"}


def _values(rows: Sequence[Metrics], metric: str) -> list[float]:
    return [float(row[metric]) for row in rows]


def _difference(metrics: Mapping[str, Sequence[Metrics]], metric: str, other: str) -> Difference:
    return paired(_values(metrics["treatment"], metric), _values(metrics[other], metric))


def _plain(found: Difference) -> dict[str, float]:
    return {"difference": found.mean, "low": found.low, "high": found.high}


def verdict(effect: Difference, beyond_chance: Difference, experiment: Experiment) -> str:
    """holds: better than both controls beyond chance; does not hold: an effect that matters is ruled out."""
    sign = 1 if experiment.higher_is_better else -1
    worst, best = sorted((sign * effect.low, sign * effect.high))
    worst_beyond = min(sign * beyond_chance.low, sign * beyond_chance.high)
    if worst > 0 and worst_beyond > 0:
        return "holds"
    return "does not hold" if best < experiment.smallest else "undecided"


def write_result(folder: Path, result: Metrics, overwrite: bool = False) -> Path | None:
    """`folder/KEY.json`, and a table for reading beside it; None where that would replace a result that cost more."""
    target = folder / f"{result['key']}.json"
    if not overwrite and target.is_file() and is_cheaper(result, json.loads(target.read_text())):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    target.with_suffix(".md").write_text(as_markdown(result))
    return target


def is_cheaper(result: Metrics, other: Metrics) -> bool:
    """Whether a result has fewer seeds than another, or fewer tokens in each run."""
    return len(result["seeds"]) < len(other["seeds"]) or result["tokens"] < other["tokens"]


def as_markdown(result: Metrics) -> str:
    """The result as a short table."""
    metric, machine = result["metric"], result.get("hardware", {})
    rows = [
        f"| {seed} | " + " | ".join(f"{result['arms'][arm][index][metric]:.3f}" for arm in ARMS) + " |"
        for index, seed in enumerate(result["seeds"])
    ]
    means = "| mean | " + " | ".join(f"{result['means'][arm]:.3f}" for arm in ARMS) + " |"
    where = " · ".join(
        str(each) for each in (machine.get("gpu") or machine.get("processor"), result.get("commit")) if each
    )
    lines = [
        f"# {result['key']}: {result['verdict']}",
        "",
        result["claim"],
        "",
        f"{metric} after {result['tokens']:,} generated tokens per run; {result.get('date', '')} {where}".rstrip(),
        "",
        f"| seed | {' | '.join(ARMS)} |",
        "|---|" + "---|" * len(ARMS),
        *rows,
        means,
        "",
        f"Treatment minus control: {_interval(result)}. "
        f"Treatment minus negative control: {_interval(result['against_negative'])}.",
        f"Area under the held-out curve, treatment minus control: {_interval(result['area']['against_control'])}.",
        "Tokens to where the control ends, as a share of its own: "
        + ", ".join(f"{arm} {_share(share)}" for arm, share in result["tokens_to_end_of_control"].items())
        + ".",
        *_to_target(result["arms"]),
    ]
    return "\n".join(lines) + "\n"


def _to_target(arms: Mapping[str, Sequence[Metrics]]) -> list[str]:
    """After how many tokens more than half of an arm's runs were at the target; one that never was comes last."""
    if "target" not in arms["treatment"][0]:
        return []
    found = {arm: sorted(_reached(row) for row in rows)[len(rows) // 2] for arm, rows in arms.items()}
    told = [f"{arm} {'never' if math.isinf(tokens) else f'{tokens:,.0f}'}" for arm, tokens in found.items()]
    return [f"Tokens until more than half of the runs were at {arms['treatment'][0]['target']}: {', '.join(told)}."]


def _reached(row: Metrics) -> float:
    return math.inf if row["tokens_to_target"] is None else float(row["tokens_to_target"])


def _interval(metrics: Mapping[str, float]) -> str:
    return f"{metrics['difference']:+.3f} (95% interval {metrics['low']:+.3f} to {metrics['high']:+.3f})"


def _share(share: float | None) -> str:
    return "never gets there" if share is None else f"{share:.2f}"
