// What a token's choices are expected to be, where a formula says it.
#pragma once

#include <cstdint>
#include <vector>

#include "src/sim/moe_traffic.h"

namespace shmemctl::sim {

/// Chances of one token. Known for every routing whose choices are drawn evenly from a set of
/// experts (uniform, one-rank, hot-expert, empty-ranks, grouped), not for zipf nor a file.
///
/// Of A allowed experts k are drawn, none twice; each is then masked with chance p. A place that
/// has h of the allowed experts gets nothing with chance
///   miss(A, h, k) = sum over j of C(h, j) C(A - h, k - j) / C(A, k) * p^j
/// which is C(A - h, k) / C(A, k) without masks.
class Expectation {
public:
  static bool known_for(const MoeTraffic& traffic);
  explicit Expectation(const MoeTraffic& traffic);

  /// That at least one choice is among these experts.
  double hit(const std::vector<std::int32_t>& experts) const;

private:
  double grouped_miss(const std::vector<std::int32_t>& experts) const;

  std::vector<bool> allowed_;
  std::int32_t n_allowed_ = 0, drawn_ = 0;
  std::int32_t always_ = -1; ///< an expert that every token chooses
  double masked_ = 0;
  std::int32_t groups_ = 0, top_groups_ = 0, group_size_ = 0; ///< 0: no groups
};

/// miss(A, h, k) of above.
double miss_chance(std::int32_t allowed, std::int32_t here, std::int32_t drawn, double masked);

/// Adds what is expected of one call to `loads`.
void add_expected(const MoeTraffic& traffic, MoeLoads& loads);

} // namespace shmemctl::sim
