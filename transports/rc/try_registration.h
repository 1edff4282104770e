// Whether memory of a GPU can be registered.
#pragma once

#include <string>

#include "src/base/error.h"
#include "transports/device_memory_user.h"

namespace shmemctl::rc {

/// @param attempt registers memory, lets it go, and returns by which method; throws Error if it
/// cannot
template <class Attempt>
DeviceReach try_registration(Attempt&& attempt) {
  try {
    return {attempt(), ""};
  } catch (const Error& error) {
    return {"", (error.where().device.empty() ? "" : error.where().device + ": ") +
                    error.system_message()};
  }
}

} // namespace shmemctl::rc
