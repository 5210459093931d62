"""Choice among all recipes: a few answers about a user's setting lead to three of them, with reasons and evidence.

Evidence is what a paper claims and what effects/ measured, nulls included; `effects.json` beside this file is its
summary, which an installed package has too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from strop.catalogue.record import PACKAGE, Record
from strop.errors import ConfigurationError, nearest

SUMMARY = Path(__file__).parent / "effects.json"
_SHOWN = ("claim", "verdict", "metric", "difference", "low", "high", "seeds", "date")
_METRICS = {"heldout_after": "held-out accuracy", "heldout_area": "mean held-out accuracy over the run"}

# question, and what may be answered
QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "signal": (
        "What says that a completion is good?",
        ("answers", "reward", "judge", "preferences", "demonstrations", "teacher", "nothing"),
    ),
    "turns": (
        "Does a rollout have one turn or several, with tools or an environment that answers?",
        ("one", "several"),
    ),
    "solved": ("How often does the model solve a task today?", ("never", "sometimes", "mostly")),
    "solutions": ("Do your tasks come with worked solutions?", ("no", "yes")),
    "tasks": ("How many tasks are there?", ()),
    "tokens": ("How many tokens does a completion have at most?", ()),
    "gpus": ("How many GPUs?", ()),
}


@dataclass(frozen=True)
class Situation:
    """A user's answers, and the model and tasks that the commands name."""

    signal: str = "answers"
    turns: str = "one"
    solved: str = "sometimes"
    solutions: str = "no"
    tasks: int = 1000
    tokens: int = 64
    gpus: int = 0
    model: str = "pocket"
    env: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether a program says what a completion of one turn is worth."""
        return self.signal in ("answers", "reward") and self.turns == "one"


@dataclass(frozen=True)
class Suggestion:
    """A recipe and why it suits; `fields` are words of its command."""

    recipe: str
    why: str
    fields: str = ""


@dataclass(frozen=True)
class Case:
    """Recipes, with reasons, for the situations that `suits` is true of; earlier cases come first."""

    suits: Callable[[Situation], bool]
    recipes: dict[str, str]
    fields: str = ""  # that the command of each needs


def _signal(name: str) -> Callable[[Situation], bool]:
    return lambda asked: asked.signal == name and asked.turns == "one"


def _solved(often: str, solutions: str = "") -> Callable[[Situation], bool]:
    return lambda asked: asked.is_scored and asked.solved == often and asked.solutions in (solutions or asked.solutions)


CASES = (
    Case(
        lambda asked: asked.turns == "several",
        {
            "ragen": "PPO over several turns that trains on the groups whose rewards differ most",
            "turn_mean": "each turn is compared with the same turn of its siblings",
            "grpo": "one advantage for all turns of a rollout: the simplest baseline",
        },
    ),
    Case(
        _signal("preferences"),
        {
            "dpo": "the usual start for pairs; held near the model that it begins with",
            "simpo": "needs no reference model, and length alone earns nothing",
            "orpo": "learns the chosen completions too, so it may begin with a base model",
        },
        "pairs=given",
    ),
    Case(
        _signal("demonstrations"),
        {
            "sft": "the plain start: likelihood of the demonstrations",
            "ift": "inputs are mixed with the model's own tokens, so it learns to go on from its errors",
            "language_irl": "a penalty keeps more variety than likelihood alone",
        },
    ),
    Case(
        _signal("teacher"),
        {
            "distillation": "a teacher scores every token of the student's completions; tasks need no answers",
            "kdrl": "the same pull beside the reward of right answers",
            "teacher_forcing_rewards": "rewards come from the teacher's logits; no completion is judged",
        },
        "teacher=FOLDER",
    ),
    Case(
        _signal("nothing"),
        {
            "mm_upt": "the reward is agreement with the majority of siblings",
            "ettrl": "the same with rollouts that branch at uncertain tokens",
            "rlsc": "the reward is the model's own confidence; for a few steps only",
        },
    ),
    Case(
        _signal("judge"),
        {
            "rlcf": "the judge checks one list of requirements per task: small, checkable questions",
            "think_rm": "the judge compares two completions at a time, which is steadier than scores",
            "spct_votes": "the judge scores all siblings at once, several times, and the votes are added",
        },
        "judge=http://HOST:PORT/v1#MODEL",
    ),
    Case(
        _solved("never", "yes"),
        {
            "relift": "no rollout is right, so there is nothing to reinforce: unsolved tasks are demonstrated",
            "seele": "a prefix of the solution, as long as makes about half of the rollouts right",
            "guide": "hints where all rollouts failed; training does not see them",
        },
    ),
    Case(
        _solved("never"),
        {
            "dapo": "groups in which all rollouts fail are replaced, so every step has contrast",
            "pcl": "a value model finds the tasks that are neither solved nor out of reach",
            "dars": "hard tasks get a second wave of rollouts",
        },
    ),
    Case(
        _solved("mostly"),
        {
            "pcl": "a value model finds the tasks that are not yet solved",
            "conciser": "where all rollouts are right, shorter ones earn more",
            "dapo": "groups in which all rollouts are right are replaced",
        },
    ),
    Case(
        lambda asked: asked.is_scored and (asked.tokens >= 4096 or asked.gpus > 1),
        {
            "areal": "generation goes on during a training step: completions of uneven length do not wait",
            "dapo": "one mean over all tokens, and a penalty before completions are cut",
            "dr_grpo": "no division by length, so wrong completions do not grow",
        },
    ),
    Case(
        lambda asked: asked.is_scored and asked.tasks < 300,
        {"remix": "few tasks: every rollout is used several times, within a trust region"},
    ),
    Case(
        lambda asked: asked.is_scored and asked.tasks >= 5000,
        {"pcl": "many tasks: a value model chooses those of medium difficulty, also among new ones"},
    ),
    Case(
        lambda asked: asked.is_scored,
        {
            "grpo": "the plain start, known best; compare all others with it",
            "poise": "two rollouts per task instead of eight, with a baseline from hidden states",
            "dapo": "no KL penalty, a wider upper clip, and only groups with contrast",
        },
    ),
)


def situation_of(answers: Mapping[str, str]) -> Situation:
    """A situation from answers as text; refuses unknown questions and answers."""
    known = [field.name for field in fields(Situation)]
    found: dict[str, Any] = {}
    for name, said in answers.items():
        if name not in known:
            raise ConfigurationError(f"recommend has no field {name!r}: {nearest(name, known)}")
        choices = QUESTIONS.get(name, ("", ()))[1]
        if choices and said not in choices:
            raise ConfigurationError(f"{name}={said!r} is none of {', '.join(choices)}: {nearest(said, choices)}")
        is_number = name in ("tasks", "tokens", "gpus")
        if is_number and not said.isdigit():
            raise ConfigurationError(f"{name}={said!r} is not a whole number, as in {name}={getattr(Situation, name)}")
        found[name] = int(said) if is_number else said
    return Situation(**found)


def recommended(asked: Situation) -> list[Suggestion]:
    """Three different recipes."""
    found: dict[str, Suggestion] = {}
    for case in CASES:
        if case.suits(asked):
            for name, why in case.recipes.items():
                found.setdefault(name, Suggestion(name, why, case.fields))
    return list(found.values())[:3]


def command(asked: Situation, each: Suggestion) -> str:
    """The command that begins such a run."""
    table = "pairs.jsonl" if asked.signal == "preferences" else "tasks.jsonl"
    env = asked.env or ("environment.py:Own" if asked.turns == "several" else table)
    words = ["strop train", each.recipe, f"model={asked.model}", f"env={env}"]
    words += (
        ["reward=rewards.py:score", "reward_range=0,1"] if asked.signal == "reward" and asked.turns == "one" else []
    )
    words += [each.fields] if each.fields else []
    words += [f"max_tokens={asked.tokens}"] if asked.tokens != Situation.tokens else []
    words += [f"context={2 * asked.tokens}"] if asked.tokens > 256 else []
    words += ["device=cuda"] if asked.gpus else []
    return " ".join(f"'{word}'" if "#" in word else word for word in words)


def evidence(record: Record) -> list[str]:
    """What its paper claims, and what was measured here: a sentence for each experiment."""
    lines = [f"Others: {record.claim}"] if record.claim else []
    measured = [_measured(key, found) for key, found in effects().items() if _is_about(key, record.key)]
    return [*lines, *(measured or ["Here: not measured."])]


def _is_about(experiment: str, key: str) -> bool:
    """Experiments of one mechanism in several task sets have its key at their end."""
    return experiment == key or (experiment.endswith(f"-{key}") and experiment.split("-")[0] in _SETS)


_SETS = ("haystack", "guess", "broken", "lying")


def _measured(key: str, found: Mapping[str, Any]) -> str:
    points = [100 * float(found[name]) for name in ("difference", "low", "high")]
    metric = _METRICS.get(found["metric"], found["metric"])
    return (
        f"Here: {found['verdict']}. {found['claim']} {points[0]:+.1f} points of {metric} "
        f"({points[1]:+.1f} to {points[2]:+.1f}, {len(found['seeds'])} seeds; `strop effect {key}`)."
    )


def effects(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Summaries of the measured effects by key: of the results in a folder, or those that the package has."""
    if folder is None:
        found: dict[str, dict[str, Any]] = json.loads(SUMMARY.read_text()) if SUMMARY.is_file() else {}
        return found
    results = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    of_claims = {key: result for key, result in results.items() if result.get("verdict")}
    return {key: summary_of(result) for key, result in of_claims.items()}


