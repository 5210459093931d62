"""What a paper's page says that its user brings, and the names under which `strop train` knows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.catalogue.fields import common_fields, parameters
from strop.catalogue.needs import Needs, needs_of
from strop.catalogue.record import recipe_files, recipe_of, records
from strop.cli.commands.papers import show_papers
from strop.cli.fields.arguments import parse_words, refuse_mistyped
from strop.errors import ConfigurationError

RECORDS, FILES = records(), recipe_files()


def needs(name: str) -> Needs:
    return needs_of(RECORDS[name], FILES[name])


def test_what_parts_declare_is_what_the_page_says() -> None:
    assert [name for name, _ in needs("ghpo").of_tasks] == ["worked solutions"]
    assert "column `solution` or `completion`" in "\n".join(needs("ghpo").lines())
    assert needs("adcl_egsr").is_conditional and "for some values of its fields" in "\n".join(
        needs("adcl_egsr").lines()
    )
    assert needs("ampo").is_judged and "`reward_range=LOW,HIGH`" in "\n".join(needs("ampo").lines())
    assert needs("grpo") == Needs((), False, False, (), ())


def test_the_command_names_what_has_no_default_and_whom_it_asks() -> None:
    assert needs("grpo").command("grpo") == "strop train grpo model=FOLDER_OR_ID env=FILE.jsonl"
    assert needs("sapo_sharing").demonstration("sapo_sharing") == "strop train sapo_sharing folder=FOLDER"
    assert "=http://HOST:PORT/v1#MODEL'" in needs("thinktuning").command("thinktuning")


@pytest.mark.parametrize("name", list(FILES)[::24])
def test_every_field_of_a_command_is_one_of_its_recipe(name: str) -> None:
    known = {field.name for field in parameters(FILES[name], name)} | set(common_fields())
    words = needs(name).command(name).replace("'", "").split()[3:]
    assert {word.partition("=")[0] for word in words} <= known


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("RAG-RL", "rag_rl"),
        ("rag_rl", "rag_rl"),
        ("v0.5", "v0_5"),
        ("1-Shot-RLVR", "one_shot_rlvr"),
        ("sapo", "sapo_sharing"),
    ],
)
def test_a_recipe_is_known_by_its_key_in_any_case(word: str, name: str) -> None:
    typed = parse_words([word, "steps=5"])
    refuse_mistyped(typed)
    assert typed.recipe == recipe_of(word) == name


def test_a_word_that_is_none_stays_as_it_is_and_gets_the_three_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert recipe_of("My-Recipe.py") == "My-Recipe.py" and recipe_of("zzz") == "zzz"
    with pytest.raises(ConfigurationError, match=r"no recipe 'zzz': did you mean \w+ or \w+ or \w+\?"):
        refuse_mistyped(parse_words(["zzz"]))
    with pytest.raises(ConfigurationError, match=r"no paper 'zzz': did you mean \S+ or \S+ or \S+\?"):
        show_papers("zzz", as_json=False)
    show_papers("GHPO", as_json=False)
    assert "worked solutions" in capsys.readouterr().out


def test_a_folder_of_a_paper_is_read_whole(tmp_path: Path) -> None:
    assert FILES["sage_skills"].name == "recipe.py"
    assert [name for name, _ in needs("sage_skills").of_tasks] == ["other tasks of one scenario"]
