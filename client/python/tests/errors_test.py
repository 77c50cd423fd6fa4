"""The classes of errors are those of quorumwire.h."""

import re
import unittest
from pathlib import Path

import quorumwire
from quorumwire import _errors
from quorumwire._native import lib

HEADER = (Path(__file__).parents[2] / "c/quorumwire.h").read_text()


class ErrorsTest(unittest.TestCase):
    """It."""

    def test_each_error_of_the_header_has_a_class_of_its_name(self) -> None:
        numbers = re.findall(r"^#define QUORUMWIRE_ERROR_(\w+) \((-\d+)\)$", HEADER, re.MULTILINE)
        self.assertGreater(len(numbers), 10)
        for name, number in numbers:
            kind = getattr(quorumwire, name.title().replace("_", "") + "Error")
            self.assertTrue(issubclass(kind, quorumwire.Error))
            self.assertIn(kind.__name__, quorumwire.__all__)
            self.assertEqual(kind.code, int(number), name)
            self.assertIs(type(_errors.error(int(number), "")), kind)
        self.assertEqual(len(_errors.all_errors()), len(numbers))

    def test_all_functions_of_the_header_are_there(self) -> None:
        code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
        names = set(re.findall(r"(quorumwire_\w+)\(", code))
        self.assertGreater(len(names), 10)
        for name in names:
            self.assertTrue(callable(getattr(lib, name)), name)

    def test_an_error_that_only_a_newer_library_knows_is_one_of_its_faults(self) -> None:
        self.assertEqual(type(_errors.error(-4711, "new")), quorumwire.InternalError)


if __name__ == "__main__":
    unittest.main()
