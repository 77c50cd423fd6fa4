"""The tools that `tools/setup hdl` installs, and a program run with them."""
import os
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "target/hdl/tools"


def run_with_tools():
    """Begins the program again with their Python, unless it runs with it: what it calls is found then, too."""
    if os.environ.get("QUORUMWIRE_HDL_TOOLS") == str(TOOLS):
        return
    found = list(TOOLS.glob("lib/python3*/site-packages/verilator"))
    if not found:
        sys.exit(f"hdl: there are no tools in {TOOLS}: run `tools/setup hdl`")
    os.environ["QUORUMWIRE_HDL_TOOLS"] = str(TOOLS)
    os.environ["VERILATOR_ROOT"] = str(found[0])
    os.environ["PATH"] = f"{TOOLS}/bin:{found[0]}/bin:{os.environ['PATH']}"
    python = TOOLS / "bin/python3"
    os.execv(python, [python, *sys.argv])
