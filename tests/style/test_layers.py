#!/usr/bin/env python3
"""Layers: which folder includes which, compared with the tables of docs/architecture.md.

The first table has the layers, from the bottom: a layer includes others that are above it in the
table, and only those of its row. The second has the folders. A file belongs to the row with the longest
path that contains it. An include from one row to another needs the other's path in the last column of
the first, or a path above it that is no layer and does not hold both. A path that no include uses is
stale, in both tables.
"""

import pathlib
import re
import tempfile
import unittest

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c"}
TOP = ("cli", "kernels", "reports", "src", "transports")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FOLDER = re.compile(r"`([a-z0-9_/]+)`")


def read_rows(page, columns):
    """The first table of so many columns: {folder of the first column: folders that the last one names}."""
    rows = {}
    started = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != columns + 2 or not line.startswith("|"):
            if started:
                break
            continue
        started = True
        name = FOLDER.fullmatch(cells[1])
        if name:
            rows[name.group(1)] = set(FOLDER.findall(cells[-2]))
    return rows


def read_layers(page):
    """{layer: layers that it may include}, from the bottom."""
    return read_rows(page, 2)


def read_table(page):
    """{folder: folders that it may include}. `tests` has no limits."""
    return {name: uses for name, uses in read_rows(page, 3).items() if name != "tests"}


def row_of(path, rows):
    """The longest of the rows that contain the file; None if there is none."""
    matches = [row for row in rows if path.startswith(row + "/")]
    return max(matches, key=len, default=None)


def layer_of(row, layers):
    """The layer that a folder is, or is in; None if there is none."""
    return row if row in layers else row_of(row, layers)


def permission(source, target, table, layers):
    """The path in the last column of `source` by which it may include `target`; None if there is none.

    A folder stands for those inside it as well; a layer, for the files that lie directly in it.
    """
    for path in sorted(table[source], key=len, reverse=True):
        if target == path or (target.startswith(path + "/") and path not in layers
                              and not source.startswith(path + "/")):
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
    """One line for each difference between the tree and its tables."""
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    layers, table = read_layers(page), read_table(page)
    if not layers:
        return ["docs/architecture.md: no table of layers found"]
    if len(table) < 10:
        return ["docs/architecture.md: no table of folders found"]
    arrows, homeless = find_includes(root, table)
    wrong = [f"{name}: its folder is in no row of docs/architecture.md" for name in homeless]
    for row in table:
        if not (root / row).is_dir():
            wrong.append(f"docs/architecture.md: `{row}` is no folder")
    used = set()
    for (source, target), example in sorted(arrows.items()):
        by = permission(source, target, table, layers)
        used.add((source, by))
        if by is None:
            wrong.append(f"`{source}` must not use `{target}`: {example}")
    for source, targets in table.items():
        wrong += [f"docs/architecture.md: `{source}` does not use `{target}`"
                  for target in sorted(targets) if (source, target) not in used]
    wrong += wrong_layers(arrows, table, layers)
    if not wrong:
        wrong += cycles(arrows, layers)
    return wrong


def wrong_layers(arrows, table, layers):
    """One line for each difference between the includes and the table of layers."""
    wrong = [f"docs/architecture.md: `{row}` is in no layer" for row in table if layer_of(row, layers) is None]
    order = list(layers)
    for layer, targets in layers.items():
        wrong += [f"docs/architecture.md: the layer `{layer}` may not include `{target}`, which is not below it"
                  for target in sorted(targets) if target not in order[:order.index(layer)]]
    used = set()
    for (source, target), example in sorted(arrows.items()):
        above, below = layer_of(source, layers), layer_of(target, layers)
        if above is None or below is None or above == below:
            continue
        used.add((above, below))
        if below not in layers[above]:
            wrong.append(f"the layer `{above}` must not use `{below}`: {example}")
    for layer, targets in layers.items():
        wrong += [f"docs/architecture.md: the layer `{layer}` does not use `{target}`"
                  for target in sorted(targets) if (layer, target) not in used]
    return wrong


