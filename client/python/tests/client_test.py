"""What the client that blocks does while nobody answers, and with what makes no sense."""

import gc
import math
import os
import signal
import threading
import time
import unittest
import warnings
from typing import Any, Callable, List
from unittest import mock

import quorumwire
from nobody import Nobody
from quorumwire import Delivery, _handle
from quorumwire._native import ffi, lib

# What is not waited for in vain comes within this time, on a busy machine, too.
SOON = 20.0


class ClientTest(unittest.TestCase):
    """It."""

    def setUp(self) -> None:
        self.nobody = self.enterContext(Nobody())
        self.client = self.enterContext(quorumwire.open(self.nobody.configuration()))

    def test_a_configuration_that_makes_no_sense_is_named(self) -> None:
        with self.assertRaisesRegex(quorumwire.ConfigurationError, "/nowhere/at/all: "):
            quorumwire.open("/nowhere/at/all")
        with self.assertRaisesRegex(quorumwire.ArgumentError, "byte 0"):
            quorumwire.open(b"/nowhere\0")
        with self.assertRaises(TypeError):
            quorumwire.open(3)  # type: ignore[arg-type]
        path = self.nobody.path / "strange.toml"
        path.write_text("adresses = []")
        with self.assertRaisesRegex(quorumwire.ConfigurationError, "adresses"):
            quorumwire.open(os.fsencode(path))

    def test_arguments_that_make_no_sense_are_named(self) -> None:
        longest = self.client.value_bytes_max
        with self.assertRaisesRegex(quorumwire.TooLargeError, f"{longest + 1} .*at most {longest}"):
            self.client.submit(bytes(longest + 1))
        with self.assertRaises(TypeError):
            self.client.submit("text")  # type: ignore[arg-type]
        for learner in -1, 65536:
            with self.assertRaisesRegex(quorumwire.ArgumentError, f"learner: {learner} .*0 to 65535"):
                self.client.deliver(learner)
        with self.assertRaisesRegex(quorumwire.NoLearnerError, "1"):
            self.client.deliver(1)
        calls: List[Callable[[int], Any]] = [
            lambda it: self.client.deliver(0, it),
            self.client.recover,
            self.client.declare_lost,
            lambda it: self.client.checkpoint(0, it),
        ]
        for call in calls:
            for instance in -1, 1 << 64:
                with self.assertRaisesRegex(ValueError, "instance: "):
                    call(instance)
        with self.assertRaises(quorumwire.ArgumentError):
            self.client.recover(0)
        with self.assertRaisesRegex(quorumwire.ArgumentError, "operator"):
            self.client.declare_lost(1)

    def test_a_deadline_ends_a_submission_whose_outcome_nobody_knows(self) -> None:
        self.client.close()
        with quorumwire.open(self.nobody.configuration(deadline_ms=50)) as client:
            for value in b"bytes", bytearray(b"more"), memoryview(b"and more"), b"":
                with self.assertRaises(quorumwire.OutcomeUnknownError):
                    client.submit(value)
            with self.assertRaises(quorumwire.Error):
                client.recover(1)

    def test_values_that_do_not_come_are_not_waited_for_longer_than_asked(self) -> None:
        deliveries = self.client.deliver(0)
        self.assertIsNone(deliveries.next_within(0))
        self.assertIsNone(deliveries.next_within(-1))
        began = time.monotonic()
        self.assertIsNone(deliveries.next_within(0.1))
        self.assertGreaterEqual(time.monotonic() - began, 0.1)
        waiting = [in_thread(lambda: next(deliveries)) for _ in range(2)]
        waiting += [in_thread(lambda: deliveries.next_within(math.inf)) for _ in range(2)]
        self.assertIsNone(deliveries.next_within(0.1))  # another thread's turn
        self.assertIsNone(deliveries.next_within(-1))
        self.client.close()
        for it in waiting:
            self.assertIsInstance(it(), quorumwire.HandleError)

    def test_control_c_ends_what_waits(self) -> None:
        # Where tests run in the background, it is ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        deliveries = self.client.deliver(0)
        calls: List[Callable[[], Any]] = [
            lambda: self.client.submit(b"value"),
            lambda: self.client.recover(1),
            lambda: next(deliveries),
        ]
        for call in calls:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            began = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                call()
            self.assertLess(time.monotonic() - began, SOON)
            timer.join()
        self.assertIsNone(deliveries.next_within(0))

    def test_closing_ends_what_other_threads_wait_for(self) -> None:
        deliveries = self.client.deliver(0)
        given = in_thread(lambda: next(deliveries))
        submitted = in_thread(lambda: self.client.submit(b"value"))
        recovered = in_thread(lambda: self.client.recover(1))
        time.sleep(0.1)
        self.client.close()
        for ended in given, recovered:
            self.assertRegex(repr(ended()), "HandleError.*closed")
        # On a busy machine it had not begun yet, and was refused.
        self.assertRegex(repr(submitted()), "(OutcomeUnknown|Handle)Error.*closed")

    def test_what_is_closed_says_so(self) -> None:
        deliveries = self.client.deliver(0)
        self.client.close()
        self.client.close()
        calls: List[Callable[[], Any]] = [
            lambda: self.client.value_bytes_max,
            lambda: self.client.submit(b"value"),
            lambda: self.client.deliver(0),
            lambda: self.client.recover(1),
            lambda: list(self.client.recover_range(1, 2)),
            lambda: self.client.checkpoint(0, 1),
            lambda: self.client.declare_lost(1),
            lambda: next(deliveries),
            lambda: deliveries.next_within(1),
            lambda: deliveries.checkpoint(1),
        ]
        for call in calls:
            with self.assertRaisesRegex(quorumwire.HandleError, "closed"):
                call()

    def test_a_client_that_is_forgotten_is_closed(self) -> None:
        self.client.close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = quorumwire.open(self.nobody.configuration())
            with self.assertRaises(quorumwire.Error):
                quorumwire.open(self.nobody.configuration())  # its address is taken
            del client
            gc.collect()
        self.assertEqual([it.category for it in caught], [ResourceWarning])
        caught.clear()  # they kept it
        quorumwire.open(self.nobody.configuration()).close()

    def test_a_child_may_not_use_its_parents_client(self) -> None:
        deliveries = self.client.deliver(0)
        # Other threads are within calls. They are not in the child.
        waiting = in_thread(lambda: next(deliveries))
        while not self.client._turn.locked():
            time.sleep(0.01)
        with self.client._handle._deliver_lock:
            child = os.fork()
        if child == 0:
            self.client._handle._deliver_lock.acquire()
            signal.alarm(round(SOON))
            refused = 0
            calls: List[Callable[[], Any]] = [
                lambda: self.client.submit(b"value"),
                lambda: self.client.deliver(0),
                lambda: next(deliveries),
            ]
            for call in calls:
                try:
                    call()
                except quorumwire.HandleError as error:
                    refused += "process" in str(error)
            self.client.close()
            del self.client, deliveries
            gc.collect()
            os._exit(refused)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)
        self.assertIsNone(deliveries.next_within(0))
        self.client.close()
        self.assertRegex(str(waiting()), "closed")

    def test_later_deliveries_take_the_place_of_those_before(self) -> None:
        before = self.client.deliver(0)
        waiting = in_thread(lambda: before.next_within(SOON))
        with self.assertRaises(quorumwire.NoLearnerError):
            self.client.deliver(1)
        after = self.client.deliver(0)
        self.assertRegex(str(waiting()), "later deliver")
        with self.assertRaisesRegex(quorumwire.HandleError, "later deliver"):
            before.next_within(SOON)
        self.assertIsNone(after.next_within(0))

    def test_a_value_is_taken_once_and_by_whom_it_is_for(self) -> None:
        with mock.patch.object(_handle, "lib", Replicas()):
            first = self.client.deliver(0)
            second = self.client.deliver(0)
        handle, tokens = self.client._handle, (first._token, second._token)
        for token, instance in (tokens[0], 1), (tokens[1], 1), (tokens[1], 1), (tokens[1], 3), (tokens[1], 3):
            handle._append((token, Delivery(instance, b"value")))
        self.assertEqual(first.next_within(0), (1, b"value"))
        with self.assertRaises(quorumwire.HandleError):
            first.next_within(0)
        self.assertEqual(second.next_within(0), (1, b"value"))
        handle._append((tokens[1], Delivery(3, b"value")))
        self.assertEqual(second.next_within(0), (3, b"value"))
        handle._append((tokens[1], Delivery(3, b"value")))
        self.assertIsNone(second.next_within(0))

    def test_values_of_a_deployment_that_were_not_taken_go_on_to_who_begins_anew(self) -> None:
        first = self.client.deliver(0)
        handle = self.client._handle
        for instance in 1, 2, 3:
            handle._append((first._token, Delivery(instance, b"value")))
        self.assertEqual(next(first).instance, 1)
        second = self.client.deliver(0)
        with self.assertRaisesRegex(quorumwire.HandleError, "later deliver"):
            first.next_within(0)
        self.assertEqual(next(second).instance, 2)
        with self.assertRaises(quorumwire.NoLearnerError):
            self.client.deliver(1)
        third = self.client.deliver(0)
        handle._append((third._token, Delivery(5, b"value")))
        handle._append((third._token, Delivery(6, b"value")))
        self.assertEqual([next(third).instance for _ in range(2)], [3, 5])
        # Whoever names an instance needs nothing before it.
        later = self.client.deliver(0, 9)
        self.assertIsNone(later.next_within(0))
        handle._append((later._token, Delivery(9, b"value")))
        last = self.client.deliver(0)
        self.assertEqual(next(last).instance, 9)
        self.assertIsNone(last.next_within(0))

    def test_deliveries_that_end_while_later_ones_are_asked_for_end_alone(self) -> None:
        before = self.client.deliver(0)
        library = EndsMeanwhile(lambda: before.next_within(0))
        with mock.patch.object(_handle, "lib", library):
            after = self.client.deliver(0)
        self.assertIsInstance(library.outcome, quorumwire.TrimmedError)
        self.assertIsNone(after.next_within(0))
        with self.assertRaisesRegex(quorumwire.HandleError, "later deliver"):
            before.next_within(0)
        # It is known whose values come, and which deliveries have ended.
        self.assertEqual(library.were_wanted, [False])

    def test_an_error_of_a_poll_is_of_the_deliveries_under_way(self) -> None:
        events = ffi.gc(ffi.new("qwpy_events *"), lib.qwpy_drop_all)
        lib.qwpy_poll(ffi.NULL, events, 0, 7)
        event = events.first
        self.assertEqual((event.token, event.is_end, event.error), (7, 1, lib.QUORUMWIRE_ERROR_HANDLE))

    def test_without_memory_for_values_nothing_goes_on_as_if_all_were_there(self) -> None:
        deliveries = self.client.deliver(0)
        self.client._handle._events.is_out_of_memory = 1
        for _ in range(2):
            with self.assertRaisesRegex(quorumwire.InternalError, "memory"):
                deliveries.next_within(SOON)
        with self.assertRaises(quorumwire.HandleError):
            self.client.submit(b"value")

    def test_a_thread_is_told_of_its_own_error(self) -> None:
        def asks(learner: int) -> None:
            for _ in range(200):
                with self.assertRaisesRegex(quorumwire.NoLearnerError, rf"\b{learner}\b"):
                    self.client.checkpoint(learner, 1)

        outcomes = [in_thread(lambda: asks(71)), in_thread(lambda: asks(72))]
        self.assertEqual([outcome() for outcome in outcomes], [None, None])


