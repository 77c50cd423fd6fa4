"""RESULTS.md: parts that are measured and written one by one. What a run does not measure stays as an earlier one left it."""
import aims
from blocks import block, blocks_of, not_yet, put
from experiments import ALL
from profiles import CLOSED_LOOPS, PLANES, SIDE_BY_SIDE

HEAD = """<!-- Written by `bench/run`; do not edit. -->

# Measured

How: [README.md](README.md). Medians over the rounds, in parentheses the smallest and the largest. `1×1` is one connection with one
request in flight, `8×64` eight with 64 each; requests write, if not said otherwise. Each part says when it was measured; ratios are
always of one run."""


def aims_name(part):
    """The name of the block with a part's aims."""
    return f"aims of {part}"


def compose(blocks, by_hand):
    """The whole page."""
    parts = [HEAD, "## Aims", aims.REMARK]
    for part, (title, _) in aims.AIMS.items():
        parts += [f"### {title}", block(aims_name(part), blocks, not_yet(command(part)))]
    for part, title in ((CLOSED_LOOPS, "Closed loops"), (PLANES, "Data planes")):
        parts += [f"## {title}", block(part, blocks, not_yet(command(part)))]
    parts.append("## Experiments")
    for experiment in ALL:
        parts += [f"### {experiment.title}", block(experiment.name, blocks, not_yet(command(experiment.name)))]
    return "\n\n".join([*parts, by_hand.strip()]).strip() + "\n"


def command(part):
    """What measures a part, or what its aims are of."""
    if part == aims.PLANES_BESIDE:
        return "bench/run"
    return f"bench/run --only {SIDE_BY_SIDE if part == CLOSED_LOOPS else part}"


class ResultsPage:
    """A page while it is measured. Each part is written when it is done, so that a run which is stopped loses no more than one."""

    def __init__(self, path, keeps, by_hand):
        self.path, self.by_hand = path, by_hand
        if not keeps:
            put(path, compose({}, by_hand))

    def put(self, part, text, table, has_figures=True):
        """A part's block and its table of aims, if it has one. A part without any figure replaces none that has some."""
        if has_figures or part not in blocks_of(self.path):
            self.replace({part: text, **({aims_name(part): table} if table else {})})

    def put_aims(self, part, text):
        """A block of aims alone."""
        self.replace({aims_name(part): text})

    def replace(self, blocks):
        put(self.path, compose({**blocks_of(self.path), **blocks}, self.by_hand))

    def text(self):
        return compose(blocks_of(self.path), self.by_hand)