def cycles(arrows, layers):
    """Folders that reach themselves. A folder directly in a layer counts with all that is inside it, and
    as a part of the layer's own files if they include each other."""
    def unit(row):
        layer = layer_of(row, layers)
        return row if row == layer else "/".join(row.split("/")[:layer.count("/") + 2])

    def part_of_its_layer(one):
        layer = layer_of(one, layers)
        return layer if {(one, layer), (layer, one)} <= set(arrows) else one

    uses = {}
    for source, target in arrows:
        source, target = part_of_its_layer(unit(source)), part_of_its_layer(unit(target))
        if source != target:
            uses.setdefault(source, set()).add(target)
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

    def found(self, cells, sources, layers=(("src", "nothing"),)):
        """The differences of a tree with these rows ({folder: last column}), files and layers."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            rows = {**{f"{layers[0][0]}/unused{i}": "nothing" for i in range(10)}, **cells}
            page = "| layer | includes |\n| --- | --- |\n" + "".join(
                f"| `{name}` | {uses} |\n" for name, uses in layers)
            page += "\n| folder | what | includes |\n| --- | --- | --- |\n" + "".join(
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

    def test_a_cycle_within_a_layer(self):
        self.assertEqual(self.found({"src/high/a": "`src/high/b`", "src/high/b": "`src/high/a`"}, {
            "src/high/a/a.h": '#include "src/high/b/b.h"\n', "src/high/b/b.h": '#include "src/high/a/a.h"\n'},
            layers=(("src/high", "nothing"),)),
            [f"`{name}` uses itself through other folders" for name in ("src/high/a", "src/high/b")])

    def test_a_folder_and_its_layer_may_include_each_other(self):
        self.assertEqual(self.found({"src/high": "`src/high/a`", "src/high/a": "`src/high`"}, {
            "src/high/b.h": '#include "src/high/a/a.h"\n', "src/high/a/a.h": '#include "src/high/b.h"\n'},
            layers=(("src/high", "nothing"),)), [])

    def test_a_layer_stands_for_its_own_files_alone(self):
        self.assertEqual(self.found({"src/low": "nothing", "src/low/in": "nothing", "src/high": "`src/low`"}, {
            "src/high/a.h": '#include "src/low/b.h"\n#include "src/low/in/c.h"\n',
            "src/low/b.h": "", "src/low/in/c.h": ""},
            layers=(("src/low", "nothing"), ("src/high", "`src/low`"))),
            ["`src/high` must not use `src/low/in`: src/high/a.h includes src/low/in/c.h"])

    def test_an_include_that_the_layers_do_not_allow(self):
        sources = {"src/high/a.h": '#include "src/low/b.h"\n', "src/low/b.h": ""}
        cells = {"src/low": "nothing", "src/high": "`src/low`"}
        self.assertEqual(self.found(cells, sources, (("src/low", "nothing"), ("src/high", "nothing"))),
                         ["the layer `src/high` must not use `src/low`: src/high/a.h includes src/low/b.h"])
        self.assertEqual(self.found(cells, sources, (("src/low", "nothing"), ("src/high", "`src/low`"))), [])

    def test_layers_include_downwards_and_are_not_stale(self):
        self.assertEqual(self.found({"src/low": "nothing", "src/high": "nothing"}, {"src/low/b.h": ""},
                                    (("src/low", "`src/high`"), ("src/high", "nothing"))),
                         ["docs/architecture.md: the layer `src/low` may not include `src/high`, which is not below it",
                          "docs/architecture.md: the layer `src/low` does not use `src/high`"])

    def test_a_folder_in_no_layer(self):
        self.assertEqual(self.found({"cli": "nothing"}, {"cli/main.cpp": ""}),
                         ["docs/architecture.md: `cli` is in no layer"])


if __name__ == "__main__":
    unittest.main()
