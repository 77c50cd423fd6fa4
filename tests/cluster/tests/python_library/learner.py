"""Writes each value of a learner to a file, a line with its instance, and goes on there when it is started again.

    learner.py CONFIGURATION LEARNER FILE blocks|asyncio
"""

import asyncio
import sys
from typing import BinaryIO

import quorumwire

CHECKPOINT_EVERY = 50


def last_instance(file: BinaryIO) -> int:
    """Of the last line that is whole; what is behind it is cut off."""
    last, end = 0, 0
    for line in file:
        if line.endswith(b"\n"):
            last, end = int(line.split(b" ")[0]), end + len(line)
    file.truncate(end)
    file.seek(end)
    return last


def write(file: BinaryIO, delivery: quorumwire.Delivery) -> None:
    """A line, at once."""
    file.write(b"%d %s\n" % delivery)
    file.flush()


def blocks(configuration: str, learner: int, file: BinaryIO, begin: int) -> None:
    """With the client that blocks."""
    with quorumwire.open(configuration) as client:
        for count, delivery in enumerate(client.deliver(learner, begin), 1):
            write(file, delivery)
            if count % CHECKPOINT_EVERY == 0:
                try:
                    client.checkpoint(learner, delivery.instance)
                except quorumwire.Error as error:
                    print("checkpoint:", error, flush=True)


async def with_asyncio(configuration: str, learner: int, file: BinaryIO, begin: int) -> None:
    """With the one for asyncio."""
    async with await quorumwire.open_async(configuration) as client:
        count = 0
        async for delivery in client.deliver(learner, begin):
            write(file, delivery)
            count += 1
            if count % CHECKPOINT_EVERY == 0:
                try:
                    await client.checkpoint(learner, delivery.instance)
                except quorumwire.Error as error:
                    print("checkpoint:", error, flush=True)


def main(configuration: str, learner: int, path: str, how: str) -> None:
    """As it is told."""
    with open(path, "a+b") as file:
        file.seek(0)
        last = last_instance(file)
        begin = last + 1 if last else 0
        if how == "asyncio":
            asyncio.run(with_asyncio(configuration, learner, file, begin))
        else:
            blocks(configuration, learner, file, begin)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
