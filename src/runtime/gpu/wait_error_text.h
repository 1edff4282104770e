// The error text for a kernel's wait report.
#pragma once

#include <string>

#include "src/abi/device_job.h"
#include "src/base/error.h"

namespace shmemctl {

/// The parts of an Error, except the subject, which names the kernel.
struct WaitErrorText {
  ExitCode code;
  std::string attempted, message, fix;
};

/// Whether the report concerns the kernels' network: DeviceNetworkPart::error_of() then makes the
/// Error, or describe_wait() if kernels of this PE have no network.
bool is_of_network(WaitKind kind);
/// Whether the report is about a call that its arguments, the other members' calls or a transfer
/// forbid, or one that ends the job; its thread, call and argument are then set.
bool is_of_call(WaitKind kind);
/// The text for all kinds; for those of the network, if kernels of this PE have no network.
/// @param pe      the PE of the kernel
/// @param no_path why kernels have no path to the report's peer; "" if unknown
WaitErrorText describe_wait(const WaitReport& report, int pe, double timeout_s,
                            const std::string& no_path);

} // namespace shmemctl
