"""Proxy in a sandbox without network: forwards a local TCP port to the endpoint's Unix socket, then runs the command.

Run as a file, by a Python without strop: `python sandbox_proxy.py SOCKET PORT COMMAND ...`.
"""

from __future__ import annotations

import asyncio
import sys


async def _carry(reader: asyncio.StreamReader, task_generator: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        task_generator.write(data)
        await task_generator.drain()
    task_generator.close()


async def _run(path: str, port: int, command: list[str]) -> int:
    async def joined(reader: asyncio.StreamReader, task_generator: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(path)
        await asyncio.gather(_carry(reader, back), _carry(there, task_generator), return_exceptions=True)

    async with await asyncio.start_server(joined, "127.0.0.1", port):
        process = await asyncio.create_subprocess_exec(*command)
        return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(sys.argv[1], int(sys.argv[2]), sys.argv[3:])))
