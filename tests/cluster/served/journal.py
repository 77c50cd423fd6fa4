"""A server in asyncio: `NAME` is put at the end of a journal and answered with its place and a number drawn by
chance; `?` is answered with all of it."""

import asyncio
import random
import sys

journal = []


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
    server = await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
