"""The page of a folder of runs, asked as a browser on this machine would."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from starlette.testclient import TestClient

from strop.observe.dashboard.app import WatchApp
from strop.observe.dashboard.run_index import RunIndex

TOKEN = "known to nobody else"
HOME = "http://127.0.0.1:8100"


def visitor(root: Path) -> TestClient:
    """Somebody who has not shown the token."""
    return TestClient(WatchApp(RunIndex(root), TOKEN).starlette(), HOME, follow_redirects=False)


def guest(root: Path) -> TestClient:
    """Somebody who opened the address that was printed."""
    client = visitor(root)
    assert client.get("/", params={"token": TOKEN}).status_code == 303
    return client


def unlinked(name: str) -> Markup:
    """Of rollouts that have no page."""
    return Markup("")
