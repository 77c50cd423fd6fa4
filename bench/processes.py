"""Starting and stopping programs on loopback: nothing that was started here outlives the run.

Every wait is limited. Knows nothing of what the programs are.
"""
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import time

START_SECONDS_MAX = 40
STOP_SECONDS_MAX = 20
POLL_SECONDS = 0.02
# Below those the kernel gives to outgoing connections.
PORTS = range(15_000, 32_000)
PORT_TRIES_MAX = 10_000
LOG_TAIL_BYTES = 2_000
# A setting in the environment of whoever runs this must not change what is measured.
SETTINGS_OF_SERVERS = ("QUORUMWIRE_", "ETCD_", "ETCDCTL_", "NATS_", "ZOO", "ZK_", "JVMFLAGS", "JAVA_", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
                       "GODEBUG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT")


class Failed(Exception):
    """A program did not do what is needed of it; the text says which and why."""


# What a measurement may fail by that is not of its own making: a program, what it printed, the system.
OUTSIDE = (Failed, OSError, ValueError, LookupError, subprocess.SubprocessError)


def why(failed):
    """What failed, in words."""
    return f"{failed}" if isinstance(failed, Failed) else f"{type(failed).__name__}: {failed}"


def environment():
    """The environment without settings for the servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS_OF_SERVERS)}


def free_ports(count):
    """That many different ports nobody listens on."""
    found = []
    for _ in range(PORT_TRIES_MAX):
        port = random.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
        if len(found) == count:
            return found
    raise Failed(f"no {count} free ports in {PORTS.start} to {PORTS.stop - 1}")


def start(stack, command, log_path, **options):
    """Starts a program that ends with `stack`, and also if this process is killed.

    Both outputs go to `log_path`, the input is empty, and the environment is without settings for the servers, unless `options`
    say otherwise.
    """
    log = stack.enter_context(open(log_path, "ab"))
    options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": environment(), **options}
    # A process group of its own: Ctrl-C reaches this process only, which then stops them in order. No session of its
    # own: the scheduler shares processors out among sessions first (`sched_autogroup_enabled`), so three replicas of
    # one session would get as much as a load program, and three of three sessions three times that.
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *command],
        process_group=0,
        **options,
    )
    stack.callback(stop, process)
    return process


def stop(process):
    """Ends a program with its process group: politely first, then not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_until(what, holds, processes, log_path):
    """Waits until `holds()` is true; fails if one of the processes ends or it takes too long."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not holds():
        for process in processes:
            if process.poll() is not None:
                raise Failed(f"{what}: exit code {process.returncode}; log: {tail(log_path)}")
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {START_SECONDS_MAX} s; log: {tail(log_path)}")
        time.sleep(POLL_SECONDS)


def output_of(command, seconds_max, **options):
    """What a program prints; fails if it fails or takes too long, with what it says of that."""
    with contextlib.ExitStack() as stack:
        process = start(stack, command, os.devnull, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        stack.callback(process.stderr.close)
        try:
            out, error = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            raise Failed(f"{pathlib.Path(command[0]).name} took more than {seconds_max} s") from None
        if process.returncode != 0:
            raise Failed(f"{pathlib.Path(command[0]).name}: exit code {process.returncode}: {(error or out).decode(errors='replace')[-LOG_TAIL_BYTES:]}")
        return out.decode(errors="replace")


def tail(log_path):
    """The end of a log, in one line."""
    with open(log_path, "rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
        return " | ".join(log.read().decode(errors="replace").split("\n")).strip(" |") or "(empty)"
