"""Where what was measured is written: parts apart from each other, trials apart from RESULTS.md, and never nothing over something."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import report
from experiments import ALL
from experiments.found import Found
from load import LATENCY
from load import Sample as LoadSample
from plane_load import ONE_OUTSIDE
from plane_load import Sample as PlaneSample
from plane_report import PlaneResults
from writing import Writing

BESIDE = "Measured, both in one run: "


class Peer:
    name, note, workloads = "redis, WAIT 1", "a peer", [LATENCY]


def loops(measured=True):
    made = report.Results([Peer], Peer.workloads)
    if measured:
        made.add(1, Peer.name, LATENCY, LoadSample(**dict.fromkeys(LoadSample._fields, 1.0)))
    return made


def planes(measured=True):
    made = PlaneResults()
    if measured:
        made.rows.append((1, "xdp", ONE_OUTSIDE, PlaneSample(**dict.fromkeys(PlaneSample._fields, 1.0))))
    else:
        made.missing = "no root"
    return made


def found():
    made = Found()
    for experiment in ALL:
        made.add(experiment.name, 1, "a", ("healthy", "1×1"), {"p99_us": 1.0})
    return made


class WritingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bench, self.said = Path(folder.name), []

    def writing(self, apart=None, about="now"):
        return Writing(self.bench, apart, about, self.said.append)

    def page(self):
        return (self.bench / "RESULTS.md").read_text()

    def test_closed_loops_and_planes_are_compared_in_one_run_only(self):
        first = self.writing(about="at first")
        first.closed_loops(loops(), "loops at first", {})
        first.planes(planes(), "planes at first")
        first.planes_beside(loops(), planes())
        self.assertIn(f"{BESIDE}at first.", self.page())
        second = self.writing(about="later")
        second.planes(planes(), "planes later")
        second.planes_beside(loops(measured=False), planes())
        for words in ("loops at first", "planes later", f"{BESIDE}at first."):
            self.assertIn(words, self.page())

    def test_nothing_replaces_no_figures(self):
        writing = self.writing()
        writing.closed_loops(loops(), "loops at first", {})
        writing.planes(planes(), "planes at first")
        kept = self.page(), *((self.bench / "out" / name).read_text() for name in ("results.csv", "planes.csv"))
        writing.closed_loops(loops(measured=False), "loops later", {})
        writing.planes(planes(measured=False), "planes later")
        writing.planes_beside(loops(), planes(measured=False))
        self.assertEqual(kept, (self.page(), *((self.bench / "out" / name).read_text() for name in ("results.csv", "planes.csv"))))

    def test_a_trial_leaves_alone_what_others_wrote(self):
        def write_all(writing):
            writing.closed_loops(loops(), "", {})
            writing.planes(planes(), "")
            writing.experiment(ALL[-1], found(), "")

        def files():
            return {path: path.stat().st_mtime_ns for path in self.bench.rglob("*") if path.is_file()}

        write_all(self.writing())
        before = files()
        for apart in ("trial", "short"):
            write_all(self.writing(apart))
        after = files()
        self.assertEqual({path: after[path] for path in before}, before)
        added = {path.relative_to(self.bench).parts[:2] for path in set(after) - set(before)}
        self.assertEqual(added, {("out", "trial"), ("out", "short")})

    def test_what_cannot_be_written_does_not_stop_the_rest(self):
        writing = self.writing()
        one, other = ALL[-2:]
        with mock.patch("experiments.report.write_csv", side_effect=OSError("no space is left")):
            writing.experiment(one, found(), "")
        writing.experiment(other, found(), "of the other")
        self.assertEqual(writing.not_written, [one.name])
        self.assertIn("no space is left", "".join(self.said))
        self.assertIn("of the other", self.page())


if __name__ == "__main__":
    unittest.main()
