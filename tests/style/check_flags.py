#!/usr/bin/env python3
"""No page names a flag that no subcommand has, and no text of the program does.

Flags of this program are those of docs/reference/commands, which a test holds to the binary. A flag of
another tool is allowed behind that tool's name in the same code span or line, if FOREIGN lists it; a
flag of a script of ours, if the script's text has it. Usage: check_flags.py [ROOT]."""
import pathlib
import re
import sys

from check_links import pages_of

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Tools that pages name, with the flags that they name; "*" allows any.
FOREIGN = {
    "apt-get": "*", "cmake": "*", "ctest": "*", "docker": "*", "git": "*", "ethtool": "*", "mpirun": "*",
    "srun": "*", "sbatch": "*", "oshrun": "*", "numactl": "*", "nvidia-smi": "*", "rocm-smi": "*", "ninja": "*",
    "compute-sanitizer": "*", "nsys": "*", "ncu": "*", "promtool": "*", "node_exporter": "*", "pkg-config": "*",
    "systemctl": "*", "nvcc": "*", "udevadm": "*", "update-initramfs": "*", "ucx_perftest": "*", "ucx_info": "*",
    "ib_write_bw": "*", "ib_write_lat": "*", "perftest": "*", "valgrind": "*", "salloc": "*", "kubectl": "*",
    "mpiexec": "*", "mpiexec.hydra": "*", "clang-format": "*", "chromium": "*",
}
# Flags that are by themselves on a page that says whose they are.
ALONE = {
    "docs/explanation/bootstrap.md": {"--export-dynamic-symbol"},  # the linker's
    "docs/explanation/nvshmem_programs.md": {"--export-dynamic-symbol"},  # the linker's
    # Of any program that a report's command line names.
    "CHANGELOG.md": {"--token", "--password", "--api-key"},
    "docs/reference/report.md": {"--token", "--password", "--api-key"},
    # those of scripts/lab/hosts
    "docs/development.md": {"--at", "--cable", "--clocks", "--rate", "--sysroots"},
    "docs/explanation/gather.md": {"--zstd"},  # tar's
    "docs/explanation/host_facts.md": {"--query"},  # mlxfwmanager's
    "docs/explanation/kernel_log.md": {"--time-format"},  # dmesg's
    "docs/reference/findings.md": {"--cap-add"},  # of docker and podman
    "docs/tutorials/several-hosts.md": {"--kill-on-bad-exit", "--nodes", "--ntasks-per-node", "--time"},  # Slurm's
}
# Pages about a script of ours, whose flags are by themselves there.
SCRIPT_OF = {"docs/explanation/lab.md": "scripts/lab/options.py"}
# Texts of the program that hold flags of other programs, apart from the name of the tool.
ALONE_IN_SOURCES = {
    "reports/compare/host_differences.cpp": {"--query"},  # mlxfwmanager's
    "cli/gather.cpp": {"--zstd"},  # tar's
    "cli/run.cpp": {"--its-option"},  # of any program
    "reports/check_findings.cpp": {"--cap-add"},  # of docker and podman
    "src/runtime/bootstrap/launcher_command.cpp": {"--env", "--export", "--genv"},  # of launchers
    "src/base/secret_filter.cpp": {"--api", "--gmca", "--mca", "--name", "--no-"},
    "src/instruments/check/expectation.cpp": {"--query"},  # mlxfwmanager's
    "src/instruments/doctor/gpu.cpp": {"--reset-applications-clocks", "--reset-gpu-clocks"},  # nvidia-smi's
    "src/instruments/doctor/system.cpp": {"--cap-add"},  # of docker and podman
    "src/instruments/doctor/software.cpp": {"--force-reinstall", "--no-deps"},  # pip's
    "src/instruments/doctor/rdma_siblings.cpp": {"--online"},  # mlxfwmanager's
    "src/instruments/inspect/activity.cpp": {"--pid"},  # py-spy's
    "src/model/topo/advice/check_node.cpp": {"--query-gpu"},  # nvidia-smi's
    "src/runtime/bootstrap/openshmem_library.cpp": {"--export-dynamic-symbol"},  # the linker's
    "transports/verbs/device.cpp": {"--device"},  # of docker and podman
}
COMMENT_OR_STRINGS = re.compile(r'//[^\n]*|/\*.*?\*/|((?:"(?:[^"\\\n]|\\.)*"\s*)+)', re.DOTALL)
TEST_PROGRAMS = re.compile(r"\btest_\w+|\bbench_\w+|\bgpu_litmus\w*")


