"""Where a run writes what it measured: part by part, when it is done. Measures nothing."""
import contextlib

import aims
import plane_report
import redis_benchmark
import report
from experiments import report as experiments_report
from experiments.found import Found
from plots import draw_and_show
from profiles import CLOSED_LOOPS, PLANES
from results_page import ResultsPage


class Writing:
    """One run's: RESULTS.md and its plots, and CSV files in out/; or, if it is `apart`, all in the folder of that name in out/.

    `about` is what the report says of commit and machine, as they were when the run began. A part that cannot be written is
    noted, so that what follows is measured all the same.
    """

    def __init__(self, bench, apart, about, say):
        out = bench / "out"
        self.folder = out / apart if apart else out
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plots = (self.folder if apart else bench) / "plots"
        by_hand = bench / "where-the-time-goes.md"
        page = self.folder / f"{apart}.md" if apart else bench / "RESULTS.md"
        self.page = ResultsPage(page, not apart, by_hand.read_text() if by_hand.exists() else "")
        self.about = about
        self.say = say
        self.not_written = []

    @contextlib.contextmanager
    def part(self, name):
        """What is written of it."""
        try:
            yield
        except OSError as error:
            self.not_written.append(name)
            self.say(f"{name} could not be written: {error}")

    def closed_loops(self, results, facts, versions):
        with self.part(CLOSED_LOOPS):
            if results.rows:
                report.write_csv(results, self.folder / "results.csv")
            if results.of_redis_benchmark:
                redis_benchmark.write_csv(results.of_redis_benchmark, self.folder / "redis-benchmark.csv")
            table = aims.aims_table(CLOSED_LOOPS, results, Found(), None)
            shown = draw_and_show(report.plots(results, self.plots), self.plots)
            self.page.put(CLOSED_LOOPS, report.closed_loops(results, facts, versions, shown), table, bool(results.rows))

    def planes(self, planes, facts):
        with self.part(PLANES):
            if planes.rows:
                plane_report.write_csv(planes, self.folder / "planes.csv")
            shown = draw_and_show(plane_report.plots(planes, self.plots), self.plots)
            self.page.put(PLANES, plane_report.markdown(planes, facts, shown), aims.aims_table(PLANES, None, None, planes), bool(planes.rows))

    def planes_beside(self, results, planes):
        """What compares data planes with the closed loops of the same run; without both, that of an earlier one stays."""
        if results.rows and planes.rows:
            with self.part(aims.PLANES_BESIDE):
                table = aims.aims_table(aims.PLANES_BESIDE, results, Found(), planes)
                self.page.put_aims(aims.PLANES_BESIDE, f"Measured, both in one run: {self.about}.\n\n{table}")

    def experiment(self, experiment, found, facts):
        name = experiment.name
        with self.part(name):
            experiments_report.draw_plots(found, experiment, self.plots)
            experiments_report.write_files(found, experiment, self.folder / "experiments")
            text = experiments_report.section(found, experiment, facts)
            self.page.put(name, text, aims.aims_table(name, None, found, None), bool(found.rounds(name)))
