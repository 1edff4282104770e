// The expected content of a received row's record.
#pragma once

#include "kernels/moe/token_metadata.h"
#include "src/model/moe/oracle.h"

namespace shmemctl::moe {

/// Whether a record that `me` received contains the source, token, choices and weights of that row.
inline bool is_record_of(const Shape& shape, const MetadataLayout& layout, const Routing& routing,
                         std::uint32_t seed, std::int32_t me, const RowSource& row,
                         const std::uint32_t* record) {
  bool ok = record[layout.source()] == static_cast<std::uint32_t>(row.rank) &&
            record[layout.token()] == static_cast<std::uint32_t>(row.token);
  const std::uint32_t key = row_key(seed, row.rank, row.token);
  const std::int32_t* const choices =
      routing[static_cast<std::size_t>(row.rank)].choices(row.token);
  for (std::int32_t k = 0; k < shape.top_k; ++k) {
    const std::int32_t local = shape.local_expert(choices[k], me);
    const float weight = local == no_expert ? 0 : payload_weight(key, k);
    ok = ok && record[layout.experts() + k] == static_cast<std::uint32_t>(local) &&
         record[layout.weights() + k] == bits_of(weight);
  }
  return ok;
}

} // namespace shmemctl::moe
