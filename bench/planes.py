"""The rounds in which data planes take turns."""
import contextlib
import json
import tempfile
from pathlib import Path

import plane_load
from plane_load import SYSTEMS
from plane_report import PlaneResults
from processes import OUTSIDE, output_of, why

STEPS_SECONDS_MAX = 120
REPAIRED_SYSTEM = "xdp"


def measure_planes(tools, rounds, data, say):
    """All systems in turns, so many rounds; whatever fails is named in the results."""
    results = PlaneResults()
    results.missing = tools.missing()
    if results.missing:
        say(f"data planes are missing: {results.missing}")
        return results
    with contextlib.ExitStack() as stack:
        replicas = max(system.replicas for system in SYSTEMS)
        network = plane_load.make_network(stack, tools, replicas)
        for round_number in range(1, rounds + 1):
            try:
                results.steps += [(round_number, step) for step in measure_steps(tools)]
                say(f"planes, round {round_number}: the programs' own time")
            except OUTSIDE as failed:
                results.failures.append((round_number, "steps", why(failed)))
            for system in SYSTEMS:
                take_turn(system, network, tools, round_number, results, data, say)
    return results


def take_turn(system, network, tools, round_number, results, data, say):
    """Starts a system and measures it under each load; only this one runs meanwhile."""
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=data, prefix="quorumwire-bench-")))
            running = plane_load.start_system(stack, system, network, tools, folder)
            for workload in system.workloads:
                sample = plane_load.measure(running, workload)
                results.rows.append((round_number, system.name, workload, sample))
                say(
                    f"planes, round {round_number}, {system.name}, {workload}: p50 {sample.p50_us:.2f} µs, "
                    f"p99 {sample.p99_us:.1f} µs, {sample.operations_per_second:,.0f}/s, "
                    f"CPU {sample.cpu_us:.2f} µs/op, others {sample.others_percent:.0f} %"
                )
            if system.name == REPAIRED_SYSTEM:
                repair = plane_load.measure_repair(running, folder)
                results.repairs.append((round_number, repair))
                say(f"planes, round {round_number}, a straggler's repair: {repair}")
    except OUTSIDE as failed:
        say(f"planes, round {round_number}, {system.name} failed: {why(failed)}")
        results.failures.append((round_number, system.name, why(failed)))


def measure_steps(tools):
    lines = output_of([str(tools.load), "steps"], STEPS_SECONDS_MAX).splitlines()
    return [json.loads(line) for line in lines]
