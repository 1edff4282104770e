// Polling a CQ.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <string>

#include "src/base/error.h"

namespace shmemctl::verbs {

/// ibv_poll_cq. Returns the number of completions.
/// @param where returns this PE, for the error
/// @throw Error (unavailable) if the device cannot be polled
template <std::size_t n, class GetWhere>
int poll_completions(ibv_cq* queue, std::array<ibv_wc, n>& completions, GetWhere&& where) {
  const int count = ::ibv_poll_cq(queue, static_cast<int>(n), completions.data());
  if (count < 0) [[unlikely]] {
    Where at = where();
    at.device = queue->context->device->name;
    throw Error(ExitCode::unavailable, "CQ", "read completions",
                "ibv_poll_cq returned " + std::to_string(count), "check the kernel log: dmesg",
                std::move(at));
  }
  return count;
}

} // namespace shmemctl::verbs
