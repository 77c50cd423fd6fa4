"""Asks a replicated group whatever can be asked, and takes values slowly: neither does that hold up what the same
client submits, nor do they pile up in it.

    asks.py CONFIGURATION
"""

import asyncio
import os
import sys
from typing import Any, Callable, Type

import quorumwire
from quorumwire import Delivery, Recovered, State

VALUES = 3000
VALUE = b"v" * 4096
# What one turn takes out of the library, and one value more.
KEPT_BYTES_MAX = (1 << 20) + len(VALUE)


def fails(kind: Type[quorumwire.Error], says: str, call: Callable[[], Any]) -> None:
    """With this error."""
    try:
        call()
    except kind as error:
        assert says in str(error), error
    else:
        raise AssertionError(f"no {kind}")


def asks(client: quorumwire.Client) -> None:
    """Recovers, checkpoints and declares lost."""
    assert client.value_bytes_max == 1 << 20
    values = [b"", b"one", bytearray(b"two"), memoryview(b"three")]
    instances = [client.submit(value) for value in values]
    assert instances == sorted(set(instances))
    first, last = instances[0], instances[-1]
    assert client.recover(instances[1]) == Recovered(instances[1], State.DECIDED, b"one")
    assert client.recover(first).value == b""
    expected = [Delivery(*it) for it in zip(instances, map(bytes, values))]
    assert list(client.recover_range(first, last)) == expected
    beyond = client.recover(last + 1000)
    assert beyond.state is State.NOT_DECIDED and last <= beyond.instance < last + 1000, beyond
    fails(quorumwire.NotDecidedError, "beyond", lambda: list(client.recover_range(last, last + 1000)))
    fails(quorumwire.NoLearnerError, "99", lambda: client.checkpoint(99, 1))
    deliveries = client.deliver(1)
    assert [next(deliveries) for _ in values] == expected
    assert deliveries.next_within(0.05) is None
    # Behind its checkpoint, also if values were not taken that came before: those that came are not given twice.
    client.checkpoint(1, instances[0])
    while not client._handle._values:
        assert next(client.deliver(1)) == expected[1]
    client.checkpoint(1, instances[2])
    again = client.deliver(1)
    assert next(again) == expected[3]
    assert again.next_within(0.05) is None
    # From an instance on; and what was before has ended.
    again = client.deliver(1, instances[2])
    assert next(again).instance == instances[2]
    fails(quorumwire.HandleError, "later deliver", lambda: next(deliveries))
    assert again.checkpoint(last) < first  # learner 2 lacks them
    fails(quorumwire.NotDecidedError, "not decided", lambda: client.declare_lost(last + 1000))
    assert client.declare_lost(instances[1]) == instances[1]
    assert client.recover(first) == Recovered(instances[1], State.TRIMMED, None)
    fails(quorumwire.TrimmedError, str(instances[1]), lambda: next(client.recover_range(first, last)))
    fails(quorumwire.TrimmedError, str(instances[1]), lambda: client.deliver(2, first))
    client.checkpoint(2, last)


def forks(configuration: str, client: quorumwire.Client) -> None:
    """A child may not use its parent's client, and opens its own."""
    child = os.fork()
    if child == 0:
        try:
            client.submit(b"child")
            os._exit(1)
        except quorumwire.HandleError:
            client.close()
        with quorumwire.open(configuration) as own:
            own.submit(b"child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    client.submit(b"parent")


async def is_slow(configuration: str) -> None:
    """Takes one value, then submits many at once, then takes those."""
    async with await quorumwire.open_async(configuration) as client:
        deliveries = client.deliver(2)
        asked = asyncio.ensure_future(deliveries.__anext__())
        first = await client.submit(b"first")
        while (await asked).instance < first:
            asked = asyncio.ensure_future(deliveries.__anext__())
        instances = await asyncio.gather(*(client.submit(VALUE) for _ in range(VALUES)))
        kept = client._handle._values
        assert sum(len(it.value) for _, it in kept) <= KEPT_BYTES_MAX, len(kept)
        for instance in sorted(instances):
            delivery = await deliveries.__anext__()
            assert delivery == (instance, VALUE), delivery.instance
            assert sum(len(it.value) for _, it in kept) <= KEPT_BYTES_MAX, len(kept)
        # What is cancelled loses nothing.
        waits = asyncio.ensure_future(deliveries.__anext__())
        await asyncio.sleep(0)
        waits.cancel()
        last = await client.submit(b"last")
        assert await deliveries.__anext__() == (last, b"last")
        assert [it async for it in client.recover_range(last, last)] == [(last, b"last")]
        await client.checkpoint(1, last)
        assert await deliveries.checkpoint(last) == last  # which is trimmed


def main(configuration: str) -> None:
    """All of it."""
    with quorumwire.open(configuration) as client:
        asks(client)
        forks(configuration, client)
    asyncio.run(is_slow(configuration))


main(sys.argv[1])
