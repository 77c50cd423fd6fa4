"""Every figure against measurements that measure nothing: each part that a panel shows must be one that is taken."""
import contextlib
import json
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from blocks import kept_blocks
from papers import apus, box, caans, gates, page, roles, shares, waverunner
from papers.figure import distribution
from papers.over_time import Timeline
from papers.taken import Taken
from plots import SERIES_MAX

FIGURES = (*caans.FIGURES, *box.FIGURES, *waverunner.FIGURES, *apus.FIGURES)
CDF = [[100, 0.0], [200, 0.9], [400, 1.0]]
METRICS = ("operations_per_second", "mean_us", "p50_us", "p90_us", "p99_us", "leader_percent", "followers_percent",
           "client_percent", "deviation_us", "commit_mean_us", "commit_p99_us", "wait_mean_us")


class Pretended:
    """A turn that measures nothing and takes everything."""

    def __init__(self, system, taken, stack):
        self.system, self.taken, self.stack, self.round, self.seconds, self.happened = system, taken, stack, 1, 1, []
        self.place = SimpleNamespace(network=None)
        self.tools, self.folder = SimpleNamespace(load=None), None

    def start(self, durability="memory", election_timeout_ms=0):
        def note(*words, **_):
            self.happened.append(words)

        @contextlib.contextmanager
        def halted(slot):
            note("halted", slot)
            yield
            note("resumed", slot)

        return SimpleNamespace(
            members=[0, 1, 2], leader=1, processes={1: SimpleNamespace(pid=0)}, demand=note, kill=note, start_again=note, ask=note, halted=halted, as_running=lambda: None,
        )

    def start_roles(self, acceptors=3, learners=1):
        def note(*words):
            self.happened.append(words)

        figures = {"operations_per_second": 5, "p50_us": 1, "p99_us": 2, "mean_us": 1}
        note("roles", acceptors, learners)
        return SimpleNamespace(kill=note, start=note, start_servers=note, measure_servers=lambda *_: figures)

    @contextlib.contextmanager
    def for_a_while(self):
        yield self

    def say(self, _text):
        pass

    def warm_up(self, _cluster, _load):
        pass

    fill = warm_up

    def highest(self, _cluster, _load):
        return 1_000

    def has_plane_client(self):
        return True

    def record(self, _cluster, part, at, _load, *more, label=None):
        self.taken.add(1, part, label or self.system.name, at, **dict.fromkeys(METRICS, 5.0))
        if "--cdf" in more:
            self.taken.distributions.append((1, part, label or self.system.name, at, CDF))

    def record_plane_client(self, _running, part, at, _workload, label=None):
        self.record(None, part, at, None, label=label)

    def record_over_time(self, _cluster, part, _load, events, more=()):
        for _, _, do in events:
            do()
        intervals = [{"at_ms": n * 500, "operations": 10, "errors": 0, "p50_us": 1, "p99_us": 2} for n in range(1, 13)]
        marks = [(share * 6_000, what) for share, what, _ in events]
        self.taken.timelines.append((1, part, self.system.name, Timeline(intervals, marks, (marks[0][0] + 5, 20.0), {})))


