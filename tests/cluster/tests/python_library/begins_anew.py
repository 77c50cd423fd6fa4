"""Takes some of many values of a Paxos deployment, begins anew, and goes on: each value comes once, in order, although
the library gives more at once than a program takes.

    begins_anew.py CONFIGURATION
"""

import asyncio
import sys
from collections import deque
from typing import List

import quorumwire
from quorumwire import Delivery

LEARNER = 0
# More than two polls of the library give.
VALUES = 600
# What is taken before it begins anew, and then so many more, and so on.
TAKEN = [1, 3, 0, 251, 2, 100]
# What is not lost comes within this time.
SOON = 60.0


def beyond(values: List[Delivery]) -> int:
    """An instance that holds none of these, nor does one behind it."""
    return values[-1].instance + 1


def blocks(configuration: str) -> None:
    """With the client that blocks."""
    with quorumwire.open(configuration) as client:
        values = [Delivery(client.submit(b"%d" % it), b"%d" % it) for it in range(VALUES)]
        taken: List[Delivery] = []
        for count in TAKEN:
            deliveries = client.deliver(LEARNER)
            for value in values[len(taken) : len(taken) + count]:
                taken.append(value)
                assert deliveries.next_within(SOON) == value, value.instance
        client.checkpoint(LEARNER, taken[-1].instance)
        before, deliveries = deliveries, client.deliver(LEARNER)
        try:
            next(before)
        except quorumwire.HandleError as error:
            assert "later deliver" in str(error), error
        else:
            raise AssertionError("both go on")
        # Nothing comes behind them.
        for value in values[len(taken) :]:
            assert deliveries.next_within(SOON) == value, value.instance
        assert deliveries.next_within(0.05) is None
        # Who begins with a later instance needs nothing before it.
        few = [Delivery(client.submit(value), value) for value in (b"one", b"two", b"three")]
        assert deliveries.next_within(SOON) == few[0]
        deliveries = client.deliver(LEARNER, beyond(few))
        last = client.submit(b"last")
        assert deliveries.next_within(SOON) == (last, b"last")
        assert deliveries.next_within(0.05) is None
        client.checkpoint(LEARNER, last)


async def with_asyncio(configuration: str) -> None:
    """With the one for asyncio."""
    async with await quorumwire.open_async(configuration) as client:
        submissions = (client.submit(b"value") for _ in range(VALUES))
        left = deque(sorted(await asyncio.gather(*submissions)))
        for count in [*TAKEN, VALUES - sum(TAKEN)]:
            deliveries = client.deliver(LEARNER)
            for _ in range(count):
                delivery = await asyncio.wait_for(deliveries.__anext__(), SOON)
                assert delivery.instance == left.popleft(), delivery.instance
        last = await client.submit(b"last")
        delivery = await asyncio.wait_for(deliveries.__anext__(), SOON)
        assert delivery == (last, b"last"), delivery.instance


def main(configuration: str) -> None:
    """Both."""
    blocks(configuration)
    asyncio.run(with_asyncio(configuration))


main(sys.argv[1])
