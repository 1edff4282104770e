// What `hotspots --watch` shows: a page like top's on a terminal, lines for a log elsewhere.
#pragma once

#include <ostream>

#include "reports/table.h"
#include "src/hotspots/hotspots.h"

namespace shmemctl {

class HotspotLog {
public:
  /// @param page redraw the terminal instead of adding lines
  HotspotLog(std::ostream& out, const TextStyle& style, bool page)
      : out_(out), style_(style), page_(page) {}
  /// What happened since the last call.
  void show(const Hotspots& now, const NicThresholds& thresholds);

private:
  std::ostream& out_;
  TextStyle style_;
  bool page_;
};

/// One line for each link: time, host, NIC, rates, way, and what is wrong:
/// "2026-11-23T00:10:00.000Z node7 mlx5_0:1 sent 38.1 GB/s 76% received 0 GB/s 0% sent HOT".
std::string log_lines(const Hotspots& now, const std::string& time);

} // namespace shmemctl
