from __future__ import annotations

import asyncio

import pytest

from strop.errors import AdviserError, ConfigurationError
from strop.generate.llm_clients.canned import Canned
from strop.generate.llm_clients.procedural import Procedural
from strop.roles import Adviser
from strop.types import Message, Sampling


def asked(adviser: Adviser, text: str) -> str:
    return asyncio.run(adviser.ask([Message("user", text)], Sampling(), 7))


def test_a_script_answers_what_it_knows() -> None:
    adviser = Canned({"sum": "add them", "": "try again"})
    assert asked(adviser, "what is a sum?") == "add them" and asked(adviser, "?") == "try again"
    with pytest.raises(AdviserError, match="no answer to 'hm'"):
        asked(Canned({"sum": "add them"}), "hm")


def test_a_rule_is_a_named_function() -> None:
    assert asked(Procedural("textwrap:dedent"), "  a") == "a"
    with pytest.raises(AdviserError, match="failed"):
        asked(Procedural("json:loads"), "{")
    with pytest.raises(ConfigurationError, match="module:function, got 'textwrap'"):
        Procedural("textwrap")
    with pytest.raises(AdviserError, match="there is no textwrap:nothing"):
        asked(Procedural("textwrap:nothing"), "")
