// Which experts each token chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "src/moe/shape.h"

namespace shmemctl::moe {

/// What one rank sends: its tokens' choices.
struct RankRouting {
  std::int32_t top_k = 1;
  std::vector<std::int32_t> experts; ///< of token t from t * top_k on; no_expert where masked
  std::int32_t tokens() const { return static_cast<std::int32_t>(experts.size()) / top_k; }
  const std::int32_t* choices(std::int32_t token) const {
    return experts.data() + static_cast<std::ptrdiff_t>(token) * top_k;
  }
};

/// Of all ranks.
using Routing = std::vector<RankRouting>;

} // namespace shmemctl::moe
