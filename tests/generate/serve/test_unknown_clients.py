"""Who has no key, or comes by another name: neither is answered, and neither keeps anybody else from being answered."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
import uvicorn

from strop.generate.policy import Policy
from strop.generate.serve.public import Public
from strop.generate.serve.rollout_access import Rollouts
from strop.generate.serve.server import Door
from strop.workers.host_names import HostNames
from strop.workers.http_connection import UnknownClients, config_of, let_in
from tests.generate.serve.serving import dialogue, pocket, task_of

COUNT, SECONDS = 400, 2.0
BEGUN = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n"
HALF, HALF_BODY = BEGUN + b"x-half: ", BEGUN + b"x-api-key: no\r\ncontent-length: 1000\r\n\r\n{"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return pocket()


async def answered(line: Line, *headers: str, path: str = "/v1/models", body: bytes = b"", method: str = "GET") -> int:
    """The status of one request, on a connection that may go on."""
    reader, task_generator = line
    task_generator.write("\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    (size,) = [each.split(":")[1] for each in head.split("\r\n") if each.startswith("content-length")]
    await reader.readexactly(int(size))
    return int(head.split()[1])


@asynccontextmanager
async def opened(door: Door) -> AsyncIterator[int]:
    address = await door.open()
    try:
        yield int(address.rpartition(":")[2])
    finally:
        await door.close()


async def is_dropped(reader: asyncio.StreamReader, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await reader.read()
            return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_those_who_ask_half_are_dropped_and_an_honest_client_goes_on(policy: Policy) -> None:
    async def main() -> None:
        async with opened(Door(Public(policy, "pocket", "secret"), unknown_clients=UnknownClients(SECONDS))) as port:
            honest = await asyncio.open_connection("127.0.0.1", port)
            own = ("host: localhost", "x-api-key: secret")
            assert await answered(honest, *own) == 200
            begun = time.monotonic()
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(COUNT)]
            for number, (_, task_generator) in enumerate(lines):
                task_generator.write(HALF_BODY if number % 2 else HALF)
            for number in range(20):  # well beyond the time of those who have shown no key
                await asyncio.sleep(SECONDS / 10)
                assert await answered(honest, *own) == 200, "the connection that showed its key stays"
                new = await asyncio.open_connection("127.0.0.1", port)
                assert await answered(new, *own) == 200, "a new one is let in beside them"
                new[1].close()
                for _, task_generator in lines[number::20]:
                    task_generator.write(b"a")  # a little more now and then is no request either
            left = max(SECONDS + 3 - (time.monotonic() - begun), 1.0)
            assert all(await asyncio.gather(*(is_dropped(reader, left) for reader, _ in lines)))
            honest[1].close()

    asyncio.run(main())


def test_where_many_wait_the_oldest_goes() -> None:
    async def main() -> None:
        strangers, loop = UnknownClients(seconds=60.0, most=8), asyncio.get_running_loop()

        class Waits(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                strangers.add(transport, loop.time())

        server = await loop.create_server(Waits, "127.0.0.1", 0)
        lines = [await asyncio.open_connection(*server.sockets[0].getsockname()) for _ in range(20)]
        assert all([await is_dropped(reader, 1.0) for reader, _ in lines[:12]])
        assert not any([await is_dropped(reader, 0.01) for reader, _ in lines[12:]])
        server.close()

    asyncio.run(main())


def test_a_server_that_was_busy_drops_nobody_who_asked_meanwhile(policy: Policy) -> None:
    """Engines compute in the loop that serves: for longer than a stranger may take, now and then."""

    async def main() -> None:
        async with opened(Door(Public(policy, "pocket", "secret"), unknown_clients=UnknownClients(SECONDS))) as port:
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            asked = [asyncio.create_task(answered(line, "host: localhost", "x-api-key: secret")) for line in lines]
            await asyncio.sleep(0)  # all have written
            time.sleep(SECONDS + 0.5)
            assert await asyncio.gather(*asked) == [200] * 8

    asyncio.run(main())


def test_a_key_that_nobody_gave_keeps_no_connection(policy: Policy) -> None:
    async def main() -> None:
        async with opened(Door(Public(policy, "pocket", "secret"), unknown_clients=UnknownClients(SECONDS))) as port:
            line = await asyncio.open_connection("127.0.0.1", port)
            begun = time.monotonic()
            while time.monotonic() - begun < SECONDS - 1:
                assert await answered(line, "host: localhost", "x-api-key: no") == 401
                await asyncio.sleep(0.5)
            assert await is_dropped(line[0], 3)

    asyncio.run(main())


def test_who_showed_a_key_may_wait_for_an_answer_as_long_as_it_takes() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        let_in(scope)
        await asyncio.sleep(SECONDS + 1)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def main() -> None:
        bound = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(config_of(app, UnknownClients(SECONDS)))
        serving = asyncio.create_task(server.serve([bound]))
        while not server.started:
            await asyncio.sleep(0.01)
        line = await asyncio.open_connection("127.0.0.1", bound.getsockname()[1])
        assert await answered(line, "host: localhost") == 200
        server.should_exit = server.force_exit = True
        await serving

    asyncio.run(main())


def test_a_body_that_does_not_come_is_not_waited_for(policy: Policy) -> None:
    async def main() -> None:
        rollouts = Rollouts()
        async with opened(Door(rollouts, seconds=0.5)) as port:
            key, visit = rollouts.admit(dialogue(policy, task_of(0)))
            keys = {"/v1/chat/completions": key, "/v1/messages": key, "/rollout/step": rollouts.let_act(visit)}
            for path, own in keys.items():
                line = await asyncio.open_connection("127.0.0.1", port)
                told = ("host: localhost", f"x-api-key: {own}", "content-length: 9")
                assert await answered(line, *told, path=path, body=b'{"a"', method="POST") == 408

    asyncio.run(main())


OWN = ["127.0.0.1", "localhost", "LOCALHOST:8000", "[::1]:9000"]
OTHERS = ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost:80:80", "10.0.0.7"]


def test_the_endpoint_answers_to_its_own_names_alone_even_with_the_key(policy: Policy) -> None:
    async def main() -> None:
        for guests, key in ((Public(policy, "pocket", "secret"), "secret"), (rollouts := Rollouts(), "")):
            own = key or rollouts.admit(dialogue(policy, task_of(0)))[0]
            async with opened(Door(guests, names=("proxy.example",))) as port:
                for names, status in (([*OWN, "proxy.example"], 200), (OTHERS, 403)):
                    for name in names:
                        line = await asyncio.open_connection("127.0.0.1", port)
                        assert await answered(line, f"host: {name}", f"x-api-key: {own}") == status, name
                        line[1].close()

    asyncio.run(main())


def test_a_server_that_is_open_takes_addresses_and_its_own_names() -> None:
    names = HostNames.of("0.0.0.0", ("Proxy.example",))
    for own in (*OWN, "10.0.0.7:8000", "[fe80::1]", "proxy.example", socket.gethostname()):
        assert names.know(own), own
    for other in ("evil.example", "10.0.0.7.evil.example", "", "127.0.0.1:8000.evil.example"):
        assert not names.know(other), other
    assert HostNames.of("::1") == HostNames.of("127.0.0.1") == HostNames() and not HostNames().takes_addresses


def test_the_page_drops_unknown_clients_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "strop", "watch", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = process.stdout.readline() + process.stdout.readline()
            (port,) = re.findall(r"http://127.0.0.1:([0-9]+)/", told)
            with socket.create_connection(("127.0.0.1", int(port)), timeout=UnknownClients().seconds + 5) as line:
                line.sendall(HALF)
                with suppress(ConnectionError):
                    assert line.recv(1) == b""
        finally:
            process.terminate()
