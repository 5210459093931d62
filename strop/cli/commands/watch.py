"""Command `strop watch`: live dashboard of a run or of a folder of runs."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from rich.console import Console

from strop.cli.app import TOKEN
from strop.errors import ConfigurationError

_HOST = "127.0.0.1"  # from elsewhere: ssh -L


def watch_runs(root: Path, port: int) -> None:
    """Serve the dashboard until interrupted."""
    if not root.is_dir():
        raise ConfigurationError(f"{root} is not a folder: give a run folder, or a folder of runs")
    try:
        import uvicorn

        from strop.observe.dashboard.app import WatchApp
        from strop.workers.http_connection import UnknownClients, config_of
    except ImportError as error:
        raise ConfigurationError(f"{error.name} is not installed: pip install 'strop[serve]'") from error
    from strop.observe.dashboard.run_index import RunIndex

    token = os.environ.get(TOKEN) or secrets.token_urlsafe(16)
    try:
        bound = socket.create_server((_HOST, port))
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {_HOST}:{port}: {error.strerror}; choose another --port, or 0 for any free one"
        ) from error
    shown = bound.getsockname()[1]
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"Dashboard of [bold]{root}[/]; Ctrl-C ends it. Open", f"http://{_HOST}:{shown}/?token={token}", sep="\n  "
    )
    app = WatchApp(RunIndex(root), token).starlette()
    uvicorn.Server(config_of(app, UnknownClients())).run([bound])
