"""LLM clients by name: `rules`, `itself`, or an OpenAI-compatible address with a model, `http://localhost:8000/v1#NAME`.

Judges also by the folder of their model.
"""

from __future__ import annotations

from pathlib import Path

from strop.errors import ConfigurationError
from strop.generate.llm_clients.local_model import Local
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.own_models import Itself
from strop.generate.llm_clients.scripted import Procedural, Rule
from strop.roles import LLMClient
from strop.standins.lessons import lesson
from strop.standins.rewrite.dispatch import Rewriting

KEY_VARIABLE = "STROP_LLM_CLIENT_KEY"  # holds the key of an address that wants one


def parse_llm_client(text: str) -> LLMClient | None:
    """Who a text names; None: the policy itself."""
    if text == "rules":
        return Rewriting()
    if text == "itself":
        return None
    url, _, model = text.partition("#")
    if not url.startswith(("http://", "https://")) or not model:
        raise ConfigurationError(f"an LLM client is rules, itself or http://HOST:PORT/v1#MODEL, got {text!r}")
    return Endpoint(url, model, key_variable=KEY_VARIABLE)


def parse_reflector(text: str) -> LLMClient | None:
    """The same, for those who say what is to be learned from rollouts: their rules are others."""
    return Procedural(lesson) if text == "rules" else parse_llm_client(text)


def parse_judge(text: str, rules: Rule) -> LLMClient:
    """Who judges completions, or says by what: the rules named, the policy, a model in a folder, or one at an
    address.
    """
    if text == "rules":
        return Procedural(rules)
    if Path(text).is_dir():
        return Local(text)
    return parse_llm_client(text) or Itself()


def judge_seconds(text: str) -> float:
    """How long a reward may take that asks such a judge many questions."""
    return 10.0 if text == "rules" else 600.0