def everything_taken():
    """All measurements on all their systems."""
    taken, happened = Taken(), {}
    clocks = [{"what": what, "payload_bytes": 0, "clocks": 100, "clocks_a_packet": 2.0} for what in (*gates.ROLES, gates.FORWARDED, gates.REQUEST, gates.ENTRY, gates.COMMIT)]
    clocks.append({"what": gates.AT_A_RATE, "payload_bytes": 50, "gap": 5, "clocks": 100, "clocks_p99": 101})
    steps = "\n".join(json.dumps({"what": what, "payload_bytes": 64, "ns": 300}) for what in caans.STEPS_OF)
    stands = (
        mock.patch("papers.waverunner.with_plane_client", lambda turn: None), mock.patch("papers.caans.output_of", lambda *_: steps),
        mock.patch("papers.roles.take_overs", lambda _: [(roles.BACK, 3.0)]), mock.patch("papers.gates.counted", lambda: clocks),
        mock.patch("papers.gates.resources", lambda: [(module, "xc7", [1.0] * len(gates.PARTS)) for module in gates.MODULES]),
        mock.patch("papers.shares.Sampled", lambda *_: SimpleNamespace(stop=lambda: {shares.DATA: 60.0, shares.CONTROL: 40.0})),
    )
    with contextlib.ExitStack() as patched:
        for stand in stands:
            patched.enter_context(stand)
        for measurement in {it.name: it for figure in FIGURES for it in figure.measurements}.values():
            for system in measurement.systems:
                rows, timelines = len(taken.rows), len(taken.timelines)
                with contextlib.ExitStack() as stack:
                    turn = Pretended(system, taken, stack)
                    measurement.measure(turn)
                happened[measurement.name] = turn.happened
                taken.belongs(rows, timelines, measurement.name)
    return taken, happened


class FiguresTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.taken, cls.happened = everything_taken()

    def test_all_figures_of_the_papers_are_there(self):
        wanted = {"caans-2", "caans-7", "caans-7-d", "caans-table-1", "caans-table-2", "caans-table-3", "caans-table-4", "caans-8", "waverunner-table-1", *(f"box-{n}" for n in range(9, 16)), *(f"waverunner-{n}" for n in range(5, 13)),
                  *(f"apus-{n}" for n in range(4, 7))}
        self.assertEqual({figure.name for figure in FIGURES}, wanted)

    def test_names_of_plots_are_one_figure_s(self):
        names = [panel.name for figure in FIGURES for panel in figure.panels]
        self.assertEqual(len(names), len(set(names)))
        for figure in FIGURES:
            for panel in figure.panels:
                self.assertTrue(panel.name.startswith(figure.name), panel.name)
                self.assertTrue(panel.theirs.startswith(figure.source.split(",")[0]), panel.name)

    def test_every_panel_shows_what_its_measurements_take(self):
        for figure in FIGURES:
            own = self.taken.parts_of({it.name for it in figure.measurements})
            self.assertTrue(own, figure.name)
            for panel in figure.panels:
                plot, text = panel.show(self.taken, Path("x.svg"), panel.title)
                self.assertGreater(text.count("\n"), 1, f"{panel.name} has no line: its part is never taken")
                if plot is not None:
                    drawn = [series for series in plot.series if any(y is not None for _, y in series.points)]
                    self.assertEqual(len(drawn), len(plot.series), panel.name)
                    self.assertTrue(0 < len(drawn) <= SERIES_MAX, f"{panel.name}: {len(drawn)} lines")

    def test_nothing_measured_is_shown_as_nothing(self):
        for figure in FIGURES:
            for panel in figure.panels:
                plot, text = panel.show(Taken(), Path("x.svg"), panel.title)
                self.assertEqual(text.count("\n"), 1, panel.name)
                self.assertFalse(plot is not None and any(series.points for series in plot.series), panel.name)

    def test_the_table_of_modules_is_read(self):
        rows = list(gates.resources())
        self.assertIn(("qw_siphash", "xc7"), [row[:2] for row in rows])
        self.assertTrue(all(len(figures) == len(gates.PARTS) and figures[0] > 0 for *_, figures in rows))

    def test_what_is_halted_is_resumed(self):
        self.assertEqual(self.happened["waverunner-failover"], [("halted", 1), ("resumed", 1)])

    def test_a_kill_costs_the_longest_time_that_it_may_have_begun(self):
        gaps = [{"from_unix_ms": at, "to_unix_ms": at + ms, "ms": ms} for at, ms in ((5_000, 90.0), (1_010, 40.0), (990, 12.0), (3_000, 2.0))]
        self.assertEqual([roles.waited_ms(gaps, at) for at in (1_000, 5_050, 5_100)], [40.0, 90.0, 2.0])

    def test_all_single_figures_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            self.taken.write(Path(folder))
            written = {path.stem for path in Path(folder).iterdir()}
        self.assertTrue({row.part for row in self.taken.rows} <= written)
        self.assertIn("box-election-time", written)
        self.assertIn("box-round-cdf", written)


