"""HTTP POST in a daemon thread, which neither a deadline nor the end of a run waits for."""

from __future__ import annotations

import asyncio
import http.client
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from strop.errors import LLMClientError
from strop.generate.llm_clients.support.retry import LaterError

Result = TypeVar("Result")

_LONGEST = 1 << 20  # bytes of an answer that are read
_PIECE = 1 << 16
_BUSY = (408, 409, 425, 429)  # and 500 upwards: what may pass if one waits


class _Stays(urllib.request.HTTPRedirectHandler):
    """HTTP handler that follows no redirects: the API key is for this address only."""

    def redirect_request(self, *_: Any) -> None:
        return None


async def posted(url: str, body: bytes, headers: dict[str, str], seconds: float) -> bytes:
    """What is answered; `LaterError` where somebody may answer later, `LLMClientError` where asking again is in
    vain.
    """
    found = await in_daemon_thread(lambda: _exchanged(urllib.request.Request(url, body, headers), seconds))
    if isinstance(found, Exception):
        raise found
    return found


async def in_daemon_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns or raises; a thread that never ends keeps nobody waiting."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def settle(found: Result | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(cast(Result, found))

    def do() -> None:
        found, problem = None, None
        try:
            found = work()
        except Exception as error:
            problem = error
        with suppress(RuntimeError):  # the run is over
            loop.call_soon_threadsafe(settle, found, problem)

    threading.Thread(target=do, daemon=True).start()
    return await answer


def _exchanged(request: urllib.request.Request, seconds: float) -> bytes | Exception:
    until = time.monotonic() + seconds
    try:
        with urllib.request.build_opener(_Stays).open(request, timeout=seconds) as answer:
            return _read(answer, until)
    except urllib.error.HTTPError as error:
        with error:
            is_busy = error.code in _BUSY or error.code >= 500
            return (
                LaterError(f"status {error.code}", _after(error)) if is_busy else LLMClientError(f"status {error.code}")
            )
    except (OSError, http.client.HTTPException) as error:  # nobody there, cut off, or too slow
        return LaterError(str(error) or type(error).__name__)
    except Exception as error:
        return LLMClientError(f"{type(error).__name__}: {error}")


def _read(answer: Any, until: float) -> bytes:
    """All of it; the time that a socket may take is of each piece, so the whole is watched here."""
    found = bytearray()
    while piece := answer.read1(_PIECE):
        found += piece
        if len(found) > _LONGEST:
            raise LLMClientError(f"an answer of more than {_LONGEST} bytes")
        if time.monotonic() > until:
            raise TimeoutError("cut off at the deadline")
    return bytes(found)


def _after(error: urllib.error.HTTPError) -> float | None:
    """Seconds that it wants to be left alone, where it says so in seconds."""
    said = error.headers.get("Retry-After", "")
    return float(said) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", said) else None
