"""Every recipe runs a few steps on the bundled model, and metrics of its own mechanism leave their neutral values.

Which metrics, its record says: `Acts: clipped_share > 0` in the recipe's docstring (strop/catalogue/acts.py). A recipe
that cannot act as configured is an error, as one was whose ratio is 1 at every token.

It walks strop.recipes .
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from _pytest.mark import ParameterSet
from transformers import AutoModelForCausalLM, AutoTokenizer

from strop.catalogue.acts import Acts, read_acts
from strop.catalogue.record import records
from strop.cli.fields.overrides import make_run
from strop.control.samplers.few import Few
from strop.launch.running.launch import launch
from strop.models.loading.model_names import model_folder
from strop.recipes import parameters_of, recipe_named
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.run_folder import WARMUP, RunFolder, read_rows
from strop.training.trainers.torch import TorchTrainer

RECORDS = records()
LEFT_OUT = {"smollm2"}  # its model has 135 million parameters and comes in a package of its own
# those that took more than 2.4 s, most of them because something is shown first: 58 % of the time of all; `make acts`
LONG = [
    "acecoder",
    "acereason_nemotron",
    "agent_rlvr",
    "amft",
    "archer_hierarchical",
    "arena_learning",
    "arpo_agentic",
    "autorefine",
    "bavt",
    "brorl",
    "concise_reasoning",
    "contextevolve",
    "cpl",
    "critique_coder",
    "cure",
    "curr_reft",
    "d1",
    "datarus_r1",
    "demystifying_agentic_rl",
    "digirl",
    "drive",
    "envpool",
    "evolving_rl",
    "fapo_genrm",
    "hardtests",
    "imagined_conversations",
    "mashost",
    "memory_r2",
    "mgpo",
    "mobile_r1",
    "msrl",
    "nudgerl",
    "octothinker",
    "odf",
    "oni",
    "openclaw_rl",
    "openwebvoyager",
    "optima",
    "orpo",
    "pacs",
    "parallel_r1",
    "per_role",
    "playpen",
    "polar",
    "prlcoder",
    "prm_code",
    "pta_grpo",
    "qwenlong_l1",
    "r3",
    "rag_rl",
    "remix",
    "rex_rag",
    "ring_1t",
    "rl_scaling_vlm",
    "rlep",
    "rlinf_vla",
    "rlpt",
    "rltf",
    "router_r1",
    "rtv_pdr",
    "rubric_anchors",
    "sage_abstraction",
    "satori",
    "secrets_of_rlhf_ii",
    "seeupo",
    "self_regulation",
    "sem",
    "slea_rl",
    "spark",
    "spct",
    "spear",
    "srl",
    "sws",
    "team",
    "trace",
    "tracerl",
    "ufo",
    "ui_s1",
    "verltool",
    "vsc_rl",
    "web_agent_diagnosis",
    "webrl",
    "xrpo",
    "zerosearch",
]
# those that need a third step, as a task must come back, and those that run ahead, as the clock decides how far
LONGER = {"alp_gmm", "cures", "dots_rr", "lightsearcher", "mssr", "xskill"}
AHEAD = {"april", "areal", "dart", "dno", "iterative_dpo", "llamarl", "missing_old_logits", "off_policy", "rollart"}
AHEAD |= {"semi_online", "tba", "vcpo"}
# small, and with steps so large that two of them stand for many
SIZES = {"steps": 2, "groups_per_step": 4, "group_size": 4, "max_tokens": 40, "heldout_tasks": 1, "heldout_every": 0}
RATE = 3e-4
ROLLOUTS = 16  # of one step; examples of one step, where something is shown first


def small(name: str, acts: Acts, folders: Mapping[str, str]) -> Run:
    """A recipe as it is, but small; groups that are smaller by default stay so, and there are more of them."""
    recipe = recipe_named(name)
    asked = parameters_of(recipe)
    size = min(SIZES["group_size"], asked["group_size"].default)
    steps = SIZES["steps"] + (name in {*LONG, *LONGER, *AHEAD})
    sizes = SIZES | {"steps": steps, "group_size": size, "groups_per_step": ROLLOUTS // size, "learning_rate": RATE}
    fields = {key: folders.get(value, value) for key, value in acts.fields.items()}
    run = make_run(recipe, {key: str(value) for key, value in sizes.items()} | fields)
    run.warmup = shortened(run.warmup)
    return run


def shortened(warmup: Run | None) -> Run | None:
    """The same steps with fewer examples in each, and those of what comes before it."""
    if warmup is None:
        return None
    return replace(warmup, groups_per_step=min(warmup.groups_per_step, ROLLOUTS), warmup=shortened(warmup.warmup))


def rows_of(run: Run, root: Path, name: str) -> list[dict[str, Any]]:
    """The metrics of every step, those that depend on the clock among them."""
    launch(run, root, name)
    before = _rows(RunFolder(root / name / WARMUP)) if run.warmup is not None else []
    return [
        *_rows(RunFolder(root / name)),
        *({f"{WARMUP}/{key}": value for key, value in row.items()} for row in before),
    ]


def _rows(folder: RunFolder) -> list[dict[str, Any]]:
    timing = {row["step"]: row for row in read_rows(folder.timing)}
    return [row | timing.get(row["step"], {}) for row in read_rows(folder.metrics) if row["step"] > 0]


@pytest.fixture(scope="module")
def another_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bundled model, a little off: a teacher whose opinion differs."""
    folder = tmp_path_factory.mktemp("models") / "other"
    model = AutoModelForCausalLM.from_pretrained(model_folder("pocket"))
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(1 + 0.05 * torch.randn(weights.shape, generator=random))
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model_folder("pocket")).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def former_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("runs")
    launch(small("pocket", Acts((), {}), {}), root, "former")
    return str(root / "former")


