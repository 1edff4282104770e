#!/usr/bin/env python3
"""Each transport of transports/registry.cpp: what has to be there besides its row. And the transports
that forward: the bases of transports/forwarding_transport.h forward all that the interface has.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^ *\{"([a-z]\w*)", "', re.MULTILINE)
OPTION = re.compile(r'"([A-Z][A-Z0-9_]+)"')
OPTION_READ = re.compile(r'options(?:\.|->)(?:text|boolean|integer|number|value|size_bytes)\("([A-Z0-9_]+)"\)')
VIRTUAL = re.compile(r"^  virtual (?!~)[^;{]*?(\w+)\(", re.MULTILINE)
# They would lead a caller past a transport that forwards.
NOT_FORWARDED = {"is_load_store", "has_direct_atomics", "for_host_memory"}
SET_UP = {"use_nics", "connect", "has_keys", "set_region", "set_keys", "add_local", "remove_local"}


def text_of(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def sources(folder):
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cpp")]


def registered():
    """Names of the transports, in the order of the rows."""
    return ROW.findall(text_of("transports", "registry.cpp"))


def class_body(text, name):
    """What is between the braces of a class that ends at the start of a line."""
    return re.search(rf"^class {name}\b[^;]*?\{{(.*?)^\}};", text, re.MULTILINE | re.DOTALL).group(1)


class Registry(unittest.TestCase):
    def test_every_make_function_has_its_row(self):
        made = {name for path in sources("transports") if path.suffix == ".h"
                for name in re.findall(r"make_(\w+)_transport\((?:\)|const TransportSetup&)", path.read_text())}
        self.assertGreater(len(made), 5)
        self.assertEqual(made, set(registered()))

    def test_every_option_that_transports_read_is_in_a_row(self):
        read = {name for path in sources("transports") for name in OPTION_READ.findall(path.read_text())}
        rows = set(OPTION.findall(text_of("transports", "registry.cpp")))
        self.assertGreater(len(read), 20)
        self.assertEqual(sorted(read), sorted(rows))

    def test_fuzz_targets_link_without_the_transports_over_libraries(self):
        absent = re.findall(r"make_(\w+)_transport\(", text_of("tests", "fuzz", "absent_transports.cpp"))
        self.assertEqual(sorted(absent), sorted(set(registered()) - {"shm"}))

    def test_every_transport_is_explained(self):
        page = text_of("docs", "explanation", "transports.md")
        rows = [line for line in page.splitlines() if line.startswith("|")]
        for name in registered():
            self.assertTrue([row for row in rows if f"`{name}`" in row.split("|")[1]],
                            f"docs/explanation/transports.md: no row of a table for {name}")

    def test_every_transport_runs_the_conformance_tests(self):
        folder = ROOT / "tests" / "unit" / "transports"
        suites = "".join(path.read_text() for path in sorted(folder.glob("*_conformance_test.cpp")))
        for name in registered():
            self.assertTrue(f"make_{name}_transport" in suites, "no conformance tests of " + name)


class Forwarding(unittest.TestCase):
    def setUp(self):
        interface = text_of("transports", "transport.h")
        self.functions = set(VIRTUAL.findall(class_body(interface, "Transport")))
        bases = text_of("transports", "forwarding_transport.h")
        self.all = class_body(bases, "ForwardingTransport")
        self.operations = class_body(bases, "ForwardingOperations")

    def test_the_interface_was_read(self):
        self.assertGreater(len(self.functions), 20)
        self.assertLessEqual(NOT_FORWARDED | SET_UP, self.functions)

    def test_every_function_is_forwarded(self):
        forwarded = set(re.findall(r"\bbelow_\.(\w+)\(", self.all))
        self.assertEqual(forwarded, self.functions - NOT_FORWARDED)

    def test_operations_leave_out_the_set_up_alone(self):
        self.assertEqual(set(re.findall(r"(\w+)\([^()]*\) (?:const )?override", self.operations)), SET_UP | {"traffic"})

    def test_the_test_of_the_bases_has_every_function(self):
        test = text_of("tests", "unit", "transports", "forwarding_test.cpp")
        for name in sorted(self.functions):
            self.assertTrue(f"transport.{name}(" in test, f"forwarding_test.cpp does not call {name}()")


if __name__ == "__main__":
    unittest.main()
