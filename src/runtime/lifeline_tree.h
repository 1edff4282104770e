// Which PEs hold a connection to each other.
#pragma once

#include <vector>

namespace shmemctl::lifeline {

/// The connections that `rank` opens: to its parent in the binary tree over all ranks and to its
/// grandparent; PE 2, which has none, connects to its sibling PE 1. So no single PE, dead or
/// stopped, cuts the others apart: its children reach its parent, and the root's children each
/// other.
std::vector<int> connects_to(int rank, int size);
/// The connections that `rank` accepts, ascending.
std::vector<int> accepts_from(int rank, int size);
/// Both, ascending: at most 8.
std::vector<int> neighbours(int rank, int size);

} // namespace shmemctl::lifeline
