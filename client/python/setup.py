"""What pyproject.toml cannot say: the extension module, and the version of the library in it."""

import os
import sys

from setuptools import setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_native  # noqa: E402

setup(
    version=build_native.installed("--modversion"),
    cffi_modules=["build_native.py:builder"],
    # The module keeps to what all versions of Python 3 from this one on have.
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
