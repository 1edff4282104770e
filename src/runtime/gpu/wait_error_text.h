// The error text for a kernel's wait report.
#pragma once

#include <string>

#include "src/abi/device_job.h"
#include "src/base/error.h"

namespace shmemctl {

/// The parts of an Error, but for the kernel that it happened in: `attempted` ends with "in".
struct WaitErrorText {
  ExitCode code;
  std::string attempted, message, fix;
};

/// Whether the report concerns the kernels' network: then DeviceNetworkPart has the text.
bool is_of_network(WaitKind kind);
/// Whether the report is of a call with wrong arguments, or of one that ends the job, so that its
/// thread, call and argument are set.
bool is_of_call(WaitKind kind);
/// The text for all other kinds.
/// @param pe      whose kernel it was
/// @param no_path why kernels have no path to the report's peer; "" if that is not known
WaitErrorText describe_wait(const WaitReport& report, int pe, double timeout_s,
                            const std::string& no_path);

} // namespace shmemctl