def summary_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of an experiment's result."""
    return {name: result[name] for name in _SHOWN if name in result}


def summary_text(root: Path = PACKAGE.parent) -> str:
    """`effects.json` as it should be."""
    return json.dumps(effects(root / "effects" / "results"), indent=1) + "\n"


# Situations that the page shows: a title, and the answers.
SHOWN: tuple[tuple[str, dict[str, str]], ...] = (
    ("Answers or a reward of your own, sometimes reached", {}),
    ("The same with a reward of your own", {"signal": "reward"}),
    ("Never solved, with worked solutions", {"solved": "never", "solutions": "yes"}),
    ("Never solved, without solutions", {"solved": "never"}),
    ("Mostly solved", {"solved": "mostly"}),
    ("Long completions, or several GPUs", {"tokens": "8192", "gpus": "2"}),
    ("Few tasks", {"tasks": "100"}),
    ("Many tasks", {"tasks": "50000"}),
    ("Several turns, tools", {"turns": "several"}),
    ("A judge says what is good", {"signal": "judge"}),
    ("Preferences", {"signal": "preferences"}),
    ("Demonstrations alone", {"signal": "demonstrations"}),
    ("A stronger model with the same vocabulary", {"signal": "teacher"}),
    ("Tasks alone, nothing that judges", {"signal": "nothing"}),
)
