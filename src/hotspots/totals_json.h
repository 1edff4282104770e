// What one host counted, as text for another one.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "src/hotspots/totals.h"

namespace shmemctl {

/// Which counters go along where not all of them have room.
enum class CounterDetail {
  all,
  changed, ///< those that moved, that tell how much a port carries, or that tell nothing
  load,    ///< those that tell how much a port carries
  none
};

/// Small: most counters of a healthy NIC stand still, and ports of a host have the same ones.
nlohmann::json totals_json(const NodeTotals& totals, CounterDetail detail);

/// The most detail that fits into that many bytes of text; `none` if nothing does.
CounterDetail detail_within(const NodeTotals& totals, std::size_t most_bytes);

/// What totals_json() says. Counters that did not go along are in no port.
/// @param left_out is set to how many these are
/// Throws std::exception for what is no such object, and for numbers that no counter can have.
NodeTotals totals_from_json(const nlohmann::json& object, std::size_t& left_out);

} // namespace shmemctl
