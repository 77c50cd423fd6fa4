"""The experiments of three papers, with our parts in the place of theirs. `run` is where it begins."""
