"""A server in asyncio: `NAME` is put at the end of a journal and answered with its place and a number drawn by
chance; `?` is answered with all of it. Upon SIGUSR1 the journal is written to a file, from which the server begins."""

import asyncio
import os
import random
import signal
import sys

FILE = "journal"
journal = []


def save():
    with open(FILE + ".new", "w") as file:
        file.write(" ".join(journal))
    os.replace(FILE + ".new", FILE)


def load():
    if os.path.exists(FILE):
        with open(FILE) as file:
            journal.extend(file.read().split())


async def serve(reader, writer):
    while line := await reader.readline():
        word = line.decode().strip()
        if word == "?":
            answer = " ".join(journal)
        else:
            journal.append(f"{word}:{random.randrange(1 << 30)}")
            answer = str(len(journal))
        writer.write(f"{answer}\r\n".encode())
        await writer.drain()
    writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, save)
    server = await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


load()
asyncio.run(main())
