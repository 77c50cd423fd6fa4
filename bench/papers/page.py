"""PAPERS.md: words about each figure, and what was measured for it. Sections that were not measured this time keep what
they had; their words are always the present ones.
"""
import statistics
from collections import Counter

from blocks import block, not_yet
from papers.figure import plot_path
from plots import draw
from report import OTHERS_PERCENT_MAX, REASONS_SHOWN_MAX, ROUNDS_MIN, in_one_line

HEAD = """<!-- Written by `bench/papers/run`; do not edit. -->

# The papers' own experiments, with our parts

Four papers' figures, measured anew here: what they measured and found stands in words beside each plot, with its source; plots and
tables show nothing but our own measurements. Their machines, networks and programs are others: compare the shapes, not the
figures. How it is measured: [README.md](README.md). A spread in parentheses is the smallest and the largest of the rounds.
Each part says when and of which commit it was measured; figures of different runs are not to be compared with each other.
Where something happens over time, the longest time without a write may have begun before it (then the table has a negative
number) or long after: then it was not what happened that took it.

The papers:

- **CAANS**: H. T. Dang, P. Bressana, H. Wang, K. S. Lee, H. Weatherspoon, M. Canini, F. Pedone, R. Soulé, *Network
  Hardware-Accelerated Consensus*, 2016.
- **Consensus in a Box**: Z. István, D. Sidler, G. Alonso, M. Vukolić, *Consensus in a Box: Inexpensive Coordination in
  Hardware*, NSDI 2016.
- **Waverunner**: M. Alimadadi, H. Mai, S. Cho, M. Ferdman, P. Milder, S. Mu, *Waverunner: An Elegant Approach to Hardware
  Acceleration of State Machine Replication*, NSDI 2023.
- **APUS**: *APUS: Fast and Scalable Paxos on RDMA*, report.
"""


def compose(figures, blocks):
    """The whole page."""
    parts = [HEAD.strip()]
    for figure in figures:
        parts += section(figure, blocks)
    return "\n\n".join(parts) + "\n"


def section(figure, blocks):
    found = [
        f"## {figure.name}: {figure.title}",
        f"*{figure.source}.* {figure.theirs}",
        f"**Here:** {figure.ours}",
        f"**What differs:** {figure.differs}",
    ]
    if figure.not_here:
        found.append("Not measured here:\n\n" + "\n".join(f"- {what}: {why}." for what, why in figure.not_here))
    found.append(block(about(figure), blocks, not_yet(f"bench/papers/run {figure.name}")))
    # Nothing is shown of which nobody can tell when and how it was measured.
    shown = blocks if about(figure) in blocks else {}
    for panel in figure.panels:
        found += [f"### {panel.name}: {panel.title}", block(panel.name, shown, "(no plot yet)"), f"> *{panel.theirs}*"]
    return found


def about(figure):
    """The name of the block with what is said of a figure's whole measurement."""
    return f"about {figure.name}"


def measured_blocks(figure, taken, folder, shown_folder, facts):
    """Draws a figure's plots into `folder`; its blocks, and why no plot was drawn, or None."""
    shown = [(panel, *panel.show(taken, plot_path(folder, panel), panel.title)) for panel in figure.panels]
    plots = [plot for _, plot, _ in shown if plot is not None and any(y is not None for series in plot.series for _, y in series.points)]
    reason = draw(plots)
    blocks = {}
    for panel, plot, text in shown:
        image = f"![{panel.title}]({plot_path(shown_folder, panel)})\n\n" if plot in plots and reason is None else ""
        blocks[panel.name] = image + (text if "\n|" in text and text.count("\n") > 1 else "Nothing was measured: see above.")
    blocks[about(figure)] = "\n".join([f"Measured: {facts}.", "", *(f"- {remark}" for remark in remarks(figure, taken, reason))]).strip()
    return blocks, reason


def requests_failed(taken, parts):
    """Of each system, with the reasons and where they happened."""
    counted, places = Counter(), {}
    failed = [
        ((system, reason), str(at), count)
        for _, part, system, at, errors in taken.errors if part in parts
        for reason, count in errors.items() if count
    ]
    for of, at, count in failed:
        counted[of] += count
        places.setdefault(of, {})[at] = None
    return [
        f"{of[0]}: {count} requests failed at {', '.join(places[of])}: {in_one_line(of[1])}"
        for of, count in counted.most_common(REASONS_SHOWN_MAX)
    ]


def remarks(figure, taken, not_drawn):
    """What whoever reads the figures must know."""
    names = {measurement.name for measurement in figure.measurements}
    found = [f"{system} is missing in {name}: {reason}" for (name, system), reason in taken.missing.items() if name in names]
    found += [f"round {n}, {name}, {system} failed: {reason}" for n, name, system, reason in taken.failures if name in names]
    found += [f"no plot was drawn: {not_drawn}"] if not_drawn else []
    parts = taken.parts_of(names)
    others = [row.value for row in taken.rows if row.part in parts and row.metric == "others_percent"]
    if others:
        again = ": measure again when it is quiet" if statistics.median(others) > OTHERS_PERCENT_MAX else ""
        found.append(f"others used {statistics.median(others):.0f} % of the machine (median), at most {max(others):.0f} %{again}")
    found += requests_failed(taken, parts)
    rounds = taken.rounds_of(parts)
    if rounds < ROUNDS_MIN and not all(measurement.once for measurement in figure.measurements):
        found.append(f"fewer than {ROUNDS_MIN} rounds, no more than a trial: {rounds}")
    return found
