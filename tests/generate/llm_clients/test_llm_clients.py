from __future__ import annotations

import asyncio

import pytest

from strop.errors import ConfigurationError, LLMClientError
from strop.generate.llm_clients.canned import Canned
from strop.generate.llm_clients.procedural import Procedural
from strop.roles import LLMClient
from strop.types import Message, Sampling


def asked(llm_client: LLMClient, text: str) -> str:
    return asyncio.run(llm_client.ask([Message("user", text)], Sampling(), 7))


def test_a_script_answers_what_it_knows() -> None:
    llm_client = Canned({"sum": "add them", "": "try again"})
    assert asked(llm_client, "what is a sum?") == "add them" and asked(llm_client, "?") == "try again"
    with pytest.raises(LLMClientError, match="no answer to 'hm'"):
        asked(Canned({"sum": "add them"}), "hm")


def test_a_rule_is_a_named_function() -> None:
    assert asked(Procedural("textwrap:dedent"), "  a") == "a"
    with pytest.raises(LLMClientError, match="failed"):
        asked(Procedural("json:loads"), "{")
    with pytest.raises(ConfigurationError, match="module:function, got 'textwrap'"):
        Procedural("textwrap")
    with pytest.raises(LLMClientError, match="there is no textwrap:nothing"):
        asked(Procedural("textwrap:nothing"), "")
