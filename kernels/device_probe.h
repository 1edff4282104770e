// Test of each GPU: runs a kernel of this binary, and reads back the memory that it wrote.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shmemctl {

/// Result of one device.
struct DeviceProbe {
  int device = 0;
  std::string name;
  bool passed = false;
  std::string error; ///< the failed call with CUDA's own message, or the first wrong word; "" if ok
};

/// On every visible device, in CUDA's order: a kernel writes `words` 64-bit words that depend on
/// their index and on the device, and the host compares each of them. Takes milliseconds per device
/// that has a context, and a few hundred more to create one. Returns an empty vector if there is no
/// device; `why` then holds the reason (no driver, no device, built without CUDA).
std::vector<DeviceProbe> probe_devices(std::string& why, std::size_t words = 1 << 20);

} // namespace shmemctl
