// Xids: the numbers by which NVIDIA's driver tells the kernel's log, and NVML, what went wrong with
// a GPU. Their meaning does not change between drivers.
#pragma once

#include <cstdint>

namespace shmemctl {

struct XidMeaning {
  const char* words; ///< what has happened, in a few words
  const char* fix;   ///< what to do; nullptr: it depends on the program that ran
};

/// Returns nullptr for a number that is not in the table: video engines', displays', rare ones.
const XidMeaning* meaning_of_xid(std::uint64_t number);

} // namespace shmemctl
