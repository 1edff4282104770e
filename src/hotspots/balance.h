// Which port carries more than its siblings.
#pragma once

#include <string>
#include <vector>

#include "src/hotspots/load.h"

namespace shmemctl {

/// When a load stands out. All of these have to hold for it.
struct OutlierSettings {
  double mads = 3.5;          ///< so many 1.4826 * MAD above the median
  double link_share = 0.1;    ///< and so much of its link's rate above it
  double ratio = 2;           ///< and so many times it, where no link rate is known
  double GBps = 0.001;        ///< and so much above it, whatever the link
  double packets_per_s = 100; ///< the same where packets are all that can be told
  bool ratio_too = false;     ///< `ratio` counts where the link's rate is known as well
};
/// For loads that are means over a job with its pauses: a tenth of the share of the link, but
/// `ratio` times the median in any case.
OutlierSettings over_a_job(OutlierSettings settings);

/// Ports that ought to carry alike, in one direction: those of the fabric of one host (kind
/// "node"), or those in the same place on all hosts (kind "rail").
struct LoadGroup {
  std::string kind, name; ///< of a node the host, of a rail its number
  WireDirection direction = WireDirection::sent;
  bool packets = false;             ///< loads are packets/s, as a port has no rate in bytes
  std::vector<std::size_t> members; ///< indices of the loads
  std::vector<std::size_t> unknown; ///< ports of the group that cannot be compared
  double median = 0, mad = 0;       ///< GB/s or packets/s; mad: 1.4826 * median distance
  double skew = 1;                  ///< the largest over the mean; 1 if there is no load
  std::vector<std::size_t> hot, low;
};

/// One load against the others of its group: robust, so that one port cannot hide itself by moving
/// the mean. With two or three ports each is compared with the others only.
std::vector<LoadGroup> judge_balance(const std::vector<PortLoad>& loads,
                                     const OutlierSettings& settings);

/// What a port carries in the group's unit.
double load_in(const LoadGroup& group, const PortLoad& load);

} // namespace shmemctl
