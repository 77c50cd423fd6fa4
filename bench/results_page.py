"""RESULTS.md: parts that are measured and written one by one. What a run does not measure stays as an earlier one left it."""
import aims
from blocks import block, kept_blocks, put
from experiments import ALL
from profiles import CLOSED_LOOPS

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
        parts += [f"### {title}", block(aims_name(part), blocks, not_yet(part))]
    parts += [block(CLOSED_LOOPS, blocks, f"## Closed loops and data planes\n\n{not_yet(CLOSED_LOOPS)}"), "## Experiments"]
    for experiment in ALL:
        parts += [f"### {experiment.title}", block(experiment.name, blocks, not_yet(experiment.name))]
    return "\n\n".join([*parts, by_hand.strip()]).strip() + "\n"


def not_yet(part):
    return f"Not measured yet: `bench/run{'' if part == CLOSED_LOOPS else f' --only {part}'}`."


class ResultsPage:
    """A page while it is measured. Each part is written when it is done, so that a run which is stopped loses no more than one."""

    def __init__(self, path, keeps, by_hand):
        self.path, self.by_hand = path, by_hand
        if not keeps:
            path.unlink(missing_ok=True)

    def put(self, part, text, table, has_figures=True):
        """A part's block and its table of aims, if it has one. A part without any figure replaces none that has some."""
        blocks = self.blocks()
        if part in blocks and not has_figures:
            return
        blocks[part] = text
        if table:
            blocks[aims_name(part)] = table
        put(self.path, compose(blocks, self.by_hand))

    def blocks(self):
        """As they are now: another run may have written one."""
        return kept_blocks(self.path.read_text()) if self.path.exists() else {}

    def text(self):
        return compose(self.blocks(), self.by_hand)
