// What a transport says of regions of GPU memory that has no NIC which could reach them. Reports
// tell by it that nothing is missing.
#pragma once

namespace shmemctl {

inline constexpr const char* host_memory_only = "reaches memory of the host only";

} // namespace shmemctl
