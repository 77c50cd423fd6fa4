"""Written pages whose parts a later run replaces one by one: each part stands between two marks."""
import os
import re

BLOCK = re.compile(r"<!-- measured: ([a-z0-9 -]+) -->\n(.*?)<!-- end of \1 -->", re.DOTALL)


def kept_blocks(text):
    """What was measured, by name, in an earlier page."""
    return {name: inside.strip() for name, inside in BLOCK.findall(text)}


def block(name, blocks, otherwise):
    """A block between its marks; where there is none, what stands in its place."""
    if name in blocks:
        return f"<!-- measured: {name} -->\n{blocks[name]}\n<!-- end of {name} -->"
    return otherwise


def put(path, text):
    """Writes a page; whoever reads it meanwhile, or after a stop in the middle, has the old one or the new one."""
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text)
    os.replace(aside, path)
