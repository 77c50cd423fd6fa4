"""The client that blocks."""

from __future__ import annotations

import select
import threading
import time
import warnings
from types import TracebackType
from typing import Iterator, Optional, Type

from ._handle import Configuration, Delivery, Handle, Recovered, Value, delivery_of, interruptible


def open(configuration: Configuration) -> Client:  # as gzip.open and others
    """Connects as the configuration file says, and blocks until a replica has let it in, at most until the deadline."""
    return Client(interruptible(lambda: Handle(configuration)))


class Client:
    """Submits values, and is given those of a learner. `open` makes one.

    All methods may be called from any thread. Those that wait release Python's lock meanwhile, and Ctrl-C ends the
    wait. While nobody leads, they wait until the deadline of the configuration is over, and deliveries for as long as
    it takes. A client survives no fork; a process that was forked opens its own.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        # Of whoever polls.
        self._turn = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle") and self._handle.is_open():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)

    def close(self) -> None:
        """Ends what waits, in other threads as well: submissions with an OutcomeUnknownError, all else with a
        HandleError. A second time it does nothing."""
        self._handle.close()

    @property
    def value_bytes_max(self) -> int:
        """The longest value of this deployment, in bytes."""
        return self._handle.value_bytes_max()

    def submit(self, value: Value) -> int:
        """Submits a value, and waits until it is decided: its instance."""
        return interruptible(lambda: self._handle.submit_wait(value))

    def deliver(self, learner: int, from_instance: int = 0) -> Deliveries:
        """All values from this instance on, in their order, each once; 0: behind the learner's checkpoint. A second
        call takes the place of the first, which ends with a HandleError; in a Paxos deployment it goes on behind the
        last value that was taken."""
        token = interruptible(lambda: self._handle.deliver(learner, from_instance))
        return Deliveries(self, self._handle, self._turn, learner, token)

    def recover(self, instance: int) -> Recovered:
        """What is known of an instance, from 1 on, as of now."""
        return interruptible(lambda: self._handle.recover(instance))

    def recover_range(self, first: int, last: int) -> Iterator[Delivery]:
        """The values from the first instance to the last, asked for one by one. Instances without one are left out.
        A TrimmedError or NotDecidedError where nobody has one any more, or yet."""
        for instance in range(first, last + 1):
            delivery = delivery_of(self.recover(instance), instance)
            if delivery is not None:
                yield delivery

    def checkpoint(self, learner: int, instance: int) -> int:
        """The learner needs nothing up to this instance any more. Returns up to where nobody does, and all is trimmed;
        0 in a Paxos deployment, where that is not known."""
        return interruptible(lambda: self._handle.checkpoint(learner, instance))

    def declare_lost(self, instance: int) -> int:
        """For an operator, when a learner is gone for good: nobody is given what stands up to this instance any more,
        whoever may lack it. Returns up to where all is trimmed."""
        return interruptible(lambda: self._handle.declare_lost(instance))


# What the system waits at once. Who waits for longer waits again.
_SECONDS_MAX = 3600.0


class Deliveries(Iterator[Delivery]):
    """A learner's values, one after the other, without an end. Only those that are asked for leave the library, about
    1 MiB of them at a time: whoever is slow keeps nobody else waiting, and little in memory."""

    def __init__(self, client: Client, handle: Handle, turn: threading.Lock, learner: int, token: int) -> None:
        self._client = client
        self._handle = handle
        self._turn = turn
        self._token = token
        self.learner = learner

    def __iter__(self) -> Deliveries:
        return self

    def __next__(self) -> Delivery:
        delivery = self.next_within(None)
        assert delivery is not None  # without a time it waits
        return delivery

    def next_within(self, seconds: Optional[float]) -> Optional[Delivery]:
        """The next value; none if it does not come within this time. None as a time: for as long as it takes."""
        end = None if seconds is None else time.monotonic() + seconds
        self._handle.must_be_ours()
        if not self._turn.acquire(timeout=-1 if seconds is None else min(max(0.0, seconds), threading.TIMEOUT_MAX)):
            return None
        try:
            while True:
                delivery = self._handle.take(self._token)
                if delivery is None:
                    self._handle.poll(are_values_wanted=True)
                    delivery = self._handle.take(self._token)
                left = None if end is None else max(0.0, end - time.monotonic())
                if delivery is not None or left == 0:
                    return delivery
                descriptor = self._handle.descriptor()
                readable = select.poll()
                readable.register(descriptor, select.POLLIN)
                readable.poll(None if left is None else min(left, _SECONDS_MAX) * 1000)
        finally:
            self._turn.release()

    def checkpoint(self, instance: int) -> int:
        """The client's, for this learner."""
        return self._client.checkpoint(self.learner, instance)
