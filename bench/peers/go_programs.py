"""Go programs that are built here: servers pinned by a module of their own, and the load program of those that speak
neither memcached's protocol nor Redis'.
"""
import re
import shutil
from pathlib import Path

from load import KEYS, VALUE_BYTES
from processes import Failed, output_of

COMMAND_SECONDS_MAX = 20
# Servers are built as they are released: without the paths of whoever builds them.
AS_RELEASED = "-trimpath"
BUILD_SECONDS_MAX = 1800
PEERS = Path(__file__).parent
LOAD_SOURCE = PEERS / "load"
# Fail-over is watched by few clients that each wait: what they see is the gap and not their own queue.
SURVIVE_CONNECTIONS = 3
SURVIVE_IN_FLIGHT = 1
# Above its own time for making what the load needs.
PREPARE_SECONDS_MAX = 90


def why_not_built(what, folder, package, binary, *flags):
    """Builds a program; the reason if it cannot be built, else None."""
    if shutil.which("go") is None:
        return f"{what} needs Go to be built: `tools/setup bench`"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", *flags, "-o", str(binary), package]
    try:
        output_of(command, BUILD_SECONDS_MAX, cwd=folder)
    except Failed as failed:
        return f"{what} cannot be built: {failed}"
    return None


def pinned(folder, module):
    """The version of a module that a go.mod names."""
    found = re.search(rf"{re.escape(module)} (v\S+)", (folder / "go.mod").read_text())
    if found is None:
        raise Failed(f"{folder.name}/go.mod does not name {module}")
    return found[1]


class LoadProgram:
    """`peers/load` for one system; `always` is what every command says besides."""

    def __init__(self, built, system, client_module, *always):
        self.binary = built / "load"
        self.system = system
        self.client_module = client_module
        self.always = always

    def why_not_built(self):
        # Without more flags, so that it shares what `go test` there has compiled.
        return why_not_built("its load program", LOAD_SOURCE, ".", self.binary)

    def version(self):
        go = output_of(["go", "env", "GOVERSION"], COMMAND_SECONDS_MAX).strip()
        return f"client {pinned(LOAD_SOURCE, self.client_module)} ({go})"

    def command(self, addresses, connections, in_flight, seconds, *more):
        return [
            str(self.binary), "--system", self.system, "--addr", ",".join(addresses), "--seconds", str(seconds),
            "--connections", str(connections), "--in-flight", str(in_flight),
            "--value-bytes", str(VALUE_BYTES), "--keys", str(KEYS), *self.always, *more,
        ]

    def prepare(self, address):
        """Makes what its load needs, without any load."""
        output_of(self.command([address], 1, 1, 1, "--prepare"), PREPARE_SECONDS_MAX)

    def commands(self, leader, addresses):
        """The fields of a Cluster that say how load is put on: on the leader, and on all while one of them dies."""

        def load_with(connections, in_flight, seconds, more):
            return self.command([leader], connections, in_flight, seconds, *more)

        def load_command(workload, seconds):
            more = ["--write-percent", str(workload.write_percent)]
            return load_with(workload.connections, workload.in_flight, seconds, more)

        def survive_command(seconds, more=()):
            return self.command(addresses, SURVIVE_CONNECTIONS, SURVIVE_IN_FLIGHT, seconds, "--survive", *more)

        return {"load_command": load_command, "survive_command": survive_command, "load_with": load_with}
