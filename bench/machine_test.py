"""What the report says of the checkout."""
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import machine


def git(root, *arguments):
    machine.git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments)


# As in a hook of git, which runs for another repository.
@mock.patch.dict(os.environ, {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"})
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