@pytest.fixture(scope="module")
def pilot_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run that tried the same two tasks in every step."""
    root = tmp_path_factory.mktemp("runs")
    run = small("pocket", Acts((), {}), {})
    run.sampler = Few(run.envs, 2)
    launch(run, root, "pilot")
    return str(root / "pilot")


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bundled model after a short supervised run on programs, some of which it then writes: one for all recipes."""
    root = tmp_path_factory.mktemp("runs")
    run = shown(Setting(env="programs:1", heldout_tasks=1), "coder", 16)
    assert run is not None
    run.groups_per_step, run.trainer = 16, TorchTrainer(learning_rate=1e-3)
    launch(run, root, "coder")
    return str(checkpoint.listed(RunFolder(root / "coder").checkpoints)[-1])


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A shared folder with groups of another node."""
    folder = tmp_path_factory.mktemp("shared")
    run = small("sapo_sharing", Acts((), {"folder": str(folder), "node": "peer"}), {})
    launch(run, tmp_path_factory.mktemp("runs"), "peer")
    return str(folder)


FOLDERS = {
    "CODER": "coder",
    "MODEL": "another_model",
    "RUN": "former_run",
    "PILOT": "pilot_run",
    "PEER": "peer",
}  # made only where a record asks for them


def named() -> list[ParameterSet]:
    found = [name for name in RECORDS if name not in LEFT_OUT]
    return [pytest.param(name, marks=pytest.mark.acts if name in LONG else ()) for name in found]


@pytest.mark.parametrize("name", named())
def test_its_mechanism_acts(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert RECORDS[name].acts, (
        f"{RECORDS[name].module} does not say how its mechanism shows that it acts: add a line to its docstring such "
        "as `Acts: clipped_share > 0`, a metric of metrics.jsonl and the value it has where the mechanism does nothing"
    )
    acts = read_acts(RECORDS[name].acts)
    wanted = FOLDERS.keys() & acts.fields.values()
    rows = rows_of(small(name, acts, {word: request.getfixturevalue(FOLDERS[word]) for word in wanted}), tmp_path, name)
    assert all(math.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))
    still = acts.at_rest(rows)
    found = {metric.name: [row.get(metric.name, "missing") for row in rows] for metric in still}
    assert not still, (
        f"{name} says {', '.join(map(str, still))}, and its steps say {found}; there are {sorted(rows[0])}"
    )


def test_long_ones_are_recipes() -> None:
    assert set(LONG) <= set(RECORDS) and len(set(LONG)) == len(LONG) < len(RECORDS) / 3


def test_a_mechanism_that_cannot_act_is_found(tmp_path: Path) -> None:
    """One optimizer step per batch at lag 0: every ratio is 1, and CISPO is a plain policy gradient."""
    acts = read_acts(RECORDS["cispo"].acts)
    run = replace(small("cispo", acts, {}), minibatches=1)
    assert acts.at_rest(rows_of(run, tmp_path, "idle")) == list(acts.metrics)
