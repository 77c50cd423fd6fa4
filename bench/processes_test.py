"""Nothing that was started outlives the run, however the run ends."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import processes

DEADLINE_SECONDS = 20
BENCH = Path(__file__).parent
# Starts a program, tells its process id, and waits.
PARENT = """
import contextlib, sys, time
import processes
with contextlib.ExitStack() as stack:
    child = processes.start(stack, ["sleep", "600"], "/dev/null")
    print(child.pid, flush=True)
    time.sleep(600)
"""


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while its file is read
        return False


class Processes(unittest.TestCase):
    def assert_ends(self, pid):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while is_alive(pid):
            self.assertLess(time.monotonic(), deadline, f"process {pid} lives on")
            time.sleep(processes.POLL_SECONDS)

    def test_a_program_ends_with_its_stack(self):
        with contextlib.ExitStack() as stack:
            pid = processes.start(stack, ["sleep", "600"], os.devnull).pid
            self.assertTrue(is_alive(pid))
        self.assert_ends(pid)

    def test_a_program_is_of_our_session_and_out_of_reach_of_the_terminals_signals(self):
        with contextlib.ExitStack() as stack:
            process = processes.start(stack, ["sleep", "60"], os.devnull)
            self.assertEqual(os.getsid(process.pid), os.getsid(0))
            self.assertEqual(os.getpgid(process.pid), process.pid)

    def test_a_program_ends_when_its_starter_is_killed(self):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=BENCH, stdout=subprocess.PIPE, env=environment)
        with parent.stdout:
            pid = int(parent.stdout.readline())
        # It asks for the signal before it becomes what it is to run.
        deadline = time.monotonic() + DEADLINE_SECONDS
        while Path(f"/proc/{pid}/comm").read_text().strip() != "sleep":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(processes.POLL_SECONDS)
        parent.send_signal(signal.SIGKILL)
        parent.wait(DEADLINE_SECONDS)
        self.assert_ends(pid)

    def test_what_takes_too_long_is_stopped_and_named(self):
        with self.assertRaisesRegex(processes.Failed, "^sleep took more than 0.2 s"):
            processes.output_of(["sleep", "600"], 0.2)

    def test_what_fails_is_told_wherever_it_said_so(self):
        for where in (">&2", ""):
            with self.assertRaisesRegex(processes.Failed, "^sh: exit code 3: no such thing"):
                processes.output_of(["sh", "-c", f"echo no such thing {where}; exit 3"], DEADLINE_SECONDS)

    def test_a_server_that_ends_while_it_is_waited_for_fails_with_its_log(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            log = Path(folder) / "log"
            process = processes.start(stack, ["sh", "-c", "echo no such thing; exit 3"], log)
            with self.assertRaisesRegex(processes.Failed, "it: exit code 3; log: no such thing"):
                processes.wait_until("it", lambda: False, [process], log)

    def test_ports_are_different(self):
        self.assertEqual(len(set(processes.free_ports(20))), 20)


if __name__ == "__main__":
    unittest.main()
