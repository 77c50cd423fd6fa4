"""Which plane our code belongs to, as Waverunner's table 1 means it: lines, and processor time that `perf` samples.

Control: what happens once in a long while. Data: what every request passes. Application: what answers it.
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from processes import Failed, output_of, start

ROOT = Path(__file__).resolve().parents[2]
CONTROL, DATA, APPLICATION = "control plane", "data plane", "application"
# The longest beginning of a path counts. What is not named is none of a server's code.
PLANES = {
    "apps/kv/": APPLICATION, "node/src/server/kv/": APPLICATION, "node/src/server/fronts/": APPLICATION,
    "fastpath/": DATA, "dataplanes/datagrams/": DATA, "dataplanes/socket/": DATA, "dataplanes/xdp/src/": DATA,
    "dataplanes/door/": DATA, "wire/": DATA, "interfaces/": DATA,
    "control/": CONTROL, "group/": DATA, "storage/": CONTROL, "ops/": CONTROL, "node/src/": CONTROL,
    **{f"control/src/{name}.rs": DATA for name in (
        "blocks", "bundles", "codec", "dispatch", "fast_leader", "follower", "leader", "log", "log_clock", "persistence", "progress", "reads",
        "records", "replication", "requests", "stored", "wall_clock")},
    **{f"group/src/{name}.rs": CONTROL for name in ("key_agreement", "term_keys")},
    **{f"storage/src/{name}.rs": DATA for name in ("disk", "disk/folder", "log_writer", "segment", "wal")},
    **{f"node/src/server/{name}": DATA for name in (
        "answers.rs", "attention.rs", "budget.rs", "busy_poll.rs", "by_front.rs", "clients", "clock.rs", "core.rs", "driver.rs", "freeing.rs",
        "groups.rs", "in_flight.rs", "links.rs", "messages.rs", "native/", "outbox.rs", "peer_reads.rs", "plane.rs", "plane_turn.rs", "reads.rs",
        "requests.rs", "route_outcome.rs", "service.rs", "stream.rs", "take_on.rs", "take_outcome.rs")},
}
# Kinds of code that do the data plane's part where it does not run in the server.
IN_KERNEL, IN_GATES = "data plane in the kernel (C)", "data plane in gates (SystemVerilog)"
KINDS = {
    IN_KERNEL: ("dataplanes/xdp/bpf/*.[ch]", "fastpath/include/*.h"),
    IN_GATES: ("dataplanes/fpga/rtl/*.sv",),
}
GENERATED = "/generated/"
SAMPLES_A_SECOND = 1_999
SECONDS_MAX = 300
# By the kernel's entry of a system call, what the server does with it. Theirs were descriptors of the network.
CALLS = {
    "read from sockets": ("recvfrom", "recvmsg", "recvmmsg", "read", "readv", "accept4"),
    "write to sockets": ("sendto", "sendmsg", "sendmmsg", "write", "writev"),
    "wait for events, wake": ("epoll_wait", "epoll_pwait", "futex", "poll", "sched_yield", "epoll_ctl"),
    "the log's files": ("pwrite64", "pwritev", "fdatasync", "fsync", "fallocate", "pread64"),
}
# What a call's first function is called, of those that the compiler may leave.
ENTRIES = ("__x64_sys_", "__se_sys_", "__do_sys_", "__sys_", "do_")
ELSEWHERE = "else in the kernel: pages, interrupts, turns of other programs"
MEMORY = "memory: to get, free and copy it"
IN_MEMORY = re.compile(r"^(_?mi_|malloc|free$|cfree|realloc|calloc|_int_|__?mem|.*mem(cpy|move|set))")
OTHERS_CODE = "libraries"
SPENT_ON = (CONTROL, DATA, IN_KERNEL, APPLICATION, OTHERS_CODE, MEMORY, *CALLS, ELSEWHERE)


def plane_of(path):
    """Of a file of this repository; None if no server runs it."""
    found = [begin for begin in PLANES if path.startswith(begin)]
    return PLANES[max(found, key=len)] if found and not is_test(path) else None


def is_test(path):
    return any(part in path for part in ("/tests/", "/benches/", "/examples/", "__fuzz__")) or re.search(r"(^|_|/)tests?\.rs$|/build\.rs$", path)


def code_lines(text):
    """Without blank lines and those that only say something."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def tracked(*patterns):
    return output_of(["git", "-C", str(ROOT), "ls-files", *patterns], SECONDS_MAX).split()


