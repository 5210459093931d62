"""What mechanisms need of environments and models is refused before the run, with what supplies it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.launch.checks.preflight_all import make_ready
from strop.recipes import build, recipe_named
from tests.tiny_models import save_pocket_like

LACKING = {
    "mgpo": r"no closer look: its first completion ends the rollout: take env=crop:1",
    "playpen": r"no game: its first completion ends the rollout: take an environment of several turns",
    "datarus_r1": r"no tools: take env=notebook:1, or your own environment with tools",
    "msrl": r"no preferences: each row needs the columns `chosen` and `rejected`",
    "verltool": r"the model is to call calc, and the chat template of \S+ shows no tools: take a model whose",
}


def table(folder: Path) -> str:
    path = folder / "own.jsonl"
    worked = "We begin with {} clips. Seven more make {}."
    rows = [{"prompt": f"{n}+7=?", "answer": str(n + 7), "solution": worked.format(n, n + 7)} for n in range(40)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("recipe", LACKING)
def test_a_table_of_single_questions_lacks_it(recipe: str, tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    run = build(recipe_named(recipe), {"env": table(tmp_path), "model": model, "steps": 1})
    with pytest.raises(ConfigurationError, match=LACKING[recipe]):
        make_ready(run)


def test_a_model_that_is_shown_tools_or_was_taught_them_may_call(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    fields = {"env": table(tmp_path), "model": str(model), "steps": 1}
    named = tmp_path / "named.jsonl"
    rows = [{"prompt": f"Use calc. {n}+7=?", "answer": str(n + 7)} for n in range(40)]
    named.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    make_ready(build(recipe_named("verltool"), {**fields, "env": str(named)}))
    make_ready(build(recipe_named("verltool"), {**fields, "warmup_steps": 2}))
    checkpoint = tmp_path / "run" / "checkpoints" / "step-1"
    checkpoint.parent.mkdir(parents=True)
    model.rename(checkpoint)
    (tmp_path / "run" / "recipe.py").write_text("")
    make_ready(build(recipe_named("verltool"), {**fields, "model": str(checkpoint)}))
