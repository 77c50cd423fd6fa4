"""RESULTS.md: its parts are replaced one by one, and what was not measured says so."""
import re
import tempfile
import unittest
from pathlib import Path

from blocks import kept_blocks
from profiles import CLOSED_LOOPS, EXPERIMENTS, PLANES
from results_page import ResultsPage, compose

HERE = Path(__file__).parent


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "RESULTS.md"

    def test_what_was_never_measured_says_so(self):
        text = compose({}, "## By hand")
        for part in EXPERIMENTS:
            self.assertIn(f"Not measured yet: `bench/run --only {part}`.", text)
        self.assertEqual(text.count("Not measured yet: `bench/run --only side-by-side`."), 2)  # the part and its aims
        self.assertIn("Not measured yet: `bench/run --only planes`.", text)
        self.assertEqual(text.count("Not measured yet: `bench/run`."), 1)  # aims that take both
        self.assertTrue(text.endswith("\n\n## By hand\n"))

    def test_a_part_is_written_when_it_is_done_and_the_others_stay(self):
        page = ResultsPage(self.path, True, "by hand")
        page.put(CLOSED_LOOPS, "loops", "aims of loops")
        page.put("failover", "of before", "gaps of before")
        self.assertIn("of before", self.path.read_text())
        later = ResultsPage(self.path, True, "other words")
        later.put("failover", "of now", "gaps of now")
        text = self.path.read_text()
        for words in ("loops", "aims of loops", "of now", "gaps of now", "other words"):
            self.assertIn(words, text)
        for words in ("of before", "by hand"):
            self.assertNotIn(words, text)

    def test_what_another_run_has_written_meanwhile_stays(self):
        one, other = (ResultsPage(self.path, True, "") for _ in range(2))
        one.put("sweep", "of one", "")
        other.put("payload", "of the other", "")
        one.put("mixed", "of one, later", "")
        for words in ("of one\n", "of the other", "of one, later"):
            self.assertIn(words, self.path.read_text())
        self.assertEqual([path.name for path in self.path.parent.iterdir()], [self.path.name])

    def test_closed_loops_and_planes_are_replaced_apart(self):
        page = ResultsPage(self.path, True, "")
        page.put(CLOSED_LOOPS, "loops of before", "")
        page.put(PLANES, "planes of before", "")
        page.put_aims("planes beside closed loops", "ratios of before")
        page.put(PLANES, "planes of now", "")
        for words in ("loops of before", "planes of now", "ratios of before"):
            self.assertIn(words, self.path.read_text())
        page.put(CLOSED_LOOPS, "loops of now", "")
        for words in ("loops of now", "planes of now", "ratios of before"):
            self.assertIn(words, self.path.read_text())

    def test_a_part_without_figures_replaces_none_that_has_some(self):
        page = ResultsPage(self.path, True, "")
        page.put("sweep", "nobody took part", "", has_figures=False)
        self.assertIn("nobody took part", page.text())
        page.put("sweep", "figures", "")
        page.put("sweep", "nobody took part", "", has_figures=False)
        self.assertIn("figures", page.text())
        self.assertNotIn("nobody", page.text())

    def test_a_trial_begins_with_an_empty_page(self):
        ResultsPage(self.path, False, "").put("sweep", "of before", "")
        ResultsPage(self.path, False, "").put("payload", "of now", "")
        self.assertNotIn("of before", self.path.read_text())


class Committed(unittest.TestCase):
    def setUp(self):
        self.text = (HERE / "RESULTS.md").read_text()

    def test_the_page_is_what_its_parts_make(self):
        self.assertEqual(self.text, compose(kept_blocks(self.text), (HERE / "where-the-time-goes.md").read_text()))

    def test_every_heading_is_one_level_below_its_parent(self):
        levels = [len(marks) for marks in re.findall("^(#+) ", self.text, re.MULTILINE)]
        self.assertEqual((levels[0], levels.count(1)), (1, 1))
        for above, below in zip(levels, levels[1:]):
            self.assertLessEqual(below, above + 1)

    def test_parts_have_no_headings_beside_the_page_s_own(self):
        for name, inside in kept_blocks(self.text).items():
            self.assertNotRegex(inside, re.compile("^##? ", re.MULTILINE), name)


if __name__ == "__main__":
    unittest.main()