def lines_by_plane():
    """Of code that people wrote: (plane, lines)."""
    found = collections.Counter()
    for path in tracked("*.rs", "*.c", "*.h"):
        plane = plane_of(path)
        if plane is not None and GENERATED not in path and not path.startswith("fastpath/include/"):
            found[plane] += code_lines((ROOT / path).read_text())
    for kind, patterns in KINDS.items():
        found[kind] = sum(code_lines((ROOT / path).read_text()) for path in tracked(*patterns) if GENERATED not in path)
    return [(plane, found[plane]) for plane in (CONTROL, DATA, *KINDS, APPLICATION)]


def why_no_perf():
    """Why no processor time can be sampled, or None."""
    if shutil.which("perf") is None:
        return "perf is not installed: Debian's linux-perf"
    return None if os.geteuid() == 0 else "it takes root"


class Sampled:
    """Samples one process while something else runs."""

    def __init__(self, stack, pid, folder):
        self.pid, self.file = pid, Path(folder) / "perf.data"
        self.binary = os.readlink(f"/proc/{pid}/exe")
        words = ["perf", "record", "--quiet", "--freq", str(SAMPLES_A_SECOND), "-g", "--pid", str(pid), "--output", str(self.file)]
        self.process = start(stack, words, Path(folder) / "perf.log")

    def stop(self):
        """Shares in per cent of all samples, by what they were spent on: ((plane or kind), %)."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(SECONDS_MAX)
        stacks = parse(output_of(["perf", "script", "--input", str(self.file), "--fields", "ip,sym,dso"], SECONDS_MAX))
        if not stacks:
            raise Failed(f"perf has no sample of process {self.pid}")
        places = places_of(stacks, self.binary)
        found = collections.Counter(kind_of(stack, places) for stack in stacks)
        return {kind: 100 * found[kind] / len(stacks) for kind in SPENT_ON if kind in found}


def parse(text):
    """Of each sample its frames, the innermost first: (where, symbol, whose code). `perf` says where in a program's file."""
    stacks = []
    for sample in text.split("\n\n"):
        frames = [re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line) for line in sample.splitlines()]
        frames = [(int(found[1], 16), found[2], found[3]) for found in frames if found]
        if frames:
            stacks.append(frames)
    return stacks


def kind_of(stack, places):
    """What a sample was spent on: a plane, or, with what theirs was system-related, that."""
    at, symbol, whose = stack[0]
    if whose.startswith("bpf_prog_") and "_qw_" in whose:
        return IN_KERNEL
    if whose.startswith("["):
        names = {name for _, name, _ in stack}
        for kind, calls in CALLS.items():
            if any(f"{entry}{call}" in names for call in calls for entry in ENTRIES):
                return kind
        return ELSEWHERE
    if IN_MEMORY.match(symbol):
        return MEMORY
    return places.get(at) or OTHERS_CODE


def places_of(stacks, binary):
    """Of places in the binary's file, the plane of the innermost function of ours that is there, melted in or not."""
    segments = load_segments(binary)
    found = {}
    for at, _, whose in (stack[0] for stack in stacks):
        if whose == binary:
            found[at] = next((at - begin + to for begin, to, size in segments if begin <= at < begin + size), None)
    asked = sorted({it for it in found.values() if it is not None})
    said = dict(zip(asked, source_files(binary, asked)))
    return {at: next(filter(None, map(plane_of, said.get(to, ()))), None) for at, to in found.items()}


def load_segments(binary):
    """Where in the file, where in memory, and how long."""
    text = output_of(["readelf", "--program-headers", "--wide", binary], SECONDS_MAX)
    return [(int(at, 16), int(to, 16), int(size, 16)) for at, to, size in re.findall(r"LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", text)]


def source_files(binary, addresses):
    """The files of this repository of all functions at each address, the innermost first."""
    debug = f"{binary}.debug" if os.path.exists(f"{binary}.debug") else binary
    with tempfile.NamedTemporaryFile("w+") as into:
        into.write("\n".join(f"{address:#x}" for address in addresses) + "\n")
        into.seek(0)
        done = subprocess.run(["addr2line", "--inlines", "--addresses", "--exe", debug], stdin=into, capture_output=True, text=True,
                              timeout=SECONDS_MAX, check=True)
    root = f"{ROOT}/"
    for block in re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.MULTILINE)[1:]:
        files = [line.rsplit(":", 1)[0] for line in block.splitlines()]
        yield [name.removeprefix(root) for name in files if not name.startswith("/") or name.startswith(root)]
