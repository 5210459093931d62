"""The grammar of named parts: one for judges, teachers, generators and simulators, and no silent replacement."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from strop.capabilities import inside
from strop.environments.tools.search_tool import AskedSearch, Retrieval
from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.llm_clients.local_model import Local
from strop.generate.llm_clients.named import Named
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.own_models import Beginning, Itself
from strop.generate.llm_clients.without_model import OwnFunction, Procedural
from strop.launch.checks.preflight import check
from strop.models.loading.model_names import POCKET
from strop.recipes import build, recipe_named
from strop.recipes.named_parts import KEY_VARIABLE, named_generator, named_model, named_part
from strop.recipes.setting import Setting
from strop.roles import LLMClient
from strop.standins.rewrite.dispatch import Rewriting

ADDRESS = "http://127.0.0.1:1/v1#m"
TEACHERS = {"thinktuning": "teacher", "agent_rlvr": "teacher", "think_rm": "judge", "ampo": "teachers"}


def client(text: str, **setting: Any) -> LLMClient:
    named = named_part("judge", text, Setting(**setting), dedent)
    assert isinstance(named, Named) and (named.role, named.called) == ("judge", text)
    return named.client


def test_a_part_is_an_address_a_model_the_policy_or_a_function(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def judge(prompt):\n    return prompt\n")
    assert client(ADDRESS) == Endpoint("http://127.0.0.1:1/v1", "m", key_variable=KEY_VARIABLE)
    assert client("itself") == Itself() and client("reference") == Beginning()
    assert client(f"{own}:judge") == OwnFunction(f"{own}:judge")
    assert client(str(tmp_path)) == Local(str(tmp_path)) and client("pocket") == Local(str(POCKET))
    for wrong in ("http://127.0.0.1:1/v1", "ftp://h#m", f"{own}:nobody", "gone.py:judge"):
        with pytest.raises(ConfigurationError):
            client(wrong)
    with pytest.raises(ConfigurationError, match=r"folder rule does not exist: need http.* itself, reference, or FILE"):
        check(build(recipe_named("carmo"), {"judge": "rule"}))


def test_rules_are_for_the_environment_they_were_written_for(tmp_path: Path) -> None:
    table = tmp_path / "own.jsonl"
    table.write_text('{"prompt": "1+1=?", "answer": "2"}\n')
    assert isinstance(named_part("judge", "rules", Setting(), dedent), Procedural)
    assert named_generator("rules", Setting()) == Rewriting() and named_generator("itself", Setting()) is None
    with pytest.raises(ConfigurationError, match=r"written for the bundled environments, and env=.*own.jsonl is none"):
        named_part("judge", "rules", Setting(env=str(table)), dedent)
    with pytest.raises(ConfigurationError, match="written for the environment guess, and env=arithmetic:4 is none: na"):
        named_part("judge", "rules", Setting(), dedent, ("guess",))
    with pytest.raises(ConfigurationError, match="there is no rule for it; need rival=http"):
        named_part("rival", "rules", Setting())


@pytest.mark.parametrize(("recipe", "role"), TEACHERS.items())
def test_the_policy_as_a_part_is_never_replaced_by_rules(recipe: str, role: str) -> None:
    run = build(recipe_named(recipe), {role: "itself"})
    assert inside((run.strategy, run.rewards), Itself) and not inside((run.strategy, run.rewards), Procedural)


def test_a_run_with_the_reference_as_a_part_has_an_engine_that_holds_it_and_time_to_answer() -> None:
    run = build(recipe_named("carmo"), {"judge": "reference"})
    assert isinstance(run.engine, WithReference) and run.reward_seconds == 600
    assert not isinstance(build(recipe_named("carmo"), {}).engine, WithReference)


def test_where_probabilities_are_read_a_part_is_a_model(tmp_path: Path) -> None:
    assert named_model("teacher", "pocket") == str(POCKET)
    for text in (ADDRESS, "itself", f"{tmp_path}/own.py:judge"):
        with pytest.raises(ConfigurationError, match="which text does not give: need a model folder or a run"):
            named_model("teacher", text)


def test_a_search_part_is_a_folder_or_a_file_of_texts_or_somebody_who_finds_them(tmp_path: Path) -> None:
    table, texts, folder = tmp_path / "own.jsonl", tmp_path / "texts.jsonl", tmp_path / "notes"
    table.write_text('{"prompt": "where is Rome?", "answer": "Italy"}\n' * 9)
    texts.write_text('{"id": 1, "text": "Rome lies in Italy."}\n{"id": 2, "text": "Oslo lies in Norway."}\n')
    folder.mkdir()
    (folder / "a.md").write_text("Rome lies in Italy.")
    for place in (texts, folder):
        (tool,) = inside(build(recipe_named("sem"), {"env": str(table), "search": str(place)}).envs, Retrieval)
        assert asyncio.run(tool.call({"query": "rome"})) == "Rome lies in Italy."
    (asked,) = inside(build(recipe_named("sem"), {"env": str(table), "search": ADDRESS}).envs, Retrieval)
    assert isinstance(asked, AskedSearch) and inside(asked, Endpoint)
    with pytest.raises(ConfigurationError, match="search=rules are stand-ins"):
        build(recipe_named("sem"), {"env": str(table)})
    texts.write_text('{"id": 1, "words": "Rome"}\n')
    with pytest.raises(ConfigurationError, match=r"holds no texts: need a folder of \.txt or \.md files, or a JSONL"):
        asyncio.run(Retrieval(path=str(texts)).call({"query": "rome"}))
