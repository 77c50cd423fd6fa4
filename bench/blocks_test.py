"""Pages in parts: what is written anew replaces what was, with its plots, and nothing else."""
import tempfile
import unittest
from pathlib import Path

from blocks import block, blocks_of, put


def page(**blocks):
    return "\n".join(["by hand ![c](plots/by-hand.svg)", *(block(name, blocks, "") for name in blocks)])


class Put(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "PAGE.md"
        self.plots = Path(folder.name) / "plots"
        self.plots.mkdir()

    def draw(self, *names):
        for name in names:
            (self.plots / f"{name}.svg").write_text(name)

    def drawn(self):
        return sorted(path.stem for path in self.plots.iterdir())

    def test_a_plot_that_is_no_longer_shown_is_removed_and_others_stay(self):
        self.draw("sweep-1", "sweep-2", "payload", "by-hand", "of-another-run")
        put(self.path, page(sweep="![1](plots/sweep-1.svg)\n![2](plots/sweep-2.svg)", payload="![p](plots/payload.svg)"))
        self.draw("sweep")
        put(self.path, page(sweep="![all](plots/sweep.svg)", payload="![p](plots/payload.svg)"))
        self.assertEqual(self.drawn(), ["by-hand", "of-another-run", "payload", "sweep"])

    def test_what_is_by_hand_is_nobody_s_to_remove(self):
        self.draw("by-hand")
        put(self.path, page(sweep="figures"))
        put(self.path, block("sweep", {"sweep": "figures"}, ""))
        self.assertEqual(self.drawn(), ["by-hand"])

    def test_a_page_is_replaced_as_a_whole(self):
        put(self.path, page(sweep="of before"))
        with self.path.open() as reading:
            put(self.path, page(sweep="of now"))
            self.assertIn("of before", reading.read())
        self.assertEqual(blocks_of(self.path), {"sweep": "of now"})

    def test_no_page_has_no_blocks(self):
        self.assertEqual(blocks_of(self.path), {})


if __name__ == "__main__":
    unittest.main()
