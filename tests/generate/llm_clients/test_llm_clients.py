from __future__ import annotations

import asyncio
import json
import textwrap

import pytest

from strop.errors import ConfigurationError, LLMClientError
from strop.generate.agents.llm_agent import LLMAgent
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.roles import LLMClient
from strop.storage.run_source import to_source
from strop.types import Message, Sampling


def asked(llm_client: LLMClient, text: str) -> str:
    return asyncio.run(llm_client.ask([Message("user", text)], Sampling(), 7))


def test_a_script_answers_what_it_knows() -> None:
    llm_client = Canned({"sum": "add them", "": "try again"})
    assert asked(llm_client, "what is a sum?") == "add them" and asked(llm_client, "?") == "try again"
    with pytest.raises(LLMClientError, match="no answer to 'hm'"):
        asked(Canned({"sum": "add them"}), "hm")


def test_a_rule_is_a_function_of_a_module() -> None:
    assert asked(Procedural(textwrap.dedent), "  a") == "a"
    with pytest.raises(LLMClientError, match="rule loads failed"):
        asked(Procedural(json.loads), "{")
    with pytest.raises(ConfigurationError, match="a function of a module"):
        Procedural(lambda text: text)
    source = to_source(LLMAgent(Procedural(textwrap.dedent)), "an agent")
    assert "from textwrap import dedent" in source and "Procedural(rule=dedent)" in source
