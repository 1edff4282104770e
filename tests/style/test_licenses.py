#!/usr/bin/env python3
"""Licenses: what the build links into the binary, compared with the notices that a release packs.

Everything that cmake looks for has a row here: the Debian package whose notice goes with it, or why there is
none. Something new without a row fails, and so does a notice of what is linked no more.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What find_package, find_library, find_path and find_file look for, to the package that is linked in.
LINKED = {
    "nlohmann_json": "nlohmann-json3-dev",
    "CLI11": "libcli11-dev",
    "fmt": "libfmt-dev",
    "libhwloc.a": "libhwloc-dev",
    "hwloc.h": "libhwloc-dev",
    "libexpat.a": "libexpat1-dev",
    "expat.h": "libexpat1-dev",
    "libzstd.a": "libzstd-dev",
    "zstd.h": "libzstd-dev",
    "valijson/validator.hpp": "libvalijson-dev",
    "boost/math/distributions/students_t.hpp": "libboost1.74-dev",
    "chart.min.js": "libjs-chart.js",
}
# Linked by an option of the compiler.
BY_OPTION = {"-static-libstdc++": "gcc-12-base", "-static-libgcc": "gcc-12-base"}
# Needs no notice of a package, and why.
OTHERWISE = {
    "Threads": "the C library's, linked dynamically",
    "ucp/api/ucp.h": "declarations only: the library is opened at run time",
    "infiniband/verbs.h": "declarations only: the library is opened at run time",
    "rdma/fabric.h": "declarations only: the library is opened at run time",
    "copyright": "Chart.js's notice itself, for the page of report html",
    "CUDAToolkit": "its static runtime is NVIDIA's: packaging/licenses/README.md",
    "cuda_runtime_api.h": "read by clang-tidy only",
    "GTest": "of the tests",
    "lib${name}.so": "hwloc, expat and zstd of libnvshmem_host.so, linked dynamically",
}
CALL = re.compile(r"^\s*find_(package|library|path|file)\(([^)]*)\)", re.MULTILINE)
ADDLIB = re.compile(r"addlib (\S+?)(?:\\n|\"|$)", re.MULTILINE)
NOTICES = re.compile(r"foreach\(package\s+([^)]*)\)\s*install\(FILES \$\{CMAKE_SYSROOT\}/usr/share/doc")


def cmake_files():
    """Those that the binary and the library are built by; not the tests' own."""
    folders = ("cmake", "cli", "kernels", "reports", "src", "transports")
    files = [ROOT / "CMakeLists.txt"]
    for folder in folders:
        files += sorted((ROOT / folder).rglob("CMakeLists.txt")) + sorted((ROOT / folder).rglob("*.cmake"))
    return files


def sought(text):
    """Names of what a CMake file looks for: of a library or a header the file, of a package its name."""
    names = set()
    for kind, arguments in CALL.findall(re.sub(r"#.*", "", text)):
        words = arguments.split()
        if kind == "package":
            names.add(words[0])
        else:
            names.add(words[2] if words[1] == "NAMES" else words[1])
    return names


def options(text):
    return {option for option in BY_OPTION if option in text}


def linked_words(text):
    """What all of the binary is linked with: the operands after `shmemctl_dependencies INTERFACE`."""
    calls = re.findall(r"target_link_libraries\(shmemctl_dependencies INTERFACE\s+([^)]*)\)", text)
    return {word for call in calls for word in call.split()}


def merged(text):
    """What is merged into the library: the operands of its `addlib` lines."""
    return set(ADDLIB.findall(text))


def static_variables(text):
    """Variables that name a static library, to the file that is looked for."""
    return dict(re.findall(r"find_library\((\w+) NAMES (lib\w+\.a)", text))


def notices(text):
    return set(NOTICES.search(text).group(1).split())


