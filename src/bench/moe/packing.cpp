#include "src/bench/moe/packing.h"

#include "src/moe/plan.h"

namespace shmemctl::moe {

Packing packing_of(const Shape& shape, const std::vector<const std::int32_t*>& choices,
                   std::int32_t rank) {
  Packing packing;
  packing.counts.resize(static_cast<std::size_t>(shape.local_experts()));
  for (const std::int32_t* const of_row : choices)
    for (std::int32_t k = 0; k < shape.top_k; ++k) {
      const std::int32_t local = shape.local_expert(of_row[k], rank);
      // Its number among the expert's rows; where these begin is known when all are counted.
      packing.places.push_back(
          local == no_expert ? -1 : packing.counts[static_cast<std::size_t>(local)]++);
    }
  packing.offsets.push_back(0);
  for (const std::int32_t count : packing.counts)
    packing.offsets.push_back(packing.offsets.back() +
                              aligned_count(count, shape.expert_alignment));
  std::size_t next = 0;
  for (const std::int32_t* const of_row : choices)
    for (std::int32_t k = 0; k < shape.top_k; ++k, ++next)
      if (const std::int32_t local = shape.local_expert(of_row[k], rank); local != no_expert)
        packing.places[next] += packing.offsets[static_cast<std::size_t>(local)];
  return packing;
}

} // namespace shmemctl::moe
