"""What both clients are made of: the library's handle, the calls that block, and the values and outcomes that it
calls back. Who waits how is theirs."""

from __future__ import annotations

import enum
import itertools
import os
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any, Callable, Deque, NamedTuple, NoReturn, Optional, Tuple, TypeVar, Union

from ._errors import (
    ArgumentError,
    BusyError,
    Error,
    HandleError,
    InternalError,
    NotDecidedError,
    TrimmedError,
    check,
    error,
    text_of,
)
from ._native import ffi, lib

Configuration = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Value = Union[bytes, bytearray, memoryview]
T = TypeVar("T")

_LEARNER_MAX = 2**16 - 1
_INSTANCE_MAX = 2**64 - 1


class Delivery(NamedTuple):
    """A value, and its place in the order of all."""

    instance: int
    value: bytes


class State(enum.Enum):
    """What is known of an instance."""

    DECIDED = lib.QUORUMWIRE_DECIDED
    """It holds `value`."""
    NO_OP = lib.QUORUMWIRE_NO_OP
    """It is decided, and holds no value."""
    TRIMMED = lib.QUORUMWIRE_TRIMMED
    """Nothing up to `instance` is kept by anybody any more."""
    NOT_DECIDED = lib.QUORUMWIRE_NOT_DECIDED
    """It is beyond `instance`, the last that is decided."""


class Recovered(NamedTuple):
    """What `recover` has found."""

    instance: int
    """The one asked for, unless `state` says otherwise."""
    state: State
    value: Optional[bytes]
    """None, unless it is decided."""


class Descriptor:
    """A copy of the library's descriptor. It ends with whoever waits for it last, so that nobody waits for a number
    that has become something else's."""

    def __init__(self, number: int) -> None:
        self._number = os.dup(number)

    def fileno(self) -> int:
        """Its number."""
        return self._number

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            os.close(self._number)


