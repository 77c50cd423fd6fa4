"""The arithmetic of the report's part on data planes, and that a network is gone whatever happens in it."""
import contextlib
import os
import subprocess
import unittest
from pathlib import Path

import cpu
import namespaces
import plane_report
from plane_load import ONE_OUTSIDE, Look, Sample, rate
from processes import Failed

# Refused by whoever is there; without anybody, it takes too long.
CONNECT = "import socket; socket.create_connection(('10.77.0.10', 9), 5)"


def results():
    made = plane_report.PlaneResults()
    for n, (socket, xdp, echo) in enumerate([(60, 10, 5), (90, 30, 10), (40, 10, 5)], start=1):
        for name, p50 in (("socket", socket), ("xdp", xdp), ("echo", echo)):
            made.rows.append((n, name, ONE_OUTSIDE, sample(p50_us=p50)))
    return made


def sample(**figures):
    return Sample(**{**dict.fromkeys(Sample._fields, 1.0), **figures})


def line_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("| ").split("|")]


class PlaneReport(unittest.TestCase):
    def test_what_was_not_measured_is_not_a_zero(self):
        text = plane_report.markdown(results(), "now and here")
        self.assertTrue(text.startswith("Measured: now and here."))
        self.assertIn(plane_report.NOT_MEASURED, "".join(line_of(text, "| programs alone, five")))
        self.assertIn("no more than a trial: 3", text)
        missing = plane_report.PlaneResults()
        missing.missing = "no root"
        self.assertIn("Not measured: no root.", plane_report.markdown(missing, "now and here"))

    def test_a_system_without_figures_has_no_bar(self):
        ((latency, _), _) = plane_report.plots(results(), Path("plots"))
        (outside, *others) = latency.series
        self.assertEqual(outside.points, [("echo", 5), ("socket", 60), ("xdp", 10)])
        self.assertEqual([series.points for series in others], [[], [], []])

    def test_what_a_check_costs_is_the_difference(self):
        made = results()
        made.steps = [
            (n, {"what": "leader", "payload_bytes": 64, "without": without, "ns": ns + more})
            for n, more in ((1, 0), (2, 10), (3, 300)) for without, ns in (("", 500), ("tag", 300 - n), ("tag,lock", 250))
        ]
        text = plane_report.checks_table(made)
        self.assertEqual(line_of(text, "| tag"), ["tag", "202 (201–203)"])
        self.assertEqual(line_of(text, "| all of these"), ["all of these", "250 (250–250)"])
        self.assertEqual(line_of(plane_report.steps_table(made), "| leader"), ["leader", "510 (500–800)"])

    def test_a_rate_is_of_what_was_done_between(self):
        looks = [Look(at / 10, 100 * at if at < 10 else 1000 + 50 * (at - 10), [5, 3]) for at in range(21)]
        self.assertAlmostEqual(rate(looks, 0, 0.95), 1000)
        self.assertAlmostEqual(rate(looks, 1.0, 2.0), 500)
        self.assertEqual(looks[0].missing, 2)
        with self.assertRaises(Failed):
            rate(looks, 3, 4)


class Others(unittest.TestCase):
    def test_what_belongs_to_us_is_not_others(self):
        child = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        try:
            while sum(cpu.of_process(child.pid)) < 0.05:
                pass
            # In this order, so that what others use meanwhile does not hide what is ours.
            of_others = cpu.of_all_but(ours=os.getpid())
            of_all = cpu.of_all_but(ours=-1)
            self.assertGreaterEqual(of_all - of_others, 0.05)
        finally:
            child.kill()
            child.wait()


class Namespaces(unittest.TestCase):
    def setUp(self):
        self.assertEqual(os.geteuid(), 0, "network namespaces take root, as `make test` does")

    def test_a_network_is_gone_after_a_failure(self):
        names = []
        with contextlib.suppress(Failed), contextlib.ExitStack() as stack:
            network = namespaces.Network(stack, 1)
            names = [name for name in os.listdir(namespaces.FOLDER) if name.startswith(network.name)]
            asks = network.command_in(namespaces.CLIENT_HOST, ["python3", "-c", CONNECT])
            self.assertIn("ConnectionRefused", subprocess.run(asks, capture_output=True, text=True).stderr)
            raise Failed("as if a server had ended")
        self.assertEqual(len(names), 3)
        self.assertFalse(set(names) & set(os.listdir(namespaces.FOLDER)))


if __name__ == "__main__":
    unittest.main()
