// Whether a person reads the terminal, and whether output could be written.
#pragma once

#include <string>

#include "src/base/options.h"

namespace shmemctl {

/// Whether this descriptor is a terminal that a person reads. Open MPI's launcher (mpirun, oshrun,
/// prterun) gives each rank a pseudo terminal and copies its output to its own: under it, and in
/// any job of several processes, no descriptor counts as a terminal.
bool is_terminal(int descriptor, const Environment& environment);

/// Columns of the terminal on stdout; 0 if stdout is not a terminal, or the width is unknown.
int terminal_width(const Environment& environment);

/// Columns of --help: those of the terminal on stdout, else COLUMNS, else 80; at most 100, because
/// longer lines are hard to read.
int help_width(const Environment& environment);

/// Whether text for stdout has colours. `color` is the option's value: always or never decide. With
/// auto, in this order: NO_COLOR (not empty) disables; CLICOLOR_FORCE or FORCE_COLOR (neither empty
/// nor 0) enables, also in pipes and files; CLICOLOR=0 and TERM=dumb disable; a terminal enables.
bool wants_color(const std::string& color, const Environment& environment);

/// Opens a file for each of the descriptors 0, 1 and 2 that is closed, so that no other file gets
/// their number: stdin is empty, stderr discards, and writes to stdout fail, so that lost output is
/// noticed. Call first in main().
void hold_standard_descriptors();

/// For a run that writes a report file: a reader of stdout that goes away (`| head -1`, a launcher
/// that was killed) does not end the run. What is printed then is lost; processes that are started
/// later are still ended by SIGPIPE.
void outlive_reader_of_stdout();

/// Throws Error (unavailable) with the system's message if a write to stdout has failed so far.
/// @return false if nobody reads stdout any more, but the run may continue
bool require_stdout();

} // namespace shmemctl
