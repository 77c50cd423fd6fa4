import tempfile
import unittest
from pathlib import Path

import plots
from plots import Plot, Series


class PlotsTest(unittest.TestCase):
    def test_what_has_no_figure_is_left_out(self):
        series = [Series("a", [(1, 2.0), (2, None)]), Series("missing", [(1, None)])]
        described = plots.as_json(Plot(Path("x.svg"), "t", "x", "y", series))
        self.assertEqual(described["series"], [{"name": "a", "points": [[1, 2.0]]}])

    def test_what_has_nothing_to_show_is_not_shown(self):
        empty = Plot(Path("never/drawn.svg"), "t", "x", "y", [Series("missing", [])])
        self.assertEqual(plots.draw_and_show([(empty, "a caption")], Path("never")), [])
        self.assertFalse(Path("never").exists())

    def test_too_many_lines_are_refused(self):
        series = [Series(str(n), [(1, 1.0)]) for n in range(plots.SERIES_MAX + 1)]
        with self.assertRaises(ValueError):
            plots.as_json(Plot(Path("x.svg"), "t", "x", "y", series))

    def test_a_plot_is_drawn_and_drawn_again_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.svg"
            plot = Plot(path, "time & place", "x", "y", [Series("one", [(1, 2.0), (10, 3.0)])], log_x=True)
            self.assertIsNone(plots.draw([plot]), "`tools/setup` installs what draws")
            drawn = path.read_text()
            self.assertIn("time &amp; place", drawn)
            self.assertIsNone(plots.draw([plot]))
            self.assertEqual(path.read_text(), drawn)


if __name__ == "__main__":
    unittest.main()
