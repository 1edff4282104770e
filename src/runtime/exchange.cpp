#include "src/runtime/exchange.h"

#include <algorithm>
#include <cstdint>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::uint64_t max_text_bytes = 1 << 20;

std::uint64_t longest_of(const std::vector<std::string>& texts) {
  std::uint64_t longest = 0;
  for (const std::string& text : texts)
    longest = std::max<std::uint64_t>(longest, text.size());
  return longest;
}

} // namespace

std::vector<std::string> BootstrapExchange::allgather(const std::string& own) {
  return allgather_text(bootstrap_, own, deadline_);
}

std::vector<std::string> BootstrapExchange::alltoall(const std::vector<std::string>& to_each) {
  const auto n_pes = static_cast<std::size_t>(bootstrap_.size());
  if (to_each.size() != n_pes)
    throw Error(ExitCode::unavailable, "connection data", "exchange",
                "data for " + std::to_string(to_each.size()) + " of " + std::to_string(n_pes) +
                    " PEs",
                "report this as a bug in shmemctl, with the command line");
  const std::vector<std::uint64_t> lengths =
      allgather_value(bootstrap_, longest_of(to_each), deadline_);
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest > max_text_bytes)
    throw Error(ExitCode::unavailable, "connection data", "exchange",
                "a PE announced " + std::to_string(longest) + " bytes, more than the limit of " +
                    std::to_string(max_text_bytes),
                "run the same version of shmemctl on all hosts");
  // Each block begins with the length of its text, since texts may contain any byte.
  const std::size_t block_bytes = sizeof(std::uint64_t) + static_cast<std::size_t>(longest);
  std::string out(n_pes * block_bytes, '\0'), in(n_pes * block_bytes, '\0');
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    const std::uint64_t length = to_each[pe].size();
    std::copy_n(reinterpret_cast<const char*>(&length), sizeof length, &out[pe * block_bytes]);
    std::copy(to_each[pe].begin(), to_each[pe].end(), &out[pe * block_bytes + sizeof length]);
  }
  bootstrap_.alltoall(out.data(), in.data(), block_bytes, deadline_);
  std::vector<std::string> texts;
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    std::uint64_t length = 0;
    std::copy_n(&in[pe * block_bytes], sizeof length, reinterpret_cast<char*>(&length));
    texts.push_back(in.substr(pe * block_bytes + sizeof length, std::min(length, longest)));
  }
  return texts;
}

void register_region(const std::vector<Transport*>& transports, const RegionView& region,
                     Exchange& exchange) {
  for (Transport* transport : transports) {
    const std::string key = transport->set_region(region);
    if (transport->has_keys())
      transport->set_keys(region.region, exchange.allgather(key));
  }
}

} // namespace shmemctl
