"""What a page of the documentation shows, and whether the program writes that.

A line of a page that is only "…" stands for any lines, and "…" within a line for any text. Output that is
computed from recorded files is compared to the letter (`unaligned`). Of what was measured, `measured` leaves the
form: headers, names of columns, which rows there are, verdicts, findings; not figures, and not what only some
machines say of themselves, such as that other programs disturbed the measurement.
"""
import re
import socket

# Findings about the machine that measured. They come and go with its load and its number of cores.
OF_THE_MACHINE = ("bench-above-limit", "bench-drift", "bench-interference", "bench-noisy", "bench-oversubscribed",
                  "bench-slow-pair", "bench-stall", "bench-tcp-retransmits", "bench-unpinned", "moe-slow-link",
                  "moe-slow-rank", "moe-slow-receiver")
HOST_OF_THE_PAGES = "vm"
NUMBER = re.compile(r"\d[\d.]*(?:e[-+]\d+)?")
FINDING = re.compile(r"\[([x!i])\] ([a-z0-9-]+)( ×\d+)?  ")
VALUES = r"((?:[\d.e+-]+(?:%!?)? +)*[\d.e+-]+(?:%!?)?)"
ROW = re.compile(r" *(?:([a-z-]+)|(\d+[KMG]?)) +" + VALUES + r" +(passed|failed|unchecked)")
SUMMARY = re.compile(r"(?:\d+ GPUs?, \d+ NICs?\. )?(\d+ results? \(.*\))\. (?:No findings|\d+ findings? \(.*\))\.")
HEADER = re.compile(r"  (command|job|CPUs|GPUs|path)  ")
# What columns need or mean, said below tables where the samples were few.
OF_COLUMNS = re.compile(r"p99 takes \d+ samples: |GB/s counts all rows ")
WIDEST = 100


def commands_of(page):
    """(command, the lines that the page shows of its output) of all blocks; of `sh` blocks nothing is shown."""
    found = []
    for kind, body in re.findall(r"^```(console|sh)\n(.*?)^```$", page, re.M | re.S):
        if kind == "sh":
            found.append((body, None))
            continue
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            lines = part.splitlines()
            command = [lines.pop(0)]
            while command[-1].endswith("\\"):
                command.append(lines.pop(0))
            found.append(("\n".join(command), lines))
    return found


def console_commands(path, word):
    """Those of which the page shows output, and that have this word, in the order of the page."""
    return [(command, shown) for command, shown in commands_of(path.read_text(encoding="utf-8"))
            if shown is not None and word in command]


def unaligned(line):
    return re.sub(r"[ \t]+", " ", line).strip()


def masked(line):
    """Without what another run changes."""
    return unaligned(NUMBER.sub("#", line))


def difference(shown, written, form):
    """The first line that differs; "" if the output is as it is shown."""
    at, skipping = 0, False
    for line in shown:
        if line.strip() == "…":
            skipping = True
            continue
        wanted = re.compile(".*".join(re.escape(form(part)) for part in line.split("…")))
        end = len(written) if skipping else at + 1
        found = next((i for i in range(at, min(end, len(written))) if wanted.fullmatch(form(written[i]))), None)
        if found is None:
            return f"shown: {line!r}, written: {written[at:at + 3]}"
        at, skipping = found + 1, False
    return "" if skipping or at == len(written) else f"not shown: {written[at:at + 3]}"


def without_hosts(line):
    """Names of machines and of their interfaces, and where the program lies."""
    hosts = {socket.gethostname(), socket.gethostname().split(".")[0], HOST_OF_THE_PAGES}
    line = re.sub(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(hosts, reverse=True))) + r")(?![\w-])", "HOST", line)
    line = re.sub(r"(?<=\s)/\S*/(?=(?:shmemctl|mpirun|srun)\b)", "", line)
    return re.sub(r"(?<=by libfabric )\S.*$", "INTERFACE", line)


def joined(lines):
    """Without the breaks of long lines: a line that goes on is indented deeper than any that begins."""
    out = []
    for line in lines:
        if line.startswith("    ") and not line.lstrip().startswith("fix:") and out and not ROW.fullmatch(line) \
                and out[-1].strip() and not ROW.fullmatch(out[-1]):
            out[-1] += " " + line.strip()
        else:
            out.append(line)
    return out


def measured(lines):
    """The form of what was measured, a line for each thing that is said."""
    out, dropping = [], False
    for line in joined(lines):
        line = without_hosts(line).rstrip()
        finding = FINDING.match(line)
        if finding or not line.startswith(" "):
            dropping = False
        if finding and finding[2] in OF_THE_MACHINE:
            dropping = True  # and its fix
        if re.match(r"[a-z ]+: how long a PE waits for another", line):
            dropping = True  # shown where a rank is slow
        if dropping or not line.strip() or OF_COLUMNS.match(line) or \
                re.match(r"[a-z-]+: (! above|cores used: )", line):
            continue
        header, row, summary = HEADER.match(line), ROW.fullmatch(line), SUMMARY.fullmatch(line)
        if re.fullmatch(r"shmemctl \S+ \(.*\), \d{4}-\d\d-\d\dT[\d:.]+Z", line):
            out.append("shmemctl VERSION (REVISION), DATE")
        elif header and header[1] in ("CPUs", "GPUs", "path"):  # this machine's
            out.extend(["CPUs"] if header[1] == "CPUs" else [])
        elif row:
            out.append(f"row {row[1] or ''} {row[2] or ''}: {len(row[3].split())} values, {row[4]}")
        elif line.startswith(("bounded by: ", "to try: ")):
            out.append(line.split(":")[0])
        elif summary:
            out.append(summary[1])
        elif re.match(r" +size |case ", line) or header:
            out.append(unaligned(line))
        else:
            out.append(masked(line))
    return out


def measured_difference(shown, written):
    return difference(measured(shown), measured(written), unaligned)


def too_wide(written):
    """Lines of tables and headers with more than 100 columns. Sentences are as long as they are where no terminal
    breaks them."""
    return [line for line in written if len(line) > WIDEST and not line.startswith("    fix: ") and
            (ROW.fullmatch(line) or HEADER.match(line) or re.match(r"(case|size)? {2}", line))]
