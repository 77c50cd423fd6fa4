"""The arithmetic of the report: medians, ratios, and that what was not measured is never a zero."""
import unittest
from pathlib import Path

import cpu
import redis_benchmark
import report
from load import LATENCY, PIPELINED, Sample, Server, sample_of
from plots import shown
from processes import Failed


class Peer:
    note = "a peer"
    workloads = [LATENCY, PIPELINED]

    def __init__(self, name):
        self.name = name


def sample(**figures):
    return Sample(**{**dict.fromkeys(Sample._fields, 1.0), "failed_requests": 0, **figures})


def results():
    made = report.Results([Peer("quorumwire sync"), Peer("etcd"), Peer("memcached")], [LATENCY, PIPELINED])
    for n, (ours, theirs) in enumerate([(10, 100), (30, 100), (20, 50), (15, 300), (90, 100)], start=1):
        made.add(n, "quorumwire sync", LATENCY, sample(p50_us=ours))
        made.add(n, "etcd", LATENCY, sample(p50_us=theirs))
    return made


class Report(unittest.TestCase):
    def test_what_was_not_measured_is_not_a_zero(self):
        made = results()
        made.missing["memcached"] = "not installed"
        made.failures.append((1, "etcd", "no leader"))
        text = report.figures_table(made, LATENCY)
        (line,) = [line for line in text.splitlines() if "memcached" in line]
        self.assertIn("missing", line)
        self.assertNotIn("0", line)
        self.assertIn("| failed", report.figures_table(made, PIPELINED))
        self.assertIn("memcached is missing: not installed", report.closed_loops(made, "now and here", {}))

    def test_its_headings_are_below_the_page_s(self):
        headings = [line for line in report.closed_loops(results(), "now and here", {}).splitlines() if line.startswith("#")]
        self.assertEqual(headings, ["### 1×1: latency", "### 8×64: pipelined", "### Remarks on closed loops", "### Systems"])

    def test_a_figure_that_one_load_program_does_not_print_is_not_a_zero(self):
        made = results()
        made.rows = [(n, name, load, it._replace(p999_us=None)) for n, name, load, it in made.rows]
        (line,) = [line for line in report.figures_table(made, LATENCY).splitlines() if "sync" in line]
        self.assertIn(report.NOT_MEASURED, line)

    def test_a_system_without_figures_has_no_bar(self):
        ((latency, caption), *_) = report.plots(results(), Path("plots"))
        self.assertEqual(latency.series[0].points, [("quorumwire sync", 20), ("etcd", 100)])
        text = report.closed_loops(results(), "now and here", {}, [shown(latency.path.name, caption)])
        self.assertIn(f"](plots/{latency.path.name})", text)

    def test_others_and_few_rounds_are_remarked(self):
        made = results()
        made.add(1, "memcached", LATENCY, sample(others_percent=11.0))
        text = "\n".join(report.remarks(made))
        self.assertIn("when it is quiet: memcached 1×1", text)
        self.assertIn("a trial: memcached 1×1", text)
        self.assertNotIn("etcd", text)


class RedisBenchmark(unittest.TestCase):
    SAID = 'WARNING: Could not fetch server CONFIG\n' \
        '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"\n' + \
        "".join(f'"{test}","{rps}.50","0.2","0.1","0.250","0.4","0.5","1.0"\n' for test, rps in
                (("SET", 100), ("GET", 200), ("INCR", 300), ("MSET (10 keys)", 400)))

    def test_each_line_is_read_and_units_are_microseconds(self):
        lines = redis_benchmark.lines_of(self.SAID, 1, "ours", 16)
        self.assertEqual([line.test for line in lines], ["SET", "GET", "INCR", "MSET (10 keys)"])
        self.assertEqual((lines[0].requests_per_second, lines[0].p50_us, lines[0].p99_us), (100.5, 250, 500))

    def test_tests_that_did_not_run_are_a_failure(self):
        self.assertRaises(Failed, redis_benchmark.lines_of, self.SAID.split('"GET"')[0], 1, "ours", 1)
        self.assertRaises(Failed, redis_benchmark.lines_of, "", 1, "ours", 1)

    def test_the_report_shows_medians_of_the_rounds(self):
        made = results()
        self.assertNotIn("redis-benchmark", report.closed_loops(made, "now and here", {}))
        for n in (1, 2, 3):
            made.of_redis_benchmark += redis_benchmark.lines_of(self.SAID.replace("100.50", f"{n}00.50"), n, "ours", 1)
        text = report.closed_loops(made, "now and here", {})
        self.assertIn("## redis-benchmark", text)
        (line,) = [line for line in text.splitlines() if line.startswith("| SET")]
        self.assertIn(report.spread([100.5, 200.5, 300.5]), line)
        self.assertIn("50×1", line)


class Cpu(unittest.TestCase):
    def test_a_process_is_read_behind_any_name(self):
        text = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 700 50 9 9 20 0 1 0 5 6 7"
        used = cpu.parse_process(text)
        self.assertEqual((used.user, used.system), (700 / cpu.TICKS_PER_SECOND, 50 / cpu.TICKS_PER_SECOND))

    def test_a_machine_is_busy_with_all_but_idling_and_waiting(self):
        machine = cpu.parse_machine("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 0")
        self.assertAlmostEqual(machine.busy * cpu.TICKS_PER_SECOND, 63)
        self.assertAlmostEqual(machine.idle * cpu.TICKS_PER_SECOND, 3000)
        self.assertAlmostEqual(machine.softirq * cpu.TICKS_PER_SECOND, 16)

    def test_what_is_not_understood_is_refused(self):
        self.assertRaises(ValueError, cpu.parse_machine, "intr 1 2 3")

    def test_cpu_is_shared_out_per_operation_and_the_rest_is_others(self):
        printed = {
            "operations": 1000,
            "operations_per_second": 500.0,
            "latency_us": {"p50": 1.0, "p99": 2.0},
            "client_cpu_us_per_operation": 3.0,
            "errors": {"busy": 2, "lost": 1},
        }
        used = [
            (Server(1, True), cpu.Used(0.5, 0.125)), (Server(2, True, is_program=True), cpu.Used(0.0, 0.125)),
            (Server(3, False), cpu.Used(0.125, 0.0)), (Server(4, False, is_program=True), cpu.Used(0.125, 0.25)),
        ]
        made = sample_of(printed, used, 0.5, cpu.Machine(2.75, 1.25, 0.5))
        self.assertEqual(made.softirq_us, 500)
        self.assertEqual((made.p90_us, made.p999_us), (None, None))
        self.assertEqual(made.server_cpu_us, 1250)
        self.assertEqual((made.leader_user_us, made.leader_system_us), (500, 250))
        self.assertEqual((made.leader_us, made.program_us), (750, 125))
        self.assertEqual((made.followers_user_us, made.followers_system_us), (250, 250))
        self.assertEqual(made.others_percent, 25)
        self.assertEqual(made.idle_percent, 31.25)
        self.assertEqual(made.failed_requests, 3)

    def test_a_run_without_success_is_a_failure(self):
        self.assertRaises(Failed, sample_of, {"operations": 0, "errors": {"busy": 2}}, [], 0, cpu.Machine(1, 1))


if __name__ == "__main__":
    unittest.main()
