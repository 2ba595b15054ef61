"""Run the tests of Holistic Trace Analysis (HTA) against holotrace-hta.

    python scripts/run_hta_tests.py PATH/TO/HolisticTraceAnalysis [ARGUMENTS OF PYTEST]

PATH is a checkout of https://github.com/facebookresearch/HolisticTraceAnalysis, v0.6.1. The script copies only
the folder `tests` of the checkout, so that HTA's own package `hta` cannot be imported, and runs pytest on the copy.
pytest must be installed. docs/reference/hta_tests.md lists the tests that fail, and why.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_SUPPORT = '''
"""The functions that HTA's tests import from `hta.utils.test_utils`, a module that holotrace-hta does not have."""

import functools
import importlib
import sys
import types
from pathlib import Path


def get_test_data_dir(*parts):
    folder = Path(__file__).parent.joinpath("tests", "data", *parts)
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return str(folder)


def data_provider(cases_of):
    def decorated(test):
        @functools.wraps(test)
        def every_case(self):
            for case in cases_of():
                if isinstance(case, dict):
                    test(self, **case)
                else:
                    test(self, *(case if isinstance(case, tuple) else (case,)))

        return every_case

    return decorated


support = types.ModuleType("hta.utils.test_utils")
support.get_test_data_dir, support.data_provider = get_test_data_dir, data_provider
sys.modules["hta.utils.test_utils"] = support


def inner_part(name):
    def absent(*args, **kwargs):
        raise NotImplementedError(f"{name} is private in HTA, and holotrace-hta does not have it")

    return absent


# Test modules import these names at the top. Thanks to these stand-ins, only the tests that call them fail.
for module, names in {
    "hta.common.timeline": ["_simplify_name"],
    "hta.common.trace_call_stack": ["_less_than", "sort_events"],
    "hta.common.trace_parser": ["_compress_df", "_open_trace_file"],
    "hta.configs.event_args_yaml_parser": ["ARGS_INDEX_FUNC"],
}.items():
    for name in names:
        setattr(importlib.import_module(module), name, inner_part(name))

from hta.common import trace_parser  # noqa: E402

trace_parser._auto_detect_parser_backend = lambda: trace_parser.ParserBackend.JSON  # a test module calls it on import
'''


def main() -> int:
    """Copy the tests and run them; return pytest's exit code."""
    if not sys.argv[1:]:
        print(__doc__, file=sys.stderr)  # noqa: T201 -- a script prints
        return 2
    with tempfile.TemporaryDirectory(prefix="holotrace-tests-") as folder:
        shutil.copytree(Path(sys.argv[1], "tests"), Path(folder, "tests"))
        Path(folder, "conftest.py").write_text(_SUPPORT, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(sys.argv[2:] or ["tests"])]
        return subprocess.run(command, cwd=folder, check=False).returncode  # noqa: S603 -- pytest


if __name__ == "__main__":
    sys.exit(main())
