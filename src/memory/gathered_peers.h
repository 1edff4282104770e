// LocalPeers for PEs that cannot hand each other descriptors: on other machines.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/memory/local_peers.h"

namespace shmemctl {

/// A file without a name that holds these bytes: a handle where a descriptor is asked for. Throws
/// Error (unavailable).
FileDescriptor file_of_handle(const std::string& bytes);
/// What such a file holds; "" if it is none, or holds more than a handle has.
std::string handle_in_file(int file);

/// What everybody's file holds (a handle of at most 64 bytes) is told to everybody, and comes in a
/// file of its own.
/// @param pes    the PE of each slot
/// @param gather collective over the job, which has the same exchanges everywhere, also of PEs that
///               are in another group: what each PE says, by PE
std::unique_ptr<LocalPeers>
make_gathered_peers(std::vector<int> pes, int my_slot,
                    std::function<std::vector<std::string>(const std::string&)> gather);

} // namespace shmemctl
