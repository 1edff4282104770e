// All-to-all with strides.
#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "src/runtime/collectives.h"

namespace shmemctl {

namespace {

/// One block on its way from here to one member.
struct StridedBlock {
  std::byte* target; ///< address here; on the member it is the same symmetric address
  const std::byte* source;
  std::size_t target_step_bytes, source_step_bytes;
  std::size_t elements, element_bytes;
};

template <std::size_t element_bytes>
void copy_elements(const StridedBlock& block, std::byte* to) {
  for (std::size_t i = 0; i < block.elements; ++i)
    std::memcpy(to + i * block.target_step_bytes, block.source + i * block.source_step_bytes,
                element_bytes);
}

/// Copies of a length that the compiler knows, where it is a usual one.
void copy_elements(const StridedBlock& block, std::byte* to) {
  switch (block.element_bytes) {
  case 1:
    return copy_elements<1>(block, to);
  case 2:
    return copy_elements<2>(block, to);
  case 4:
    return copy_elements<4>(block, to);
  case 8:
    return copy_elements<8>(block, to);
  case 16:
    return copy_elements<16>(block, to);
  default:
    for (std::size_t i = 0; i < block.elements; ++i)
      std::memcpy(to + i * block.target_step_bytes, block.source + i * block.source_step_bytes,
                  block.element_bytes);
  }
}

/// To a member that is not mapped here. Elements that follow each other at the target are packed
/// into the scratch memory; others go one by one.
void put_elements(const StridedBlock& block, Rma& rma, int pe, TeamSync& area) {
  if (block.target_step_bytes != block.element_bytes ||
      block.element_bytes > limits::team_scratch_bytes) {
    for (std::size_t i = 0; i < block.elements; ++i)
      rma.put(block.target + i * block.target_step_bytes,
              block.source + i * block.source_step_bytes, block.element_bytes, pe, 0, false);
    return;
  }
  const std::size_t pack = limits::team_scratch_bytes / block.element_bytes;
  for (std::size_t first = 0; first < block.elements; first += pack) {
    StridedBlock part = block;
    part.source += first * block.source_step_bytes;
    part.elements = std::min(pack, block.elements - first);
    copy_elements(part, area.scratch);
    rma.put(block.target + first * block.element_bytes, area.scratch,
            part.elements * block.element_bytes, pe, 0, true);
  }
}

} // namespace

void Collectives::alltoalls(TeamId team, void* target, const void* source,
                            std::ptrdiff_t target_stride, std::ptrdiff_t source_stride,
                            std::size_t elements, std::size_t element_bytes) {
  if (target_stride < 1 || source_stride < 1)
    throw Error(ExitCode::usage, "alltoalls", "", "invalid stride: it is less than 1",
                "pass strides of at least 1 element");
  teams_.sync(team);
  const int n = teams_.n_pes(team), me = teams_.my_pe(team);
  const std::size_t target_step = static_cast<std::size_t>(target_stride) * element_bytes;
  const std::size_t source_step = static_cast<std::size_t>(source_stride) * element_bytes;
  for (int step = 1; step <= n && elements > 0 && element_bytes > 0; ++step) {
    const int member = (me + step) % n;
    const int pe = teams_.world_pe(team, member);
    const StridedBlock block{static_cast<std::byte*>(target) +
                                 static_cast<std::size_t>(me) * elements * target_step,
                             static_cast<const std::byte*>(source) +
                                 static_cast<std::size_t>(member) * elements * source_step,
                             target_step,
                             source_step,
                             elements,
                             element_bytes};
    if (void* direct = teams_.rma().direct(block.target, pe))
      copy_elements(block, static_cast<std::byte*>(direct));
    else
      put_elements(block, teams_.rma(), pe, teams_.area(team));
  }
  barrier(team);
}

} // namespace shmemctl