def explained(text):
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def read(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


class Licenses(unittest.TestCase):
    def setUp(self):
        texts = [path.read_text(encoding="utf-8") for path in cmake_files()]
        self.sought = set().union(*(sought(text) for text in texts))
        self.options = set().union(*(options(text) for text in texts))

    def test_what_is_looked_for_has_a_package_or_needs_none(self):
        self.assertGreater(len(self.sought), 10)
        self.assertEqual(sorted(self.sought - set(LINKED) - set(OTHERWISE)), [],
                         "tests/style/test_licenses.py: say which package's notice it needs")

    def test_no_row_is_stale(self):
        self.assertEqual(sorted((set(LINKED) | set(OTHERWISE)) - self.sought), [])

    def test_nothing_is_linked_that_was_not_looked_for(self):
        words = {word for path in cmake_files() for word in linked_words(path.read_text(encoding="utf-8"))}
        known = {re.match(r"\w+", name).group(0).lower() for name in self.sought}
        others = {word for word in words if word.split("::")[0].lower() not in known}
        self.assertEqual(others, {"${HWLOC_STATIC}", "${EXPAT_STATIC}", "${ZSTD_STATIC}", "${CMAKE_DL_LIBS}", "m",
                                  "shmemctl_udev_absent"})

    def test_what_is_linked_has_its_notice_in_a_release(self):
        wanted = {LINKED[name] for name in self.sought if name in LINKED}
        wanted |= {BY_OPTION[option] for option in self.options}
        self.assertEqual(sorted(notices(read("cmake", "Package.cmake"))), sorted(wanted))

    def test_the_page_beside_the_notices_has_a_row_for_each(self):
        page = read("packaging", "licenses", "README.md")
        self.assertEqual(sorted(explained(page)), sorted(notices(read("cmake", "Package.cmake"))))
        self.assertIn("libcudart_static", page)

    def test_the_sysroot_of_a_release_has_the_packages(self):
        unpacked = {line.split()[1] for line in read("scripts", "portable", "sysroot.sums").splitlines()
                    if line and not line.startswith("#")}
        self.assertEqual(sorted(notices(read("cmake", "Package.cmake")) - unpacked), [])

    def test_the_library_is_merged_from_what_the_binary_links(self):
        known = static_variables(read("cmake", "Dependencies.cmake"))
        self.assertGreater(len(known), 2)
        others = set()
        for operand in merged(read("cmake", "Library.cmake")):
            variable = re.fullmatch(r"\$\{(\w+)\}", operand)
            target = re.fullmatch(r"\$<TARGET_FILE:(\S+)>", operand)
            if variable:
                self.assertIn(LINKED[known.pop(variable.group(1))], notices(read("cmake", "Package.cmake")))
            else:
                others.add(target.group(1) if target else operand)
        self.assertEqual(known, {}, "linked, and not merged into libshmemctl_all.a")
        self.assertEqual(others, {"shmemctl_core", "shmemctl_udev_absent", "shmemctl_string_members", "CUDA::cudart_static"})


class Parsing(unittest.TestCase):
    """What would be a new dependency is seen."""

    def test_new_ones_are_found(self):
        text = "find_library(LZ4_STATIC NAMES liblz4.a REQUIRED)\n  find_path(X yaml.h)\n# find_package(old)\nfind_package(re2 3 REQUIRED)\n"
        self.assertEqual(sought(text), {"liblz4.a", "yaml.h", "re2"})
        self.assertEqual(linked_words("target_link_libraries(shmemctl_dependencies INTERFACE\n  lz4 re2::re2)"), {"lz4", "re2::re2"})
        self.assertEqual(static_variables(text), {"LZ4_STATIC": "liblz4.a"})

    def test_merged_ones_are_found(self):
        self.assertEqual(merged('"create ${merged}\naddlib ${LZ4_STATIC}\n${more}save\n"\nset(more "addlib $<TARGET_FILE:A::b>\\n")'),
                         {"${LZ4_STATIC}", "$<TARGET_FILE:A::b>"})


if __name__ == "__main__":
    unittest.main()