def begin(call: Callable[[], T]) -> Future[T]:
    """Has another thread make a call that blocks in the library. No signal and no event loop waits for it then, nor
    does the end of the program."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as failure:  # whoever waits is told
            future.set_exception(failure)

    threading.Thread(target=run, name="quorumwire", daemon=True).start()
    return future


def interruptible(call: Callable[[], T]) -> T:
    """Makes a call that blocks in the library. Python carries out signals in the main thread, so there another thread
    makes it, and Ctrl-C ends the wait: what was asked for may still be done."""
    if threading.current_thread() is threading.main_thread():
        return begin(call).result()
    return call()


def integer(name: str, given: int, most: int) -> int:
    """An argument that C takes as an unsigned number."""
    if not 0 <= given <= most:
        raise ArgumentError(f"{name}: {given} is given; allowed: 0 to {most}")
    return given


class Handle:
    """It. The calls may be made by any thread; `poll` and `take` by one at a time."""

    def __init__(self, configuration: Configuration) -> None:
        """Connects. Blocks, at most until the deadline."""
        self._process = -1
        path = os.fsencode(configuration)
        if b"\0" in path:
            raise ArgumentError("the configuration's path has a byte 0 in it")
        opened = ffi.new("quorumwire_t **")
        check(lib.quorumwire_open(path, opened))
        self._handle: Any = opened[0]
        self._process = os.getpid()
        self._is_closed = False
        self._descriptor: Optional[Descriptor] = Descriptor(check(lib.quorumwire_fd(self._handle)))
        self._events = ffi.gc(ffi.new("qwpy_events *"), lib.qwpy_drop_all)
        self._tokens = itertools.count(1)
        self._deliver_lock = threading.Lock()
        # While a `deliver` asks the library, no poll wants values: so deliveries that end are known to be the last.
        # This lock is held while the library is polled, and where a `deliver` begins or ends to ask it.
        self._poll_lock = threading.Lock()
        self._is_asked = False
        # The last `deliver` that has taken the place of those before, and the first whose values go on to it.
        self._delivering = self._since = 0
        # What was delivered and is not taken, and what was taken last, with whom it is for.
        self._values: Deque[Tuple[int, Delivery]] = deque()
        self._taken = (0, Delivery(0, b""))
        # Why deliveries have ended, up to those of this token.
        self._ended: Optional[Tuple[int, Error]] = None
        self.submitted: Callable[[int, Union[int, Error]], None] = lambda token, outcome: None
        """Is told a submission's token, and its instance or error."""

    def __del__(self) -> None:
        if self._process != -1:
            self.close()

    def must_be_ours(self) -> None:
        """An error in a process that was forked. The threads that answer, and that give locks back, are not in it."""
        if self._process != os.getpid():
            raise HandleError("it was opened by another process: a process that was forked opens its own")

    def use(self) -> Any:
        """The handle, unless it is closed or another process's."""
        self.must_be_ours()
        if self._is_closed:
            self._refuse_closed()
        return self._handle

    def _refuse_closed(self) -> NoReturn:
        raise HandleError(text_of(HandleError.code))

    def close(self) -> None:
        """Ends what waits. A second time it does nothing."""
        if self.is_open():
            self._is_closed = True
            lib.quorumwire_close(self._handle)
            self._descriptor = None

    def is_open(self) -> bool:
        """Whether somebody should close it."""
        return self._process == os.getpid() and not self._is_closed

    def descriptor(self) -> Descriptor:
        """It is readable when there is something for `poll`."""
        self.use()
        return self._descriptor or self._refuse_closed()

    def value_bytes_max(self) -> int:
        """The longest value."""
        return int(lib.quorumwire_value_bytes_max(self.use()))

    def token(self) -> int:
        """A number that nobody else has."""
        return next(self._tokens)

    def submit(self, value: Value, token: int) -> None:
        """Submits a value, whose outcome `poll` tells."""
        with ffi.from_buffer(value) as data:
            check(lib.qwpy_submit(self.use(), data, len(data), token))

    def submit_wait(self, value: Value) -> int:
        """Submits a value, and blocks until it is decided."""
        instance = ffi.new("uint64_t *")
        with ffi.from_buffer(value) as data:
            check(lib.quorumwire_submit_wait(self.use(), data, len(data), instance))
        return int(instance[0])

    def deliver(self, learner: int, from_instance: int) -> int:
        """Has values delivered, in place of those that were before. Blocks until it is known whether they are kept.
        Returns the token of who may take them."""
        integer("learner", learner, _LEARNER_MAX)
        integer("from_instance", from_instance, _INSTANCE_MAX)
        self.must_be_ours()
        with self._deliver_lock:
            handle, token = self.use(), self.token()
            with self._poll_lock:
                self._is_asked = True
            try:
                check(lib.qwpy_deliver(handle, learner, from_instance, token))
                with self._poll_lock:
                    # The library goes on behind what it gave: what is not taken of that is given nowhere else.
                    goes_on = from_instance == 0 and lib.qw_gives_once(handle)
                    self._since = self._since if goes_on else token
                    self._delivering = token
            finally:
                self._is_asked = False
                # This rings: who waits for values wakes up, and asks again, or finds that they have ended.
                lib.quorumwire_hold(handle, 1)
                lib.quorumwire_hold(handle, 0)
            return token

    def poll(self, are_values_wanted: bool) -> None:
        """Takes what the library calls back. Values only if they are wanted, and none is left of those before."""
        with self._poll_lock:
            are_values_wanted = are_values_wanted and not self._is_asked and not self._values
            lib.qwpy_poll(self.use(), self._events, are_values_wanted, self._delivering)
        # An event is dropped when all is done for it. So a signal's exception loses none, and one that comes twice
        # changes nothing the second time.
        while self._events.first != ffi.NULL:
            event = self._events.first
            said = ffi.unpack(event.bytes, event.size)
            if event.is_value:
                self._append((event.token, Delivery(event.instance, said)))
            else:
                failure = error(event.error, said.decode(errors="replace")) if event.error else None
                if not event.is_end:
                    self.submitted(event.token, failure or event.instance)
                elif isinstance(failure, (HandleError, BusyError)):
                    lib.qwpy_drop_first(self._events)
                    raise failure
                elif failure:
                    self._ended = (event.token, failure)
            lib.qwpy_drop_first(self._events)
        if self._events.is_out_of_memory:
            failure = InternalError("no memory for what the library called back: some is lost, the client is closed")
            self._ended = (self._delivering, failure)
            self.close()
            raise failure

    def _append(self, value: Tuple[int, Delivery]) -> None:
        last = self._values[-1] if self._values else self._taken
        if value > last:
            self._values.append(value)

    def take(self, token: int) -> Optional[Delivery]:
        """The next value that was delivered, if it is there."""
        with self._poll_lock:
            since, latest = self._since, self._delivering
        if since <= token < latest:
            self._refuse_replaced()  # what it has goes on to the latest
        first = since if token == latest else token
        while self._values and self._values[0][0] <= token:
            self._taken = self._values[0]
            self._values.popleft()
            if self._taken[0] >= first:
                return self._taken[1]
        if self._values or token < latest:
            self._refuse_replaced()
        if self._ended and token <= self._ended[0]:
            raise self._ended[1].with_traceback(None)
        self.use()
        return None

    def _refuse_replaced(self) -> NoReturn:
        raise HandleError("a later deliver() has taken the place of this one")

    def recover(self, instance: int) -> Recovered:
        """What is known of an instance. Blocks."""
        integer("instance", instance, _INSTANCE_MAX)
        found = ffi.new("quorumwire_recovered_t *")
        check(lib.quorumwire_recover(self.use(), instance, found))
        try:
            state = State(found.state)
            value = ffi.unpack(ffi.cast("char *", found.value), found.size) if state is State.DECIDED else None
            return Recovered(found.instance, state, value)
        finally:
            lib.quorumwire_recovered_free(found)

    def checkpoint(self, learner: int, instance: int) -> int:
        """A learner needs nothing up to there any more. Blocks; returns up to where all is trimmed."""
        integer("learner", learner, _LEARNER_MAX)
        integer("instance", instance, _INSTANCE_MAX)
        trimmed = ffi.new("uint64_t *")
        check(lib.quorumwire_checkpoint(self.use(), learner, instance, trimmed))
        return int(trimmed[0])

    def declare_lost(self, instance: int) -> int:
        """Nobody is given what stands up to there any more. Blocks; returns up to where all is trimmed."""
        integer("instance", instance, _INSTANCE_MAX)
        trimmed = ffi.new("uint64_t *")
        check(lib.quorumwire_declare_lost(self.use(), instance, trimmed))
        return int(trimmed[0])


def delivery_of(found: Recovered, instance: int) -> Optional[Delivery]:
    """Of what was found of an instance, its value; none of a no-op. An error if nobody can have it."""
    if found.state is State.TRIMMED:
        raise TrimmedError(f"nothing up to instance {found.instance} is kept any more")
    if found.state is State.NOT_DECIDED:
        raise NotDecidedError(f"instance {instance} is beyond {found.instance}, the last that is decided")
    return None if found.value is None else Delivery(instance, found.value)
