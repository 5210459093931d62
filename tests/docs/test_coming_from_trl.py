"""The table of fields for users of TRL: every name in it is one."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

import pytest

from strop.catalogue.record import recipe_files
from strop.cli.fields.overrides import paths
from strop.generate.engines.select_engine import EngineName
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.recipes import parameters_of
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from tests.docs.pages import DOCS

PAGE = (DOCS / "coming-from-trl.md").read_text()
ROWS = [
    line.strip("| ").split(" | ") for line in PAGE.partition("## Fields of GRPOConfig")[2].splitlines() if "|" in line
]


def test_fields_and_recipes_of_strop_exist() -> None:
    run = grpo(Setting(device="cuda"))
    known = {*parameters_of(grpo), *recipe_files(), *(path for path, _ in paths(run)), "rewards.1.weight"}
    known |= {f"engine.{each.name}" for each in fields(VllmEngine)} | {
        f"engine={name}" for name in get_args(EngineName)
    }
    named = {name for row in ROWS[2:] for name in re.findall(r"`([^`]+)`", row[1])}
    after = PAGE.partition("Of transformers' own arguments")[2].partition("## What differs")[0]
    named |= set(re.findall(r"`[^`]+`\s+is\s+`([^`=]+)", after)) - {"--track"}
    commands = {name for name in named if name.startswith("strop ") or "(" in name or name == "ledger.db"}
    assert len(named - commands) >= 28 and not named - commands - known - {"sequence"}


def test_fields_of_trl_exist() -> None:
    config = pytest.importorskip("trl").GRPOConfig
    named = {name for row in ROWS[2:] for name in re.findall(r"`([^`]+)`", row[0])}
    assert len(named) > 25 and not named - set(config.__dataclass_fields__)
