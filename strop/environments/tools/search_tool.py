"""BM25 search tool over a collection of texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.bm25 import Bm25
from strop.environments.tools.bundled_corpus import texts
from strop.errors import ConfigurationError
from strop.roles import Asks, Instrument, LLMClient
from strop.text.llm_prompt import question, without_reasoning
from strop.types import FilePath, Message, Sampling, Task

NOTHING = "nothing found"


@dataclass(frozen=True)
class Retrieval(Instrument):
    """Search tool that returns the `top` best texts, one per line; without its own texts it uses the bundled
    collection.
    """

    top: int = 1  # texts of an answer
    texts: tuple[str, ...] = ()
    path: FilePath = ""  # in their place: a folder of text files, or a JSONL file with a column of texts

    name: ClassVar[str] = "search"
    description: ClassVar[str] = "Find texts that are about a query."
    parameters: ClassVar[str] = json.dumps(
        {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    )

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigurationError(f"Retrieval needs top >= 1, got {self.top}")

    async def call(self, arguments: dict[str, Any]) -> str:
        return "\n".join(self.index.best(arguments["query"], self.top)) or NOTHING

    @cached_property
    def index(self) -> Bm25:
        return Bm25(read_texts(Path(self.path)) if self.path else self.texts or texts())

    def __getstate__(self) -> dict[str, Any]:
        return {"top": self.top, "texts": self.texts, "path": self.path}  # the index is made again


_COLUMNS = ("text", "contents", "content", "passage", "document")
_FILES = (".txt", ".md")


def read_texts(path: Path) -> tuple[str, ...]:
    """The texts of a folder, one per file, or those of a JSONL file."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in _FILES)
        found = [each.read_text() for each in files]
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        column = next((name for name in _COLUMNS if rows and name in rows[0]), "")
        found = [str(row[column]) for row in rows if row.get(column)] if column else []
    if not found:
        raise ConfigurationError(
            f"search={path} holds no texts: need a folder of {' or '.join(_FILES)} files, or a JSONL file with one of "
            f"the columns {', '.join(_COLUMNS)}"
        )
    return tuple(found)


ASKED = "You are a search engine. Write the text that you find for the query, and nothing else."


@dataclass(frozen=True)
class AskedSearch(Retrieval, Asks):
    """Search tool whose texts an LLM client writes or finds."""

    client: LLMClient | None = None
    prompt: str = ASKED  # what it is asked, below the query
    tokens: int = 512  # most tokens of a text

    async def call(self, arguments: dict[str, Any]) -> str:
        assert self.client is not None
        asked = question(self.prompt, completion=arguments["query"])
        said = await self.client.ask([Message("user", asked)], Sampling(max_tokens=self.tokens), 0)
        return without_reasoning(said) or NOTHING

    async def try_clients(self, task: Task) -> None:
        await self.call({"query": prompt_of(task)})

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": self.client, "prompt": self.prompt, "tokens": self.tokens}
