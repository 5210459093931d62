"""BM25 search tool over a collection of texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from strop.environments.tools.bm25 import Bm25
from strop.environments.tools.bundled_corpus import texts
from strop.errors import ConfigurationError
from strop.roles import Instrument

NOTHING = "nothing found"


@dataclass(frozen=True)
class Retrieval(Instrument):
    """Search tool that returns the `top` best texts, one per line; without its own texts it uses the bundled
    collection.
    """

    top: int = 1  # texts of an answer
    texts: tuple[str, ...] = ()

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
        return Bm25(self.texts or texts())

    def __getstate__(self) -> dict[str, Any]:
        return {"top": self.top, "texts": self.texts}  # the index is made again
