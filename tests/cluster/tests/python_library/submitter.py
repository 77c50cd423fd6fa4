"""Submits COUNT values of up to 64 KiB, some 32 at once, and prints what became of each: its number, its error's
number or 0, and its instance.

    submitter.py CONFIGURATION COUNT
"""

import asyncio
import sys

import quorumwire

AT_ONCE = 32


async def main(configuration: str, count: int) -> None:
    """Submits them."""
    async with await quorumwire.open_async(configuration) as client:
        room = asyncio.Semaphore(AT_ONCE)

        async def submit(number: int) -> None:
            value = b"%d;" % number
            if number % 10 == 9:
                value = value.ljust(65536, b"x")
            async with room:
                try:
                    print(number, 0, await client.submit(value), flush=True)
                except quorumwire.Error as error:
                    print(number, error.code, 0, flush=True)

        await asyncio.gather(*map(submit, range(count)))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
