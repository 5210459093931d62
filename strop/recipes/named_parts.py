"""Named parts of recipes: the judge, teacher, generator, simulator or model that a parameter names, in one grammar.

`http://HOST:PORT/v1#MODEL`, a model folder or run, `itself` (the policy of the moment), `reference` (the policy before
training), `FILE.py:FUNCTION`, and `rules`: the stand-in of a bundled environment, refused on any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Literal, cast

from strop.capabilities import inside
from strop.environments.bundled.search import Search
from strop.environments.tools.search_tool import AskedSearch, Retrieval
from strop.environments.tools.toolbox import Toolbox
from strop.errors import ConfigurationError, nearest
from strop.generate.engines.select_engine import EngineName, engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.llm_clients.local_model import CHOICES, Local
from strop.generate.llm_clients.named import Named
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.own_models import Beginning, Itself
from strop.generate.llm_clients.without_model import OwnFunction, Procedural, Rule
from strop.models.loading.model_names import model_folder
from strop.recipes.environments import is_bundled_env
from strop.recipes.model_paths import chosen_model
from strop.recipes.setting import Setting
from strop.roles import Environment, LLMClient
from strop.run import Run
from strop.standins.lessons import lesson
from strop.standins.rewrite.dispatch import Rewriting
from strop.standins.search_engine import found

KEY_VARIABLE = "STROP_LLM_CLIENT_KEY"  # environment variable with the API key of an endpoint
_FOUND = 4096  # characters of a found text
_SECONDS = 600.0  # deadline of rewards and episodes that ask a language model many questions
_REWRITTEN = ("arithmetic", "compose", "countdown", "keyvalue")  # whose tasks the rules for task generators know


def named_part(
    role: str, text: str, setting: Setting, rules: Rule | LLMClient | None = None, envs: Sequence[str] = ()
) -> LLMClient:
    """The LLM client that a recipe's parameter `role` names; `rules` were written for `envs` (empty: all bundled)."""
    if text == "rules":
        return _rules(role, setting, rules, envs)
    return Named(_client(role, text, setting), role, text)


def named_parts(role: str, text: str, setting: Setting, *rules: Rule, envs: Sequence[str] = ()) -> list[LLMClient]:
    """One client for each rule: the rules themselves, or the same model in all their places."""
    if text == "rules":
        return [_rules(role, setting, rule, envs) for rule in rules]
    return [named_part(role, text, setting)] * len(rules)


def named_list(role: str, text: str, setting: Setting, names: Sequence[str] = ()) -> dict[str, LLMClient]:
    """The LLM clients of `NAME=PART,NAME=PART` by name, perhaps one of these `names`; an empty text names none."""
    found: dict[str, LLMClient] = {}
    for each in text.split(",") if text else ():
        name, is_named, part = (word.strip() for word in each.partition("="))
        if not (is_named and name and part) or name in found:
            raise ConfigurationError(
                f"{role}={text}: need {role}=NAME=PART, several of different names joined by commas, where a part is "
                f"{CHOICES}"
            )
        if names and name not in names:
            raise ConfigurationError(
                f"{role}={text}: there is no {name!r} that another model may play; {nearest(name, names)}"
            )
        found[name] = Named(_client(role, part, setting), role, each.strip())
    return found


def named_generator(text: str, setting: Setting, role: str = "generator") -> LLMClient | None:
    """The LLM client that writes tasks; None: the policy itself, whose tokens count."""
    return None if text == "itself" else named_part(role, text, setting, Rewriting(), _REWRITTEN)


def named_reflector(text: str, setting: Setting, role: str = "teacher") -> LLMClient | None:
    """The LLM client that reflects on rollouts; None: the policy itself, whose tokens count."""
    return None if text == "itself" else named_part(role, text, setting, lesson)


def named_search(role: str, text: str, setting: Setting) -> Retrieval:
    """The search tool over a folder or a JSONL file of texts, or one whose texts an LLM client finds."""
    if text == "rules":
        _rules(role, setting, Procedural(found), ())
        return Retrieval()
    path = Path(text)
    if path.suffix == ".jsonl" or (path.is_dir() and not (path / "config.json").is_file()):
        return Retrieval(path=text)
    return AskedSearch(client=named_part(role, text, setting))


def with_search(
    env: Environment, tool: Retrieval, text: str, style: Literal["plain", "refine"] = "plain"
) -> Environment:
    """Tasks with a search tool; the bundled ones have their own, in whose style they are demonstrated."""
    if isinstance(env, Search):
        return replace(env, style=style, tool=tool)
    return Toolbox(env, (tool,), longest=_FOUND, seconds=reward_seconds(text))


def named_model(role: str, text: str) -> str:
    """The folder of a model whose probabilities or scores are read, and not only its text."""
    if text.startswith(("http://", "https://")) or ".py:" in text or text in ("itself", "reference", "rules"):
        raise ConfigurationError(
            f"{role}={text}: its probabilities are read, which text does not give: need a model folder or a run"
        )
    return str(model_folder(chosen_model(text)))


def check_rules(role: str, setting: Setting, envs: Sequence[str] = ()) -> None:
    """Refuse rules of another kind than an LLM client's on environments that they were not written for."""
    others = [name for name in setting.env.split("+") if not is_bundled_env(name) or (envs and _kind(name) not in envs)]
    if others:
        known = f"the environment {' or '.join(envs)}" if envs else "the bundled environments"
        raise ConfigurationError(
            f"{role}=rules are stand-ins written for {known}, and env={others[0]} is none: name {role}={CHOICES}"
        )


def _rules(role: str, setting: Setting, rules: Rule | LLMClient | None, envs: Sequence[str]) -> LLMClient:
    if rules is None:
        raise ConfigurationError(f"{role}=rules: there is no rule for it; need {role}={CHOICES}")
    check_rules(role, setting, envs)
    return Procedural(rules) if isinstance(rules, FunctionType) else cast(LLMClient, rules)


def _kind(env: str) -> str:
    return env.strip().partition(":")[0]


def _client(role: str, text: str, setting: Setting) -> LLMClient:
    if text == "itself":
        return Itself()
    if text == "reference":
        return Beginning()
    if text.startswith(("http://", "https://")):
        url, _, model = text.partition("#")
        if not model:
            raise ConfigurationError(f"{role}={text} names no model: need http://HOST:PORT/v1#MODEL")
        return Endpoint(url, model, key_variable=KEY_VARIABLE)
    if Path(text.rpartition(":")[0]).suffix == ".py":
        return OwnFunction(text)
    if "://" in text:
        raise ConfigurationError(f"{role}={text} is no part: need {CHOICES}")
    return Local(str(model_folder(chosen_model(text))), setting.device)  # refused before the run if there is none


def reward_seconds(text: str) -> float:
    """Deadline of a reward that asks this part many questions."""
    return 10.0 if text == "rules" else _SECONDS


def fitted(run: Run, device: str, engine: EngineName = "own") -> None:
    """Give a run what its named parts need: deadlines for language models, and an engine with the first weights."""
    if run.warmup is not None:
        fitted(run.warmup, device, engine)
    if inside(run.rewards, Named):
        run.reward_seconds = max(run.reward_seconds, _SECONDS)
    if inside((run.envs, run.agent), Named):
        run.env_seconds = max(run.env_seconds, _SECONDS)
    if inside(run, Beginning) and not inside(run.engine, WithReference):
        run.engine = WithReference(run.engine, engine_on(device, engine))
