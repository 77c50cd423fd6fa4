"""The client for asyncio."""

from __future__ import annotations

import asyncio
import warnings
from types import TracebackType
from typing import AsyncIterator, Callable, Dict, Optional, Type, TypeVar, Union

from ._errors import BusyError, Error, HandleError, OutcomeUnknownError
from ._handle import Configuration, Delivery, Handle, Recovered, Value, begin, delivery_of

T = TypeVar("T")


def wake(waits: Optional[asyncio.Future[None]]) -> None:
    """Lets go on who waits, if somebody does."""
    if waits is not None and not waits.done():
        waits.set_result(None)


async def open_async(configuration: Configuration) -> AsyncClient:
    """Connects as the configuration file says, and waits until a replica has let it in, at most until the deadline."""
    return AsyncClient(await asyncio.wrap_future(begin(lambda: Handle(configuration))))


class AsyncClient:
    """As `Client`, for the event loop in which `open_async` made it, and for its thread only.

    Submissions and deliveries have no thread: the loop watches the library's descriptor. The other calls, each of
    which is one question to a replica, have one for as long as they take. What is cancelled may still be done.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        # What the library has not called back for, by token. Who waits for room there has the door, others wait for it.
        self._submissions: Dict[int, asyncio.Future[int]] = {}
        self._door = asyncio.Lock()
        self._room: Optional[asyncio.Future[None]] = None
        # Who waits for a value.
        self._asker: Optional[asyncio.Future[None]] = None
        self._watched = handle.descriptor()
        handle.submitted = self._submitted
        self._loop.add_reader(self._watched.fileno(), self._readable)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if hasattr(self, "_watched") and self._handle.is_open():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)

    async def close(self) -> None:
        """Ends what waits: submissions with an OutcomeUnknownError. A second time it does nothing."""
        if self._handle.is_open():
            self._must_be_here()
            self._loop.remove_reader(self._watched.fileno())
            closes = asyncio.ensure_future(self._call(self._handle.close))
            # Whoever waits is told, also if it is cancelled.
            closes.add_done_callback(lambda _: self._closed())
            await asyncio.shield(closes)

    def _closed(self) -> None:
        self._end("the client was closed")
        wake(self._asker)

    @property
    def value_bytes_max(self) -> int:
        """The longest value of this deployment, in bytes."""
        return self._handle.value_bytes_max()

    async def submit(self, value: Value) -> int:
        """Submits a value, and waits until it is decided: its instance. Many may be submitted at once; beyond 1,024 of
        them, or 64 MiB, they wait until others are decided. They may be decided in another order."""
        self._must_be_here()
        token = self._handle.token()
        outcome: asyncio.Future[int] = self._loop.create_future()
        async with self._door:
            while True:
                try:
                    self._handle.submit(value, token)
                    break
                except BusyError:
                    if not self._submissions:
                        raise  # nothing will make room
                    self._room = self._loop.create_future()
                    await self._room
            self._submissions[token] = outcome
        return await outcome

    def deliver(self, learner: int, from_instance: int = 0) -> AsyncDeliveries:
        """All values from this instance on, in their order, each once; 0: behind the learner's checkpoint. It begins,
        and takes the place of an earlier one, when the first value is asked for; in a Paxos deployment it goes on
        behind the last value that was taken."""
        self._must_be_here()
        return AsyncDeliveries(self, learner, from_instance)

    async def recover(self, instance: int) -> Recovered:
        """What is known of an instance, from 1 on, as of now."""
        return await self._call(lambda: self._handle.recover(instance))

    async def recover_range(self, first: int, last: int) -> AsyncIterator[Delivery]:
        """The values from the first instance to the last, asked for one by one. Instances without one are left out.
        A TrimmedError or NotDecidedError where nobody has one any more, or yet."""
        for instance in range(first, last + 1):
            delivery = delivery_of(await self.recover(instance), instance)
            if delivery is not None:
                yield delivery

    async def checkpoint(self, learner: int, instance: int) -> int:
        """The learner needs nothing up to this instance any more. Returns up to where nobody does, and all is trimmed;
        0 in a Paxos deployment, where that is not known."""
        return await self._call(lambda: self._handle.checkpoint(learner, instance))

    async def declare_lost(self, instance: int) -> int:
        """For an operator, when a learner is gone for good: nobody is given what stands up to this instance any more,
        whoever may lack it. Returns up to where all is trimmed."""
        return await self._call(lambda: self._handle.declare_lost(instance))

    async def _call(self, call: Callable[[], T]) -> T:
        self._must_be_here()
        return await asyncio.wrap_future(begin(call))

    def _must_be_here(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise HandleError("it belongs to another event loop: each opens its own")

    def _submitted(self, token: int, said: Union[int, Error]) -> None:
        outcome = self._submissions.pop(token, None)
        if outcome is not None and not outcome.done():
            if isinstance(said, Error):
                outcome.set_exception(said)
            else:
                outcome.set_result(said)
        wake(self._room)

    def _readable(self) -> None:
        try:
            self._poll(are_values_wanted=self._asker is not None)
        except Error:
            pass  # who waits is told
        wake(self._asker)

    def _poll(self, are_values_wanted: bool) -> None:
        try:
            self._handle.poll(are_values_wanted)
        except Error as failure:
            self._end(str(failure))
            raise

    def _end(self, why: str) -> None:
        """Nothing that waits will come."""
        self._loop.remove_reader(self._watched.fileno())
        for outcome in self._submissions.values():
            if not outcome.done():
                outcome.set_exception(OutcomeUnknownError(f"{why}; the value may still be decided"))
        self._submissions.clear()
        wake(self._room)

    async def _start(self, learner: int, from_instance: int) -> int:
        token = await self._call(lambda: self._handle.deliver(learner, from_instance))
        wake(self._asker)  # of what was delivered before
        return token

    async def _next(self, token: int) -> Delivery:
        while True:
            delivery = self._handle.take(token)
            if delivery is None:
                await asyncio.sleep(0)  # values may come faster than they are taken: others have their turn
                self._poll(are_values_wanted=True)
                delivery = self._handle.take(token)
            if delivery is not None:
                return delivery
            wake(self._asker)
            asker = self._asker = self._loop.create_future()
            try:
                await asker
            finally:
                if self._asker is asker:
                    self._asker = None


class AsyncDeliveries(AsyncIterator[Delivery]):
    """A learner's values, one after the other, without an end. Only those that are asked for leave the library, about
    1 MiB of them at a time: whoever is slow keeps nobody else waiting, and little in memory."""

    def __init__(self, client: AsyncClient, learner: int, from_instance: int) -> None:
        self._client = client
        self._from = from_instance
        self._token: Optional[int] = None
        self._turn = asyncio.Lock()
        self.learner = learner

    def __aiter__(self) -> AsyncDeliveries:
        return self

    async def __anext__(self) -> Delivery:
        async with self._turn:
            if self._token is None:
                self._token = await self._client._start(self.learner, self._from)
            return await self._client._next(self._token)

    async def checkpoint(self, instance: int) -> int:
        """The client's, for this learner."""
        return await self._client.checkpoint(self.learner, instance)
