#!/usr/bin/env python3
"""Replaces the C library's shared objects of a sysroot by stubs: stubs.py SYSROOT GLIBC_VERSION

A stub has the names and versions of the real library, without code, and only those that GLIBC_VERSION
has. A program linked with it therefore starts with that version and newer ones; a function that came
later is undefined when it is linked, and one that has changed since is the older one.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

LIBRARIES = ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
             "ld-linux-x86-64.so.2"]
Symbol = collections.namedtuple("Symbol", "name kind weak address size version default")


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def exported(path):
    """What a library defines with a version GLIBC_x.y."""
    table = subprocess.run(["readelf", "--dyn-syms", "-W", path], check=True, capture_output=True,
                           text=True).stdout
    symbols = []
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":") or fields[6] == "UND":
            continue
        named = re.fullmatch(r"([^@]+)(@@?)GLIBC_([0-9.]+)", fields[7])
        if named and fields[4] in ("GLOBAL", "WEAK") and fields[3] in ("FUNC", "IFUNC", "OBJECT"):
            symbols.append(Symbol(named[1], fields[3], fields[4] == "WEAK", fields[1], int(fields[2], 0),
                                  named[3], named[2] == "@@"))
    return symbols


def for_version(symbols, newest):
    """Those of `newest` and older; where the default one is newer, the newest of the others."""
    by_name = collections.defaultdict(list)
    for symbol in symbols:
        by_name[symbol.name].append(symbol)
    kept = []
    for versions in by_name.values():
        had_default = any(symbol.default for symbol in versions)
        old = sorted((s for s in versions if numbers(s.version) <= newest),
                     key=lambda s: numbers(s.version))
        for symbol in old:
            default = symbol.default or (had_default and symbol is old[-1] and
                                         not any(s.default for s in old))
            kept.append(symbol._replace(default=default))
    return kept


def assembly(symbols):
    """Data that has several names keeps them all: a program's copy of `environ` must be the one that
    the real library calls `__environ`."""
    places = collections.defaultdict(list)
    for symbol in symbols:
        places[symbol.address if symbol.kind == "OBJECT" else symbol].append(symbol)
    lines, number = [], 0
    for names in places.values():
        data = names[0].kind == "OBJECT"
        lines += [".bss" if data else ".text", ".p2align 6"]
        for symbol in names:
            stub, number = f"shmemctl_stub_{number}", number + 1
            lines += [f".{'weak' if symbol.weak else 'globl'} {stub}",
                      f".type {stub}, @{'object' if data else 'function'}",
                      f".size {stub}, {symbol.size if data else 1}",
                      f".symver {stub}, {symbol.name}@{'@' if symbol.default else ''}GLIBC_{symbol.version}, remove",
                      f"{stub}:"]
        lines.append(f".skip {max(symbol.size for symbol in names)}" if data else "ret")
    return "\n".join(lines + ['.section .note.GNU-stack,"",@progbits', ""])


def version_script(symbols):
    versions = sorted({symbol.version for symbol in symbols}, key=numbers)
    return "".join(f"GLIBC_{version} {{}};\n" for version in versions)


def make_stub(real, name, newest):
    symbols = for_version(exported(real), newest)
    if not symbols:
        sys.exit(f"stubs: {real} exports nothing with a version of glibc")
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stub.s"), os.path.join(folder, "versions")
        result = os.path.join(folder, name)
        with open(source, "w") as file:
            file.write(assembly(symbols))
        with open(script, "w") as file:
            file.write(version_script(symbols))
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", result, source, f"-Wl,-soname,{name}",
                        f"-Wl,--version-script={script}", "-Wl,--hash-style=gnu"], check=True)
        with open(result, "rb") as file:
            contents = file.read()
    os.remove(real)
    with open(real, "wb") as file:
        file.write(contents)


def main():
    sysroot, newest = sys.argv[1], numbers(sys.argv[2])
    libraries = os.path.join(sysroot, "lib/x86_64-linux-gnu")
    real = {name: os.path.realpath(os.path.join(libraries, name)) for name in LIBRARIES}
    for name, path in real.items():
        make_stub(path, name, newest)
    # The vector functions of libm are in a library of their own, which programs need not have.
    with open(os.path.join(sysroot, "usr/lib/x86_64-linux-gnu/libm.so"), "w") as file:
        file.write("/* GNU ld script */\nINPUT ( /lib/x86_64-linux-gnu/libm.so.6 )\n")


if __name__ == "__main__":
    main()
