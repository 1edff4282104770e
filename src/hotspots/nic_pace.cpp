#include "src/hotspots/nic_pace.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/quantiles.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr double slow_share = 0.6;
constexpr std::uint64_t enough_bytes = std::uint64_t{4} << 20;
constexpr std::size_t most_named = 4;

struct PortRate {
  std::string host;
  HcaPort port;
  std::uint64_t bytes = 0;
  double MBps = 0;

  std::string name() const { return port.device + ":" + std::to_string(port.port); }
};

std::vector<PortRate> rates_of(const std::vector<PortClaim>& claims) {
  std::vector<PortRate> rates;
  for (const PortClaim& claim : claims) {
    const NicTraffic& traffic = claim.traffic;
    if (traffic.long_bytes == 0 || traffic.long_ns == 0)
      continue;
    auto found = std::find_if(rates.begin(), rates.end(), [&](const PortRate& rate) {
      return rate.host == claim.host && rate.port == traffic.nic;
    });
    if (found == rates.end())
      found = rates.insert(rates.end(), {claim.host, traffic.nic});
    found->bytes += traffic.long_bytes;
    // Bytes in a nanosecond are GB/s.
    found->MBps +=
        1e3 * static_cast<double>(traffic.long_bytes) / static_cast<double>(traffic.long_ns);
  }
  std::erase_if(rates, [](const PortRate& rate) { return rate.bytes < enough_bytes; });
  return rates;
}

std::vector<const PortRate*> siblings_of(const PortRate& rate, const std::vector<PortRate>& rates) {
  std::vector<const PortRate*> here, all;
  for (const PortRate& other : rates) {
    if (&other == &rate)
      continue;
    all.push_back(&other);
    if (other.host == rate.host)
      here.push_back(&other);
  }
  return here.empty() ? all : here;
}

Finding finding_of(const PortRate& rate, const std::vector<const PortRate*>& siblings,
                   double usual_MBps) {
  std::vector<std::string> names;
  for (const PortRate* sibling : siblings)
    names.push_back((sibling->host == rate.host ? "" : sibling->host + " ") + sibling->name());
  if (names.size() > most_named) {
    const std::size_t more = names.size() - most_named;
    names.resize(most_named);
    names.push_back(fmt::format("{} more", more));
  }
  return {"slow-nic", Severity::warning, rate.host + " " + rate.name(),
          fmt::format("long transfers went at {:.1f} MB/s through {} of {}, and at {:.1f} MB/s{} "
                      "through {}",
                      rate.MBps, rate.name(), rate.host, usual_MBps,
                      siblings.size() > 1 ? " (median)" : "", join(names, ", ")),
          "look at its link, cable and switch port (ibstat, ethtool), its PCIe link (shmemctl "
          "topo) and the port at the other end (shmemctl bringup); HCA_LIST=^" +
              rate.port.device + " leaves it out"};
}

} // namespace

Findings judge_paces(const std::vector<PortClaim>& claims) {
  const std::vector<PortRate> rates = rates_of(claims);
  Findings findings;
  for (const PortRate& rate : rates) {
    const std::vector<const PortRate*> siblings = siblings_of(rate, rates);
    if (siblings.empty())
      continue;
    std::vector<double> theirs;
    for (const PortRate* sibling : siblings)
      theirs.push_back(sibling->MBps);
    const double usual_MBps = median(std::move(theirs));
    if (rate.MBps < slow_share * usual_MBps)
      findings.push_back(finding_of(rate, siblings, usual_MBps));
  }
  return findings;
}

} // namespace shmemctl
