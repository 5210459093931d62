"""Answers of LLM clients on disk: a resumed run does not ask the same question again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_PATIENCE = 60.0  # seconds in which another process may write


class AnswerCache:
    """Answers by question, the first of each; opened when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    def known(self, question: str) -> str | None:
        """The answer to a question that was asked before."""
        if self._database is None and not self._path.exists():
            return None
        found = self._opened().execute("SELECT answer FROM answers WHERE question=?", (question,)).fetchone()
        return None if found is None else str(found[0])

    def keep(self, question: str, answer: str) -> str:
        """Write an answer down; where two asked the same at once, the first answer is the answer of both."""
        with self._opened() as database:
            database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (question, answer))
        return self.known(question) or answer

    def close(self) -> None:
        """Let go of the file; whoever asks later opens it again."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(self._path, timeout=_PATIENCE)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("CREATE TABLE IF NOT EXISTS answers (question TEXT PRIMARY KEY, answer TEXT)")
        return self._database
