"""Parser of LLM client names: `rules`, `itself`, or an OpenAI-compatible endpoint, `http://localhost:8000/v1#MODEL`.

A judge may also be a model folder.
"""

from __future__ import annotations

from pathlib import Path

from strop.errors import ConfigurationError
from strop.generate.llm_clients.local_model import Local
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.own_models import Itself
from strop.generate.llm_clients.without_model import Procedural, Rule
from strop.roles import LLMClient
from strop.standins.lessons import lesson
from strop.standins.rewrite.dispatch import Rewriting

KEY_VARIABLE = "STROP_LLM_CLIENT_KEY"  # environment variable with the API key of an endpoint


def parse_llm_client(text: str) -> LLMClient | None:
    """The LLM client with this name; None: the policy itself."""
    if text == "rules":
        return Rewriting()
    if text == "itself":
        return None
    url, _, model = text.partition("#")
    if not url.startswith(("http://", "https://")) or not model:
        raise ConfigurationError(f"an LLM client must be rules, itself or http://HOST:PORT/v1#MODEL, got {text!r}")
    return Endpoint(url, model, key_variable=KEY_VARIABLE)


def parse_reflector(text: str) -> LLMClient | None:
    """The LLM client that reflects on rollouts; `rules` are the stand-in rules for lessons."""
    return Procedural(lesson) if text == "rules" else parse_llm_client(text)


def parse_judge(text: str, rules: Rule) -> LLMClient:
    """The judge with this name: `rules` (the given function), the policy, a model folder, or an endpoint."""
    if text == "rules":
        return Procedural(rules)
    if Path(text).is_dir():
        return Local(text)
    return parse_llm_client(text) or Itself()


def judge_seconds(text: str) -> float:
    """Deadline of a reward that asks this judge many questions."""
    return 10.0 if text == "rules" else 600.0
