"""What the client for asyncio does while nobody answers."""

import asyncio
import itertools
import time
import unittest
from typing import Any, Callable, Coroutine, List
from unittest import mock

import quorumwire
from nobody import Nobody
from quorumwire import Delivery

SOON = 20.0
# More than the library takes before it calls back.
MANY = 1100
ROOM = 1024


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    """It."""

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = SOON
        self.nobody = self.enterContext(Nobody())
        self.client = await self.enterAsyncContext(await quorumwire.open_async(self.nobody.configuration()))

    async def test_what_makes_no_sense_is_named(self) -> None:
        with self.assertRaisesRegex(quorumwire.ConfigurationError, "/nowhere/at/all: "):
            await quorumwire.open_async("/nowhere/at/all")
        with self.assertRaises(quorumwire.TooLargeError):
            await self.client.submit(bytes(self.client.value_bytes_max + 1))
        with self.assertRaises(TypeError):
            await self.client.submit("text")  # type: ignore[arg-type]
        with self.assertRaises(quorumwire.NoLearnerError):
            await self.client.deliver(1).__anext__()
        with self.assertRaises(quorumwire.NoLearnerError):
            await self.client.checkpoint(1, 1)

    async def test_who_waits_keeps_no_processor_busy(self) -> None:
        before = asyncio.ensure_future(self.client.deliver(0).__anext__())
        waiting = asyncio.ensure_future(self.client.deliver(0).__anext__())
        with self.assertRaisesRegex(quorumwire.HandleError, "later deliver"):
            await asyncio.wait_for(before, SOON)
        handle = self.client._handle
        with mock.patch.object(handle, "poll", side_effect=handle.poll) as polled:
            used = time.thread_time()
            await asyncio.sleep(0.5)
            self.assertLess(time.thread_time() - used, 0.1)
            self.assertLess(polled.call_count, 50)
        self.assertFalse(waiting.done())
        waiting.cancel()

    async def test_what_the_library_has_no_room_for_waits(self) -> None:
        submissions = [asyncio.ensure_future(self.client.submit(b"value")) for _ in range(MANY)]
        await asyncio.sleep(0.1)
        self.assertEqual(sum(it.done() for it in submissions), 0)
        self.assertEqual(len(self.client._submissions), ROOM)
        submissions[0].cancel()
        submissions[-1].cancel()
        await self.client.close()
        done = await asyncio.wait_for(asyncio.gather(*submissions, return_exceptions=True), SOON)
        kinds = [type(it) for it in done]
        self.assertEqual(kinds[0], asyncio.CancelledError)
        self.assertEqual(kinds[-1], asyncio.CancelledError)
        self.assertEqual(set(kinds[1:ROOM]), {quorumwire.OutcomeUnknownError})
        self.assertEqual(set(kinds[ROOM:-1]), {quorumwire.HandleError})

    async def test_room_is_given_in_turn(self) -> None:
        submissions = [asyncio.ensure_future(self.client.submit(b"value")) for _ in range(MANY)]
        await asyncio.sleep(0.1)
        waiting = set(self.client._submissions)
        self.client._submitted(min(waiting), 4711)
        self.assertEqual(await submissions[0], 4711)
        self.client._submitted(min(waiting), 4711)  # a second time it changes nothing
        self.client._submitted(min(waiting) + 1, quorumwire.FullError("learner 2"))
        with self.assertRaisesRegex(quorumwire.FullError, "learner 2"):
            await submissions[1]
        for it in submissions:
            it.cancel()

    async def test_closing_ends_what_waits(self) -> None:
        deliveries = self.client.deliver(0)
        waiting = [asyncio.ensure_future(deliveries.__anext__()) for _ in range(2)]
        await asyncio.sleep(0.1)
        await self.client.close()
        await self.client.close()
        for it in waiting:
            with self.assertRaises(quorumwire.HandleError):
                await asyncio.wait_for(it, SOON)
        calls: List[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: self.client.submit(b"value"),
            lambda: self.client.recover(1),
            lambda: self.client.checkpoint(0, 1),
            lambda: self.client.declare_lost(1),
            lambda: self.client.deliver(0).__anext__(),
            lambda: deliveries.__anext__(),
            lambda: deliveries.checkpoint(1),
        ]
        for call in calls:
            with self.assertRaisesRegex(quorumwire.HandleError, "closed"):
                await call()

    async def test_a_close_that_is_cancelled_ends_what_waits_nevertheless(self) -> None:
        submission = asyncio.ensure_future(self.client.submit(b"value"))
        waiting = asyncio.ensure_future(self.client.deliver(0).__anext__())
        await asyncio.sleep(0.1)
        closes = asyncio.ensure_future(self.client.close())
        await asyncio.sleep(0)
        closes.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await closes
        with self.assertRaisesRegex(quorumwire.OutcomeUnknownError, "closed"):
            await asyncio.wait_for(submission, SOON)
        with self.assertRaisesRegex(quorumwire.HandleError, "closed"):
            await asyncio.wait_for(waiting, SOON)

    async def test_values_without_an_end_leave_others_their_turn(self) -> None:
        handle, instances = self.client._handle, itertools.count(1)
        turns = 0

        def poll(are_values_wanted: bool) -> None:
            if are_values_wanted and not handle._values:
                handle._append((handle._delivering, Delivery(next(instances), b"value")))

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        deliveries = self.client.deliver(0)
        with mock.patch.object(handle, "poll", side_effect=poll):
            await deliveries.__anext__()
            beside = asyncio.ensure_future(others())
            for _ in range(100):
                await deliveries.__anext__()
        beside.cancel()
        self.assertGreaterEqual(turns, 20)

    async def test_what_is_cancelled_leaves_the_others_alone(self) -> None:
        deliveries = self.client.deliver(0)
        for _ in range(3):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(deliveries.__anext__(), 0.05)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.client.submit(b"value"), 0.05)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.client.recover(1), 0.05)

    async def test_without_memory_for_outcomes_nobody_waits_for_them(self) -> None:
        submission = asyncio.ensure_future(self.client.submit(b"value"))
        waiting = asyncio.ensure_future(self.client.deliver(0).__anext__())
        await asyncio.sleep(0.1)
        self.client._handle._events.is_out_of_memory = 1
        self.client._readable()
        with self.assertRaisesRegex(quorumwire.OutcomeUnknownError, "memory"):
            await asyncio.wait_for(submission, SOON)
        with self.assertRaisesRegex(quorumwire.InternalError, "memory"):
            await asyncio.wait_for(waiting, SOON)

    async def test_another_event_loop_is_told_to_open_its_own(self) -> None:
        def elsewhere() -> None:
            with self.assertRaisesRegex(quorumwire.HandleError, "event loop"):
                asyncio.run(self.client.submit(b"value"))

        await asyncio.to_thread(elsewhere)


if __name__ == "__main__":
    unittest.main()
