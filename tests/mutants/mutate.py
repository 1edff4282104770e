#!/usr/bin/env python3
"""Writes the files that a mutant of table.py changes.

  mutate.py list TRIED            names of the mutants that are tried there (host, litmus, moe, kernel)
  mutate.py write NAME FOLDER     copies of the mutated files, at their paths below FOLDER: with FOLDER first
                                  in the include path they take the place of the files of the repository
  mutate.py write --host NAME FOLDER   the same for the tests on threads of the host
  mutate.py cmake FILE            CMake variables for tests/gpu: what is tried where, and who changes what
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import table  # noqa: E402 (found by the line above)

ROOT = pathlib.Path(__file__).resolve().parents[2]


class MutantError(Exception):
    """A mutant that does not apply, or does not exist."""


def find(name):
    """The mutant of that name."""
    for mutant in table.MUTANTS:
        if mutant.name == name:
            return mutant
    raise MutantError(f"mutant {name}: not in tests/mutants/table.py")


def tried(where):
    """The mutants that are tried there, in the order of the table."""
    return [mutant for mutant in table.MUTANTS if where in mutant.tried]


def include_path(file):
    """The path by which sources include the file."""
    return file[len(table.HOST_FILES):] if file.startswith(table.HOST_FILES) else file


def edits_for(mutant, on_host, root=ROOT):
    """Its edits for GPUs, or for threads of the host, where some files of the product have a replacement."""
    def applies(file):
        if file.startswith(table.HOST_FILES):
            return on_host
        return not (on_host and (root / table.HOST_FILES / file).exists())
    return [edit for edit in mutant.edits if applies(edit.file)]


def mutated_files(mutant, on_host=False, root=ROOT):
    """{include path: text with the mutant's edits}. Every old text must occur exactly once."""
    texts = {}
    for edit in edits_for(mutant, on_host, root):
        path = include_path(edit.file)
        if path not in texts:
            try:
                texts[path] = (root / edit.file).read_text()
            except FileNotFoundError:
                raise MutantError(f"mutant {mutant.name}: {edit.file} does not exist") from None
        count = texts[path].count(edit.old)
        if count != 1:
            raise MutantError(f"mutant {mutant.name}: its old text occurs {count} times in {edit.file} instead of "
                              f"once:\n{edit.old}\nfix: adapt the mutant in tests/mutants/table.py to the file")
        texts[path] = texts[path].replace(edit.old, edit.new)
    return texts


def write(mutant, folder, on_host=False, root=ROOT):
    """Writes them below the folder; a file that has the text already stays, so that nothing is compiled again."""
    for path, text in mutated_files(mutant, on_host, root).items():
        target = pathlib.Path(folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


def cmake_variables():
    """mutants_TRIED: names; mutant_files_NAME: include paths; mutant_kernels_NAME: sources of kernels/moe."""
    lines = ["# Written by tests/mutants/mutate.py."]
    for where in (table.LITMUS, table.MOE, table.KERNEL):
        lines.append(f"set(mutants_{where} {' '.join(mutant.name for mutant in tried(where))})")
    for mutant in table.MUTANTS:
        files = dict.fromkeys(edit.file for edit in edits_for(mutant, on_host=False))
        lines.append(f"set(mutant_files_{mutant.name} {' '.join(files)})")
        lines.append(f"set(mutant_kernels_{mutant.name} {' '.join(mutant.kernels)})")
    return "\n".join(lines) + "\n"


def main():
    """The command line above."""
    parser = argparse.ArgumentParser(description="writes the files that a mutant changes")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="names of the mutants that are tried there")
    listing.add_argument("tried", choices=(table.HOST, table.LITMUS, table.MOE, table.KERNEL))
    writing = commands.add_parser("write", help="copies of the files that a mutant changes")
    writing.add_argument("--host", action="store_true", help="for the tests on threads of the host")
    writing.add_argument("name")
    writing.add_argument("folder")
    cmake = commands.add_parser("cmake", help="CMake variables for tests/gpu")
    cmake.add_argument("file")
    arguments = parser.parse_args()
    try:
        if arguments.command == "list":
            print("\n".join(mutant.name for mutant in tried(arguments.tried)))
        elif arguments.command == "write":
            write(find(arguments.name), arguments.folder, arguments.host)
        else:
            pathlib.Path(arguments.file).write_text(cmake_variables())
    except MutantError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
