"""Written pages whose parts a later run replaces one by one: each part stands between two marks."""
import os
import re

PLOT = re.compile(r"!\[[^\]]*\]\(([^()]+\.svg)\)")
BLOCK = re.compile(r"<!-- measured: ([a-z0-9 -]+) -->\n(.*?)<!-- end of \1 -->", re.DOTALL)


def kept_blocks(text):
    """What was measured, by name, in an earlier page."""
    return {name: inside.strip() for name, inside in BLOCK.findall(text)}


def blocks_of(path):
    """Those of a page as it is now: another run may have written one. None if there is no page yet."""
    return kept_blocks(path.read_text()) if path.exists() else {}


def block(name, blocks, otherwise):
    """A block between its marks; where there is none, what stands in its place."""
    if name in blocks:
        return f"<!-- measured: {name} -->\n{blocks[name]}\n<!-- end of {name} -->"
    return otherwise


def not_yet(command):
    """What stands in place of a block that no run has written."""
    return f"Not measured yet: `{command}`."


def put(path, text):
    """Writes a page; whoever reads it meanwhile, or after a stop in the middle, has the old one or the new one.

    Plots that blocks of the old one showed, and the new one does not, are removed: nothing else says what they are of.
    """
    plots_before = {plot for inside in blocks_of(path).values() for plot in PLOT.findall(inside)}
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text)
    os.replace(aside, path)
    for plot in plots_before.difference(PLOT.findall(text)):
        (path.parent / plot).unlink(missing_ok=True)
