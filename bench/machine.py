"""What the machine and this checkout are, for the report. Nothing that names a machine or a person."""
import os
import platform
import re
from pathlib import Path

from processes import Failed, output_of

COMMAND_SECONDS_MAX = 20
# What measuring itself writes is no change to what was measured.
WRITTEN = ("bench/RESULTS.md", "bench/PAPERS.md", "bench/plots")


def first_match(pattern, path, otherwise):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return otherwise
    return found.group(1).strip() if found else otherwise


def describe():
    """Lines of text: name and fact."""
    kib = int(first_match(r"^MemTotal:\s+(\d+) kB", "/proc/meminfo", "0"))
    virtual = "virtual" if first_match(r"^flags\s*:.*\b(hypervisor)\b", "/proc/cpuinfo", "") else "physical"
    model = first_match(r"^model name\s*:\s*(.*)$", "/proc/cpuinfo", platform.machine())
    return {
        "processor": f"{model}, {virtual}",
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{kib / 2**20:.0f} GiB",
        "system": first_match(r'^PRETTY_NAME="(.*)"$', "/etc/os-release", "unknown"),
        "kernel": first_match(r"^([\d.]+)", "/proc/sys/kernel/osrelease", "unknown"),
        "nice": str(os.nice(0)),
    }


def filesystem(path):
    """The kind of file system a path is on."""
    path = str(Path(path).resolve())
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    over = [(point, kind) for point, kind in mounts if path == point or path.startswith(point.rstrip("/") + "/")]
    return max(over, key=lambda mount: len(mount[0]))[1] if over else "unknown"


def commit(root):
    """The commit this checkout is at, and whether it has changes."""
    try:
        name = git(root, "rev-parse", "--short=12", "HEAD")
        changed = git(root, "status", "--porcelain", "--", ".", *(f":!{path}" for path in WRITTEN))
    except Failed:
        return "unknown"
    return name + (" with changes" if changed else "")


def git(root, *arguments):
    """What git says of this checkout, not of the repository that a hook of git runs for."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return output_of(["git", "-C", str(root), *arguments], COMMAND_SECONDS_MAX, env=alone).strip()
