"""Makes the extension module `quorumwire._native`: the functions of the installed quorumwire.h, and the library's
archive, so that a wheel needs no other library.

The declarations are taken from the header. So they are written once, and the C compiler compares each with what
cffi makes of it. pkg-config says where the header and the archive are: PKG_CONFIG_PATH, unless the library is
installed for everybody.
"""

import re
import subprocess
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent


def installed(*what: str) -> str:
    """What pkg-config says of the installed library."""
    command = ["pkg-config", *what, "quorumwire"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def declarations(header: str) -> str:
    """A header as cffi takes it: without comments, what is for C++, and the numbers, which the compiler knows."""
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    code = re.sub(r"#ifdef __cplusplus.*?#endif", "", code, flags=re.DOTALL)
    lines = []
    for line in code.splitlines():
        number = re.match(r"#define (QUORUMWIRE_\w+) +\S", line)
        if number:
            lines.append(f"#define {number[1]} ...")
        elif not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def native() -> FFI:
    """The module, to be compiled."""
    include = installed("--variable=includedir")
    header = (Path(include) / "quorumwire.h").read_text()
    events = (HERE / "events.h").read_text()
    made = FFI()
    made.cdef(declarations(header) + declarations(events))
    made.set_source(
        "quorumwire._native",
        '#include "events.h"',
        sources=["events.c"],
        include_dirs=[include, str(HERE)],
        extra_objects=[installed("--variable=libdir") + "/libquorumwire.a"],
        extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter"],
        # Nothing of the library is seen from outside, and what is not called is left out.
        extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,--strip-debug", *installed_libraries()],
        py_limited_api=True,
    )
    return made


def installed_libraries() -> "list[str]":
    """What the archive needs beside itself."""
    words = installed("--static", "--libs-only-l").split()
    return [word for word in words if word != "-lquorumwire"]


builder = native()
