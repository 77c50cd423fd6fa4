"""Where a run of the papers' figures keeps data and writes, without measuring anything."""
import runpy
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from papers import box, caans
from papers.cluster import System
from papers.places import Loopback

RUN = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("run"))))
DISK = caans.MEASURE_LEVELDB
ON_DISK = next(figure for figure in caans.FIGURES if DISK in figure.measurements)


def filesystem(path):
    return "tmpfs" if path == RUN.DATA else "ext4"


class Files(unittest.TestCase):
    def measured(self, **asked):
        """What happened, and files below a folder that stands for `bench`, when nothing is measured."""
        happened, said = [], lambda what, result: lambda *_: (happened.append(what), result)[1]
        with tempfile.TemporaryDirectory() as folder:
            bench = Path(folder) / "bench"
            out = bench / "out" / "papers"
            stands = {
                "BENCH": bench, "OUT": out, "TRIAL": out / "trial", "PLOTS": bench / "plots" / "papers", "PAGE": bench / "PAPERS.md",
                "refuse_wrong_places": said("refuse", None), "find_place": said("place", (Loopback(), None)),
                "facts_of": said("facts", "now and here"), "look_for": said("look", [(box.ROUNDS, box.ROUNDS.systems[0])]),
                "take_turn": lambda _, turn: (happened.append("turn"), turn.taken.add(1, "part", "a", 1, p50_us=1.0),
                                              turn.taken.belongs(0, 0, box.ROUNDS.name)), "say": lambda _: None,
            }
            with mock.patch.dict(RUN.measure.__globals__, stands), mock.patch("papers.page.draw", return_value=None):
                usual = {"figures": ["box-9"], "all": False, "rounds": None, "seconds": None, "binary": None}
                RUN.measure(SimpleNamespace(**{**usual, **asked}))
            return happened, {str(path.relative_to(bench)) for path in bench.rglob("*") if path.is_file()}

    def test_a_trial_keeps_to_a_folder_of_its_own(self):
        self.assertEqual(self.measured()[1], {"out/papers/part.csv", "PAPERS.md"})
        self.assertEqual(self.measured(rounds=1)[1], {"out/papers/trial/part.csv", "out/papers/trial/trial.md"})

    def test_the_facts_are_those_of_the_beginning(self):
        happened, _ = self.measured(rounds=1)
        self.assertLess(happened.index("facts"), happened.index("look"))
        self.assertIn("turn", happened)


class Data(unittest.TestCase):
    def why_missing(self, measurement):
        return RUN.why_missing(measurement, System("any", "none", ""), Loopback(), None, None, " ".join([*measurement.needs, ""]))

    def test_what_is_not_built_is_named(self):
        with mock.patch("papers.roles.LEVELDB", Path("/nowhere")):
            self.assertEqual(self.why_missing(caans.MEASURE_ECHO), "apps/leveldb is not built: `make leveldb`")

    @mock.patch("os.access", lambda *_: True)
    def test_what_is_to_be_on_a_disk_is_refused_on_tmpfs(self):
        with mock.patch("machine.filesystem", return_value="tmpfs"):
            self.assertEqual(self.why_missing(DISK), "its log is to be on a disk, and bench/out/papers is on tmpfs")
            self.assertIsNone(self.why_missing(caans.MEASURE_LANES))
        with mock.patch("machine.filesystem", filesystem):
            self.assertIsNone(self.why_missing(DISK))

    def test_a_figure_says_what_its_data_are_on(self):
        with mock.patch("machine.filesystem", filesystem):
            self.assertEqual([RUN.filesystems_of(figure) for figure in (ON_DISK, caans.FIGURES[0])], ["ext4", "tmpfs"])


if __name__ == "__main__":
    unittest.main()
