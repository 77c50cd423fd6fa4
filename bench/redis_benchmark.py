"""What Redis' own `redis-benchmark` says of all that speak its protocol."""
import csv
import io
import shutil
from typing import NamedTuple

from processes import Failed, output_of

TESTS = ["set", "get", "incr", "mset"]
CONNECTIONS = 50
KEYS = 1000
# Requests of one test, by how many each connection has in flight: some seconds for all of them.
REQUESTS = {1: 50_000, 16: 300_000}
SECONDS_MAX = 120


class Line(NamedTuple):
    """One of its tests in one round."""

    round: int
    system: str
    in_flight: int
    test: str
    requests_per_second: float
    p50_us: float
    p99_us: float


def is_missing():
    return shutil.which("redis-benchmark") is None


def measure(address, system, round_number):
    """All tests, without pipelines and with them."""
    return [
        line
        for in_flight, requests in REQUESTS.items()
        for line in lines_of(run(address, in_flight, requests), round_number, system, in_flight)
    ]


def run(address, in_flight, requests):
    host, port = address.rsplit(":", 1)
    return output_of(
        ["redis-benchmark", "-h", host, "-p", port, "--csv", "-t", ",".join(TESTS), "-P", str(in_flight),
         "-c", str(CONNECTIONS), "-n", str(requests), "-r", str(KEYS)],
        SECONDS_MAX,
    )


def lines_of(text, round_number, system, in_flight):
    # Before the heading it may warn.
    begin = text.find('"test"')
    rows = list(csv.DictReader(io.StringIO(text[begin:]))) if begin >= 0 else []
    if len(rows) != len(TESTS):
        raise Failed(f"redis-benchmark has not run {len(TESTS)} tests: {text[-500:]!r}")
    return [
        Line(round_number, system, in_flight, row["test"], float(row["rps"]),
             float(row["p50_latency_ms"]) * 1000, float(row["p99_latency_ms"]) * 1000)
        for row in rows
    ]


def write_csv(lines, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Line._fields)
        writer.writerows(lines)
