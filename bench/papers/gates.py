"""What gates need: clocks, counted in simulation, and a part of a chip, from synthesis (dataplanes/fpga).

Nothing here depends on how fast this machine is, so one round has it all.
"""
import json
import os
import re
from pathlib import Path

from papers.cluster import System
from papers.figure import Measurement
from processes import output_of

ROOT = Path(__file__).resolve().parents[2]
HDL = ROOT / "target/hdl"
FIGURES = HDL / "build/figures.jsonl"
RESOURCES = ROOT / "dataplanes/fpga/resources.md"
# The tests that count: of the other ones the same folder has many, which take minutes.
COUNTING = "smallest_packets|waits_for_nothing"
SECONDS_MAX = 1_200

SIMULATED = System("gates, simulated", "gates", "the cores of dataplanes/fpga, made into a program by Verilator")
MHZ_CAANS = (200, 250, 300)
MHZ = 250
ROLES = {"coordinator, a packet to what it sends": "coordinator", "acceptor, a packet to what it sends": "acceptor"}
FORWARDED = "a frame that is the host's"
REQUEST, ENTRY, COMMIT = "leader, a request to its first entry", "follower, an entry to its acknowledgement", "leader, an acknowledgement to the commit"
AT_A_RATE = "leader, requests at a rate"
# Of a chip, as the table of resources has them.
PARTS = ("lut", "lutram", "ff", "bram", "uram", "dsp")
MODULES = {"qw_box": "core of the Paxos roles", "qw_core": "core of a replica"}


def why_no_tools():
    """Why nothing can be counted here, or None."""
    return None if (HDL / "tools/bin/python3").exists() else "its tools are not installed: `tools/setup hdl`"


def counted():
    """What the cores' tests count, newest last."""
    before = FIGURES.stat().st_size if FIGURES.exists() else 0
    output_of(["make", "--silent", "-C", str(ROOT), "hdl-check", "ARGS=core box"], SECONDS_MAX, env={**os.environ, "COCOTB_TEST_FILTER": COUNTING})
    with FIGURES.open() as file:
        file.seek(before)
        return [json.loads(line) for line in file]


def us(clocks, mhz=MHZ):
    return clocks / mhz


def measure_clocks(turn):
    found = counted()
    for add in (add_roles, add_computed, add_rates, add_sizes):
        for part, system, at, figures in add(found):
            turn.taken.add(turn.round, part, system, at, **figures)


def add_roles(found):
    """CAANS, table 1."""
    wanted = {**ROLES, FORWARDED: "other traffic, to the host"}
    for each in found:
        if each["what"] in wanted:
            at_200, at_250 = (us(each["clocks"], mhz) for mhz in (200, 250))
            yield "gates-roles", wanted[each["what"]], each["payload_bytes"], {"clocks": each["clocks"], "us_200": at_200, "us_250": at_250}


def add_computed(found):
    """CAANS, table 2: the smallest packets."""
    for each in found:
        if each["what"] in ROLES and each["payload_bytes"] == 0:
            for mhz in MHZ_CAANS:
                computed = {"us": us(each["clocks"], mhz), "packets_m": mhz / each["clocks_a_packet"]}
                yield "gates-computed", ROLES[each["what"]], f"{mhz} MHz", computed


def add_rates(found):
    """Waverunner, figure 5: the leader's part."""
    for each in sorted((it for it in found if it["what"] == AT_A_RATE), key=lambda it: -it["gap"]):
        figures = {"requests_m": MHZ / each["gap"], "p50_us": us(each["clocks"]), "p99_us": us(each["clocks_p99"])}
        yield "gates-rates", SIMULATED.name, each["gap"], figures


def add_sizes(found):
    """Waverunner, figure 7: from a request to its commit, each part alone."""
    clocks = {(each["what"], each["payload_bytes"]): each["clocks"] for each in found if "gap" not in each}
    for what, size in clocks:
        if what == REQUEST:
            parts = clocks[REQUEST, size], clocks[ENTRY, size], clocks[COMMIT, 0]
            named = dict(zip(("leader_us", "follower_us", "commit_us"), map(us, parts)))
            yield "gates-sizes", SIMULATED.name, size, {**named, "whole_us": us(sum(parts))}


def resources():
    """The committed table, which `make hdl ARGS=--full` compares with the modules: (module, family, its figures)."""
    for line in RESOURCES.read_text().splitlines():
        if found := re.match(r"\| (qw_\w+) \| (xc\w+) \|(.*)\|$", line):
            yield found[1], found[2], [float(cell.replace(",", "")) for cell in found[3].split("|")]


def measure_resources(turn):
    for module, family, figures in resources():
        if module in MODULES:
            named = dict(zip(PARTS, figures, strict=True))
            turn.taken.add(turn.round, "gates-resources", MODULES[module], family, **named)


CLOCKS = Measurement("gates-clocks", (SIMULATED,), measure_clocks, missing=why_no_tools, once=True)
TAKEN_OF_A_CHIP = Measurement("gates-resources", (SIMULATED,), measure_resources, once=True)
DIFFERS = ("Counted in simulation, and computed for the clock rates: no core was ever on a board, and whether one reaches these rates on a chip is "
           "not known.")
