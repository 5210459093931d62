"""HTTP application for the policy: chat completions, responses and messages endpoints, with API keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from strop.errors import StropError
from strop.generate.rollout import EnvironmentFailed
from strop.generate.serve.ask_requests import Ask, Refusal, ServedCompletion
from strop.generate.serve.dialects.chat_completions import ChatCompletions
from strop.generate.serve.dialects.dialect import Dialect, Written
from strop.generate.serve.dialects.messages import Messages
from strop.generate.serve.dialects.responses import Responses
from strop.generate.serve.serve_session import Visit
from strop.generate.templates.tool_call_format import Parts
from strop.types import Message
from strop.workers.host_names import HostNames
from strop.workers.http_connection import let_in
from strop.workers.untrusted_answers import LARGEST

_LONGEST = 8 << 20  # bytes of a request
_ALIVE = b": alive\n\n"  # a comment, which clients skip
_KEEP_ALIVE = 3.0  # seconds without a token after which a stream says that it is alive


class Guests(Protocol):
    """Lookup of the rollout that an API key belongs to."""

    model: str

    def visit(self, key: str) -> Visit:
        """In which a key asks the policy; `Refusal` for one that nobody was given."""
        ...

    def actor(self, key: str) -> Visit:
        """In whose episode a key acts: another key than the one that asks the policy."""
        ...


@dataclass
class App:
    """Routes of the endpoint."""

    guests: Guests
    names: HostNames = field(default_factory=HostNames)  # by which it is asked
    seconds: float = 30.0  # within which the body of a request comes

    def starlette(self) -> Starlette:
        dialects = {"/v1/chat/completions": ChatCompletions(), "/v1/responses": Responses(), "/v1/messages": Messages()}
        routes = [Route(path, self._guarded(d, self._answer), methods=["POST"]) for path, d in dialects.items()]
        messages = dialects["/v1/messages"]
        routes += [
            Route("/v1/messages/count_tokens", self._guarded(messages, self._count), methods=["POST"]),
            Route("/v1/models", self._guarded(ChatCompletions(), self._models)),
            Route("/v1/models/{name:path}", self._guarded(ChatCompletions(), self._models)),
            Route("/rollout/step", self._guarded(ChatCompletions(), self._step), methods=["POST"]),
            Route("/rollout/reward", self._guarded(ChatCompletions(), self._reward), methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _guarded(self, dialect: Dialect, work: Callable[..., Any]) -> Callable[[Request], Any]:
        """Whatever is wrong with a request is told in the words of its dialect."""

        async def answered(request: Request) -> Response:
            try:
                if not self.names.know(request.headers.get("host", "")):
                    raise Refusal(403, "this server is not asked by that name: its owner may add it with --name")
                return await work(dialect, request)  # type: ignore[no-any-return]
            except Refusal as refusal:
                return JSONResponse(dialect.refuse(refusal.status, str(refusal)), refusal.status)
            except ClientDisconnect:
                return Response(status_code=499)
            except StropError as error:
                return JSONResponse(dialect.refuse(400, str(error)), 400)

        return answered

    async def _answer(self, dialect: Dialect, request: Request) -> Response:
        talk = self._visit(request)
        raw = await self._body(request)
        body = _parsed(raw)
        ask = dialect.parse(body)
        is_retry = request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
        known = talk.known(raw) if is_retry else None
        if ask.is_streamed:
            lines = _streamed(dialect, talk, (ask, body, raw), known)
            return StreamingResponse(lines, media_type="text/event-stream")
        completion = await asyncio.shield(known or talk.begun(raw, ask, talk.another_name()))
        return JSONResponse(dialect.answer(completion, ask))

    async def _count(self, dialect: Dialect, request: Request) -> Response:
        talk = self._visit(request)
        return JSONResponse({"input_tokens": talk.count(dialect.parse(_parsed(await self._body(request))))})

    async def _models(self, dialect: Dialect, request: Request) -> Response:
        self._visit(request)
        about = {"id": self.guests.model, "object": "model", "type": "model", "created": 0, "owned_by": "strop"}
        name = request.path_params.get("name")
        if name not in (None, self.guests.model):
            raise Refusal(404, f"no model {name}; this one is called {self.guests.model}")
        return JSONResponse(about if name else {"object": "list", "data": [about]})

    async def _step(self, dialect: Dialect, request: Request) -> Response:
        """What the rollout's environment answers to a completion: for programs that play in an environment of the
        run.
        """
        visit = self._actor(request)
        content = _parsed(await self._body(request)).get("content")
        if not isinstance(content, str):
            raise Refusal(400, "content is the text of a completion")
        try:
            answer = await visit.act(Message("assistant", content))
        except EnvironmentFailed as failure:
            raise Refusal(502, f"the environment of this rollout failed: {failure}") from failure
        told = [{"role": each.role, "content": each.content} for each in answer.messages]
        return JSONResponse({"messages": told, "done": answer.done})

    async def _reward(self, dialect: Dialect, request: Request) -> Response:
        visit = self._actor(request)
        value = _parsed(await self._body(request)).get("reward")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise Refusal(400, f"reward is a number of at most {LARGEST:g}")
        visit.pay(float(value))
        return JSONResponse({"reward": visit.reward})

    def _visit(self, request: Request) -> Visit:
        visit = self.guests.visit(_key(request))
        let_in(request.scope)
        return visit

    def _actor(self, request: Request) -> Visit:
        visit = self.guests.actor(_key(request))
        let_in(request.scope)
        return visit

    async def _body(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(self.seconds):
                return await _body(request)
        except TimeoutError as error:
            raise Refusal(408, f"the body of this request did not come within {self.seconds:g} s") from error


def _key(request: Request) -> str:
    told = request.headers.get("authorization", "")
    key = told[7:] if told.lower().startswith("bearer ") else request.headers.get("x-api-key", "")
    return key.strip()


async def _body(request: Request) -> bytes:
    size, parts = 0, list[bytes]()
    async for part in request.stream():
        size += len(part)
        if size <= _LONGEST:
            parts.append(part)
        elif size > 8 * _LONGEST:
            break  # who sends so much does not listen
    if size > _LONGEST:
        raise Refusal(413, f"a request has at most {_LONGEST >> 20} MB")
    return b"".join(parts)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the request is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refusal(400, "a request is a JSON object")
    if rb"\ud" in raw.lower() and not _is_text(body):
        raise Refusal(400, "the request holds half a character (a surrogate without its other half)")
    return body


def _is_text(body: dict[str, Any]) -> bool:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


async def _streamed(
    dialect: Dialect,
    talk: Visit,
    asked: tuple[Ask, dict[str, Any], bytes],
    known: asyncio.Future[ServedCompletion] | None,
) -> AsyncIterator[bytes]:
    """Events as tokens come; what is wrong from here on is an event, too."""
    ask, body, raw = asked
    name, parts, written = talk.another_name(), asyncio.Queue[Parts | None](), Written()
    stream, hold = dialect.stream(ask, body, name), talk.num_unsure(ask)
    answer = known or talk.begun(raw, ask, name, parts.put_nowait)
    answer.add_done_callback(lambda _: parts.put_nowait(None))
    for line in stream.begin():
        yield line
    while (told := await _next(parts)) is not None:
        for line in stream.go_on(*written.news(told.thought, _sure(told.text, hold))) if told else [_ALIVE]:
            yield line
    try:
        completion = answer.result()
    except Refusal as refusal:
        yield f"event: error\ndata: {json.dumps(dialect.refuse(refusal.status, str(refusal)))}\n\n".encode()
        return
    for line in stream.go_on(*written.news(completion.thought, completion.text)):
        yield line
    for line in stream.end(completion):
        yield line


async def _next(parts: asyncio.Queue[Parts | None]) -> Parts | Literal[False] | None:
    """The next piece; False: nothing came for a while, None: the answer is whole."""
    try:
        return await asyncio.wait_for(parts.get(), _KEEP_ALIVE)
    except TimeoutError:
        return False


def _sure(text: str, hold: int) -> str:
    """Text that stays when more is written: its end may be half a character, or begin what is not for the client."""
    return text.rstrip("\ufffd")[: len(text) - hold] if hold else text.rstrip("\ufffd")
