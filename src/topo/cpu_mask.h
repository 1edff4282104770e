// CPU masks as the kernel and NCCL write them, and Linux cpulists.
#pragma once

#include <optional>
#include <string>

namespace shmemctl {

/// "00000000,000fffff" (32-bit words in hexadecimal, the most significant first) to "0-19"; "" for
/// a mask of zeros; nothing if it is no mask or wider than 65536 CPUs.
std::optional<std::string> cpulist_of_mask(const std::string& mask);

/// The reverse, with as few words as the list needs; nothing if it is no cpulist or names a CPU
/// from 65536 on.
std::optional<std::string> mask_of_cpulist(const std::string& cpulist);

} // namespace shmemctl
