// What Rma knows of GPU memory: where processors must not go.
#include <algorithm>

#include "src/base/error.h"
#include "src/runtime/rma.h"

namespace shmemctl {

/// @param region as processors may use it: parts that they may are of no interest
void Rma::set_gpu_span(const RegionView& region) {
  const RegionView& whole = regions_[static_cast<std::size_t>(region.region)];
  std::uintptr_t begin = gpu_begin_, end = begin + gpu_span_;
  for (std::size_t pe = 0; pe < whole.mapped.size(); ++pe) {
    if (!whole.mapped[pe] || region.mapped[pe])
      continue;
    const auto first = reinterpret_cast<std::uintptr_t>(whole.mapped[pe]);
    begin = begin == end ? first : std::min(begin, first);
    end = std::max(end, first + whole.size_bytes);
  }
  gpu_span_ = end - begin; // first: who sees only this checks more than it has to
  gpu_begin_ = begin;
}

bool Rma::is_gpu_memory(const void* address) const {
  if (!near_gpu_memory(address))
    return false;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const int number : {region::gpu_heap, region::gpu_cells}) {
    const RegionView& region = regions_[static_cast<std::size_t>(number)];
    for (const std::byte* part : region.mapped)
      if (part && at - reinterpret_cast<std::uintptr_t>(part) < region.size_bytes)
        return true;
  }
  return false;
}

void Rma::require_local(const RemoteAddress& address, const void* local) const {
  if (is_gpu_region(address.region) || !is_gpu_memory(local))
    return;
  throw Error(ExitCode::usage,
              "transfer between local GPU memory and host memory of PE " +
                  std::to_string(address.pe),
              "", "no transport supports it",
              "copy the data to host memory first, or use symmetric GPU memory on both sides");
}

} // namespace shmemctl