def own_flags(root):
    flags = {"--help", "--version"}
    for page in (root / "docs" / "reference" / "commands").glob("*.md"):
        for row in re.findall(r"^\| (`.*?) \|", page.read_text(encoding="utf-8"), re.MULTILINE):
            flags.update(FLAG.findall(row))
    return flags


def spans_of(text):
    """(line, text) of each code span, and of each line of a fenced block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"^\s*(```|~~~)", line):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            for span in re.finditer(r"(`+)(.+?)\1", line):
                yield number, span[2]


def unknown_flags(span, own, root):
    """Flags of a span that neither this program has, nor the tool or script before them."""
    unknown = []
    for command in re.split(r"\|\||&&|;|\||\$\(", span):
        for flag in FLAG.finditer(command):
            before = command[:flag.start()]
            words = re.findall(r"[\w./-]+", before)
            # Whoever was named last takes the flag: mpirun before shmemctl, shmemctl before the flag.
            last = next((w for w in reversed(words) if w.split("/")[-1] in FOREIGN or w.endswith("shmemctl")
                         or w.startswith("scripts/") or TEST_PROGRAMS.fullmatch(w.split("/")[-1])), None)
            name = flag[0]
            if name in own:
                continue
            if last and last.split("/")[-1] in FOREIGN:
                allowed = FOREIGN[last.split("/")[-1]]
                if allowed == "*" or name in allowed:
                    continue
            if last and last.startswith("scripts/"):
                files = [root / last] + ([root / last / "options.py"] if (root / last).is_dir() else [])
                files += list((root / last).parent.glob("*.py")) if (root / last).parent.name == "lab" else []
                if any(file.is_file() and name in file.read_text(encoding="utf-8") for file in files):
                    continue
            if last and TEST_PROGRAMS.fullmatch(last.split("/")[-1]):
                continue
            unknown.append(name)
    return unknown


def problems_of(root):
    own = own_flags(root)
    if len(own) < 100:
        return [f"docs/reference/commands names {len(own)} flags only: run scripts/generate_reference.sh"]
    problems = []
    for page in pages_of(root):
        name = str(page.relative_to(root))
        if name.startswith("docs/reference/commands/"):
            continue
        for number, span in spans_of(page.read_text(encoding="utf-8")):
            for flag in unknown_flags(span, own, root):
                script = SCRIPT_OF.get(name)
                if script and flag in (root / script).read_text(encoding="utf-8"):
                    continue
                if flag not in ALONE.get(name, ()):
                    problems.append(f"{name}:{number}: no subcommand has {flag}: {span.strip()[:100]}")
    return problems


def strings_of(text):
    """(line, text) of each string literal of a C++ source; adjacent ones are one."""
    for match in COMMENT_OR_STRINGS.finditer(text):
        if match[1]:
            literal = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))
            yield text.count("\n", 0, match.start()) + 1, literal.replace("\\n", "\n")


def problems_of_sources(root, own):
    problems = []
    for folder in ("cli", "kernels", "reports", "src", "transports"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            name = str(path.relative_to(root))
            for number, literal in strings_of(path.read_text(encoding="utf-8")):
                for line in literal.split("\n"):
                    for flag in unknown_flags(line, own, root):
                        if flag not in ALONE_IN_SOURCES.get(name, ()):
                            problems.append(f"{name}:{number}: no subcommand has {flag}: {line.strip()[:100]}")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    problems = problems_of(root) + problems_of_sources(root, own_flags(root))
    print("\n".join(problems) or "every flag exists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
