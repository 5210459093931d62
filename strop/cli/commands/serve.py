"""Command `strop serve`: a model behind the chat completions, responses and messages endpoints."""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from strop.cli.app import TOKEN
from strop.cli.models import find_model, open_policy
from strop.errors import ConfigurationError
from strop.models.silence_libraries import hush
from strop.types import Sampling

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Serving:
    """Options of the server."""

    model: str = "pocket"
    host: str = "127.0.0.1"
    port: int = 8000
    max_tokens: int = 1024
    seed: int = 0
    device: str = "cpu"
    is_open: bool = False  # accept other machines
    names: tuple[str, ...] = ()  # further host names that clients may use


def serve(asked: Serving) -> None:
    """Serve until interrupted."""
    if asked.host not in _LOOPBACK and not asked.is_open:
        raise ConfigurationError(f"--host {asked.host} accepts other machines: add --open, and set {TOKEN} to a secret")
    try:
        from strop.generate.serve.public import Public
        from strop.generate.serve.server import Door
    except ImportError as error:
        raise ConfigurationError(f"{error.name} is not installed: pip install 'strop[serve]'") from error
    hush()
    folder, token = find_model(asked.model), os.environ.get(TOKEN) or secrets.token_urlsafe(16)
    Console(stderr=True, highlight=False).print(f"loading {_name(asked.model)} from {folder}", soft_wrap=True)
    policy = open_policy(folder, Sampling(max_tokens=asked.max_tokens), asked.device)
    door = Door(Public(policy, _name(asked.model), token, asked.seed), asked.host, asked.port, names=asked.names)

    async def open_until_interrupted() -> None:
        _announce(await door.open(), token, _name(asked.model))
        await door.wait()

    try:
        asyncio.run(open_until_interrupted())
    except KeyboardInterrupt:
        Console(stderr=True).print("closed")


def _name(model: str) -> str:
    return Path(model).name or model


def _announce(address: str, token: str, model: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{model}[/] at {address}: chat completions, responses and messages; Ctrl-C ends")
    shown = f"the value of {TOKEN}" if os.environ.get(TOKEN) else token
    console.print(f"  OPENAI_BASE_URL={address}/v1  ANTHROPIC_BASE_URL={address}  API key: {shown}")
