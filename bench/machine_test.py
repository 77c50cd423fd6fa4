"""What the report says of the checkout."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import machine


def git(root, *arguments):
    # Not the repository that a hook of git runs for.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments], check=True, capture_output=True, env=alone)


class Commit(unittest.TestCase):
    def test_only_what_is_measured_can_change(self):
        with tempfile.TemporaryDirectory() as root:
            git(root, "init")
            (Path(root) / "bench").mkdir()
            for name in ("bench/PAPERS.md", "bench/run"):
                (Path(root) / name).write_text("before")
            git(root, "add", ".")
            git(root, "commit", "--message", "one")
            clean = machine.commit(root)
            self.assertRegex(clean, "^[0-9a-f]{12}$")
            (Path(root) / "bench/PAPERS.md").write_text("measured")
            self.assertEqual(machine.commit(root), clean)
            (Path(root) / "bench/run").write_text("other")
            self.assertEqual(machine.commit(root), f"{clean} with changes")

    def test_without_a_repository_it_is_unknown(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(machine.commit(root), "unknown")


if __name__ == "__main__":
    unittest.main()
