// NVLink domains that span machines: whether this PE's GPU is in one, and can share memory there.
#pragma once

#include <memory>
#include <string>

#include "src/cuda/device.h"

namespace shmemctl {

/// "<cluster>.<clique>" of the device's NVLink domain, if it has handles that reach its other
/// machines and the driver lets this process make them; else "", and `why`: one clause.
std::string fabric_domain(const std::shared_ptr<const cuda::Device>& device,
                          const std::string& nvml_library, std::string& why);

} // namespace shmemctl
