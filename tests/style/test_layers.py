#!/usr/bin/env python3
"""Layers: which folder includes which, compared with the table of docs/architecture.md.

A file belongs to the row with the longest path that contains it. An include from one row to another
needs the other's path in the last column of the first, or a path above it that does not hold both; a
path that no include uses is stale.
"""

import pathlib
import re
import tempfile
import unittest

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c"}
TOP = ("cli", "kernels", "reports", "src", "transports")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FOLDER = re.compile(r"`([a-z0-9_/]+)`")


def read_table(page):
    """The rows of the first table: {folder: folders that it may include}. `tests` has no limits."""
    allowed = {}
    started = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 5 or not line.startswith("|"):
            if started:
                break
            continue
        started = True
        name = FOLDER.fullmatch(cells[1])
        if name and name.group(1) != "tests":
            allowed[name.group(1)] = set(FOLDER.findall(cells[3]))
    return allowed


def row_of(path, rows):
    """The longest of the rows that contain the file; None if there is none."""
    matches = [row for row in rows if path.startswith(row + "/")]
    return max(matches, key=len, default=None)


def permission(source, target, table):
    """The path in the last column of `source` by which it may include `target`; None if there is none."""
    for path in sorted(table[source], key=len, reverse=True):
        if target == path or (target.startswith(path + "/") and not source.startswith(path + "/")):
            return path
    return None


def find_includes(root, rows):
    """The include graph: {(from, to): one include that shows it}, and files that are in no row."""
    arrows, homeless = {}, []
    files = {path.relative_to(root).as_posix(): path
             for top in TOP for path in sorted((root / top).rglob("*")) if path.suffix in SOURCES}
    for name, path in files.items():
        source = row_of(name, rows)
        if source is None:
            homeless.append(name)
            continue
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if included not in files:  # generated, or relative to the includer: the same folder
                continue
            target = row_of(included, rows)
            if target is not None and target != source:
                arrows.setdefault((source, target), f"{name} includes {included}")
    return arrows, homeless


def differences(root):
    """One line for each difference between the tree and its table."""
    table = read_table((root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    if len(table) < 10:
        return ["docs/architecture.md: no table of folders found"]
    arrows, homeless = find_includes(root, table)
    wrong = [f"{name}: its folder is in no row of docs/architecture.md" for name in homeless]
    for row in table:
        if not (root / row).is_dir():
            wrong.append(f"docs/architecture.md: `{row}` is no folder")
    used = set()
    for (source, target), example in sorted(arrows.items()):
        by = permission(source, target, table)
        used.add((source, by))
        if by is None:
            wrong.append(f"`{source}` must not use `{target}`: {example}")
    for source, targets in table.items():
        wrong += [f"docs/architecture.md: `{source}` does not use `{target}`"
                  for target in sorted(targets) if (source, target) not in used]
    if not wrong:
        wrong += cycles(arrows)
    return wrong


def cycles(arrows):
    """Folders that reach themselves. A folder and the folders in it count as one, except `src`."""
    def house(row):
        parts = row.split("/")
        return "/".join(parts[:2]) if parts[0] == "src" else parts[0]

    uses = {}
    for source, target in arrows:
        if house(source) != house(target):
            uses.setdefault(house(source), set()).add(house(target))
    found = []
    for start in sorted(uses):
        seen, todo = set(), list(uses[start])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += uses.get(one, ())
        if start in seen:
            found.append(f"`{start}` uses itself through other folders")
    return found


class Layers(unittest.TestCase):
    def test_the_include_graph_matches_the_table(self):
        self.assertEqual(differences(pathlib.Path(__file__).resolve().parents[2]), [])


class OfAnotherTree(unittest.TestCase):
    """That the comparison finds what it is there for."""

    def found(self, cells, sources):
        """The differences of a tree with these rows ({folder: last column}) and files."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            rows = {**{f"src/unused{i}": "nothing" for i in range(10)}, **cells}
            page = "| folder | what | includes |\n| --- | --- | --- |\n" + "".join(
                f"| `{name}` | text | {uses} |\n" for name, uses in rows.items())
            for name in rows:
                (root / name).mkdir(parents=True, exist_ok=True)
            for name, text in {"docs/architecture.md": page, **sources}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return differences(root)

    def test_an_allowed_include_passes(self):
        self.assertEqual(self.found({"src/a": "`src/b`", "src/b": "nothing"}, {
            "src/a/a.h": '#include "src/b/inside/b.h"\n', "src/b/inside/b.h": ""}), [])

    def test_an_include_that_the_table_does_not_allow(self):
        self.assertEqual(self.found({"src/a": "nothing", "src/b": "nothing"}, {
            "src/a/a.cpp": '#  include "src/b/b.h"\n', "src/b/b.h": ""}),
            ["`src/a` must not use `src/b`: src/a/a.cpp includes src/b/b.h"])

    def test_an_unused_permission_fails(self):
        self.assertEqual(self.found({"src/a": "`src/b`", "src/b": "nothing"}, {"src/b/b.h": ""}),
                         ["docs/architecture.md: `src/a` does not use `src/b`"])

    def test_a_subfolder_with_a_row_has_its_own_permissions(self):
        self.assertEqual(self.found({"src/a": "nothing", "src/a/in": "nothing"}, {
            "src/a/a.h": "", "src/a/in/b.h": '#include "src/a/a.h"\n'}),
            ["`src/a/in` must not use `src/a`: src/a/in/b.h includes src/a/a.h"])

    def test_a_file_without_a_row_fails(self):
        self.assertEqual(self.found({}, {"src/new/a.h": ""}),
                         ["src/new/a.h: its folder is in no row of docs/architecture.md"])

    def test_a_cycle_fails_even_if_the_table_allows_it(self):
        self.assertEqual(self.found({"src/a": "`src/b`", "src/b": "`src/a`"}, {
            "src/a/a.h": '#include "src/b/b.h"\n', "src/b/b.h": '#include "src/a/a.h"\n'}),
            [f"`{name}` uses itself through other folders" for name in ("src/a", "src/b")])


if __name__ == "__main__":
    unittest.main()
