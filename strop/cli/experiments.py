"""Commands about recipes and papers, and for experiments: effects, comparisons, simulations, attacks on rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strop.cli.app import PASS_ON, AsJson, Debug, Runs, Seed, Trust, app


@app.command()
def recipes(
    asked: Annotated[str, typer.Argument(metavar="[CLASS|WORD]")] = "",
    debug: Debug = False,
) -> None:
    """List recipes: all, those of a class, or those whose description contains a word."""
    from strop.cli.fields.recipe_help import list_recipes

    list_recipes(asked)


@app.command("recommend", context_settings=PASS_ON)
def recommend_recipes(
    words: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE ...]")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Name three recipes for your setting, with reasons and commands."""
    from strop.cli.commands.recommend import recommend

    recommend(words or [], as_json)


@app.command()
def papers(
    key: Annotated[str, typer.Argument(metavar="[KEY]")] = "", as_json: AsJson = False, debug: Debug = False
) -> None:
    """List the implemented papers; with KEY: claim, interpretation, mechanisms, fields, tests, measured effect."""
    from strop.cli.commands.papers import show_papers

    show_papers(key, as_json)


@app.command()
def effect(
    key: Annotated[str, typer.Argument(metavar="KEY", help="An experiment: a key of effects/, or a file.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE ...]", help="device=cuda")] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Number of seeds; each runs all three arms.")] = 6,
    tokens: Annotated[int, typer.Option("--tokens", min=0, help="Generated tokens per run; 0: the default.")] = 0,
    folder: Annotated[Path | None, typer.Option("--effects", help="Folder of the experiments.")] = None,
    runs: Runs = Path("runs/effects"),
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Parallel runs; 0: as many as cores allow.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace even a result from more tokens.")] = False,
    debug: Debug = False,
) -> None:
    """Test the claim of a paper: treatment, control and negative control at equal numbers of tokens."""
    from strop.launch.experiments.preloaded_forks import warm

    warm()  # overlaps slow imports in the background with those that follow
    from strop.cli.commands.effect import run_effect

    run_effect(key, words or [], seeds, tokens, folder, runs, jobs, overwrite)


@app.command()
def compare(
    words: Annotated[list[str], typer.Argument(metavar="ARM ARM ... [FIELD=VALUE ...]")],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds; each runs every arm.")] = 3,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Generated tokens per run.")] = 80_000,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Parallel runs; 0: as many as cores allow.")] = 0,
    name: Annotated[str, typer.Option("--name", help="Name of the folder.")] = "",
    runs: Runs = Path("runs/compare"),
    debug: Debug = False,
) -> None:
    """Compare recipes, settings ("grpo minibatches=4") or run folders: a live table, then one page with curves."""
    from strop.launch.experiments.preloaded_forks import warm

    warm()
    from strop.cli.commands.compare import compare as run_comparison

    run_comparison(words, seeds, tokens, jobs, runs, name)


@app.command(context_settings=PASS_ON)
def simulate(
    words: Annotated[list[str], typer.Argument(metavar="SAMPLER|RECIPE [FIELD=VALUE ...]")],
    env: Annotated[str, typer.Option("--env", "-w", help="Scenarios, comma-separated, or all.")] = "all",
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Number of seeds.")] = 6,
    estimator: Annotated[
        str, typer.Option("--estimator", help="Pass-rate estimator, by file or class; default: the recipe's.")
    ] = "",
    lag: Annotated[int, typer.Option("--lag", min=0, help="Steps until the result of a rollout is seen.")] = 0,
    bias: Annotated[float, typer.Option("--bias", help="Start with results of a policy this much worse.")] = 0.0,
    lies: Annotated[bool, typer.Option("--permute-levels", help="Assign levels to tasks at random.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Measure what a curriculum gains over uniform sampling on a simulated learner: seconds, no language model."""
    from strop.cli.commands.simulate import scenarios_of
    from strop.cli.commands.simulate import simulate as run_simulation

    run_simulation(words, scenarios_of(env, lag, bias, lies), seeds, as_json, estimator)


@app.command()
def diagnose(
    places: Annotated[list[Path], typer.Argument(metavar="RUN|DIR ...", help="Run folders, or folders of them.")],
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Number of bootstrap resamples.")] = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Rank the settings of many finished runs by their effect, and their values, with 95% intervals."""
    from strop.cli.commands.diagnose import diagnose as diagnose_runs

    diagnose_runs(places, resamples, seed, as_json)


@app.command("doctor")
def examine_runs(
    places: Annotated[list[Path], typer.Argument(metavar="RUN|DIR ...", help="Run folders, or folders of them.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Health checks of a run: problem, evidence, remedy. Exits with 1 if a finding is grave."""
    from strop.cli.commands.doctor import doctor

    raise typer.Exit(doctor(places, as_json))


@app.command("attack", context_settings=PASS_ON)
def attack_reward(
    words: Annotated[list[str], typer.Argument(metavar="ENV|REWARD|RECIPE|FILE.py:FUNCTION [FIELD=VALUE ...]")],
    env: Annotated[list[str] | None, typer.Option("--env", "-w", help="As in eval; default: all bundled.")] = None,
    completions: Annotated[int, typer.Option("--completions", min=1, help="Per environment.")] = 1000,
    seed: Seed = 0,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, help="Time limit per completion.")] = 5.0,
    report: Annotated[bool, typer.Option("--report", help="Run all checks; write a page and a JSON file.")] = False,
    out: Annotated[Path, typer.Option("--out", help="With --report: output folder.")] = Path("certificates"),
    trust: Trust = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Attack a reward with hostile completions. Exits with 1 if one is rewarded like a right answer."""
    from strop.cli.commands.attack import attack, certify

    if report:
        raise typer.Exit(certify(words, env or (), (completions, seed, seconds), out, trust))
    raise typer.Exit(attack(words, env or (), completions, seed, seconds, as_json, trust))


@app.command("check")
def check_model(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A folder, a run, `pocket`, or a Hugging Face id.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Whether a model can be trained: proofs, path, memory, speed, template. Exits with 1 if something is refused."""
    from strop.cli.commands.check import check

    raise typer.Exit(check(model, as_json))