class Replicas:
    """The library, as if replicas decided: they give a value again to who begins anew."""

    def __getattr__(self, name: str) -> Any:
        return getattr(lib, name)

    def qw_gives_once(self, handle: Any) -> int:
        return 0


class EndsMeanwhile:
    """The library, whose deliveries end in a poll while it is asked for later ones."""

    def __init__(self, polls: Callable[[], Any]) -> None:
        self.polls = polls
        self.outcome: Any = None
        self.were_wanted: List[bool] = []
        self.event = ffi.new("qwpy_event *", {"is_end": 1, "error": lib.QUORUMWIRE_ERROR_TRIMMED})

    def __getattr__(self, name: str) -> Any:
        return getattr(lib, name)

    def qwpy_deliver(self, *arguments: Any) -> Any:
        self.outcome = in_thread(self.polls)()
        return lib.qwpy_deliver(*arguments)

    def qwpy_poll(self, handle: Any, events: Any, are_values_wanted: bool, deliveries: int) -> None:
        self.were_wanted.append(bool(are_values_wanted))
        self.event.token = deliveries
        events.first = self.event

    def qwpy_drop_first(self, events: Any) -> None:
        events.first = ffi.NULL


def in_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Begins a call in another thread. What is returned waits for what it returns or raises."""
    outcome: List[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait() -> Any:
        thread.join(SOON)
        return outcome[0]

    return wait


if __name__ == "__main__":
    unittest.main()
