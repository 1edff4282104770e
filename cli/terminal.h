// Whether somebody looks at a terminal, and whether what was written for people could be written.
#pragma once

#include "src/base/options.h"

namespace shmemctl {

/// Whether this descriptor is a terminal that a person looks at. Open MPI's launcher (mpirun,
/// oshrun, prterun) gives each rank a pseudo terminal, and copies what comes out of it to wherever
/// its own output goes: under it, and in any job of several processes, no descriptor counts as one.
bool is_terminal(int descriptor, const Environment& environment);

/// Columns of the terminal that stdout is; 0 if it is none, or does not say.
int terminal_width(const Environment& environment);

/// Puts something under those of the descriptors 0, 1 and 2 that are closed, so that no file of
/// ours gets their number: stdin reads nothing, stderr swallows, and stdout refuses, so that what
/// is written to it is known to be lost. First of all in main().
void hold_standard_descriptors();

/// Throws Error (unavailable) with the system's message if stdout has refused anything so far.
void require_stdout();

} // namespace shmemctl