class PageTest(unittest.TestCase):
    def test_mean_and_deviation_are_the_rounds_own(self):
        taken = Taken()
        for n, (mean, deviation) in enumerate(((151.0, 31.0), (152.0, 32.0), (20_000.0, 10_000.0))):
            taken.distributions.append((n, "part", "system", "at", CDF))
            taken.add(n, "part", "system", "at", mean_us=mean, deviation_us=deviation)
        for dense in (False, True):
            _, text = distribution("part", ("at",), dense)(taken, Path("x.svg"), "title")
            self.assertEqual([cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")][-2:], ["152", "32.0"])

    def test_what_was_not_measured_this_time_stays(self):
        old = page.compose(FIGURES, {"caans-7-a": "earlier", "about caans-7": "Measured: then."})
        blocks = {**kept_blocks(old), "about box-9": "Measured: now."}
        self.assertEqual(blocks, {"caans-7-a": "earlier", "about caans-7": "Measured: then.", "about box-9": "Measured: now."})
        self.assertIn("earlier", page.compose(FIGURES, blocks))

    def test_what_nobody_says_when_it_was_measured_is_not_shown(self):
        text = page.compose(FIGURES, {"caans-7-a": "of some day", "caans-8-a": "of then", "about caans-8": "Measured: then."})
        self.assertNotIn("of some day", text)
        self.assertIn("of then", text)

    def test_a_plot_that_could_not_be_drawn_is_not_shown(self):
        taken, _ = everything_taken()
        figure = next(figure for figure in FIGURES if figure.name == "caans-8")
        for reason in (None, "no matplotlib"):
            with mock.patch("papers.page.draw", return_value=reason):
                blocks, _ = page.measured_blocks(figure, taken, Path("folder"), "shown", "now and here")
            self.assertEqual(["(shown/caans-8-a.svg)" in blocks["caans-8-a"], "(shown/caans-8-b.svg)" in blocks["caans-8-b"]], [reason is None] * 2)
            self.assertIn("| roles in processes", blocks["caans-8-a"])

    def test_the_committed_page_is_what_its_parts_make(self):
        text = (Path(__file__).parent.parent / "PAPERS.md").read_text()
        self.assertEqual(text, page.compose(FIGURES, kept_blocks(text)))

    def test_a_figure_that_was_never_measured_says_so(self):
        text = page.compose(FIGURES, {})
        self.assertEqual(text.count("Not measured yet"), len(FIGURES))
        self.assertNotIn("<!-- measured", text)

    def test_remarks_name_what_is_missing_failed_or_few(self):
        taken = Taken()
        taken.missing["caans-coordinator", "xdp"] = "it takes root"
        taken.failures.append((2, "caans-acceptor", "socket", "it ended"))
        taken.failures.append((2, "box-round", "socket", "of another figure"))
        taken.add(1, "caans-coordinator", "planes off", 1, others_percent=50.0, failed=3)
        taken.errors += [(n, "caans-coordinator", "planes off", n, {"busy": n}) for n in (1, 2)]
        taken.errors.append((1, "of another", "planes off", 1, {"busy": 7}))
        taken.belongs(0, 0, "caans-coordinator")
        found = page.remarks(next(figure for figure in FIGURES if figure.name == "caans-8"), taken, None)
        self.assertEqual(len(found), 5, found)
        for words in ("it takes root", "it ended", "50 % of the machine", "planes off: 3 requests failed at 1, 2: busy", "fewer than"):
            self.assertTrue(any(words in remark for remark in found), words)


if __name__ == "__main__":
    unittest.main()
