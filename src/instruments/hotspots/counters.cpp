// Counters of a NIC: the text that a driver or the kernel prints for one, and the difference
// between two readings.
#include "src/instruments/hotspots/counters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <set>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_lines = 4096;
constexpr std::uint64_t largest_count = std::numeric_limits<std::int64_t>::max();

CounterText no_value(std::string problem) {
  return {std::nullopt, std::move(problem)};
}

/// Whether a driver may use this name: up to 64 characters, though ethtool's own have up to 32.
bool is_counter_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 127; });
}

} // namespace

CounterText parse_counter_text(std::string_view text) {
  text = trim(text);
  if (text.empty())
    return no_value("is empty");
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if (whole && error == std::errc() && value <= largest_count)
    return {value, ""};
  const std::string shown = "reads \"" + printable(std::string(text.substr(0, 40)), 40) + "\"";
  if (whole && value == std::numeric_limits<std::uint64_t>::max())
    return no_value(shown + ", which is -1: the driver does not count this");
  return no_value(shown + (whole ? ", larger than any counter value" : ""));
}

std::vector<NamedCounter> parse_ethtool_text(std::string_view text) {
  std::vector<NamedCounter> counters;
  std::set<std::string_view> seen;
  for (std::size_t line = 0; line < max_lines && !text.empty(); ++line) {
    const std::string_view whole = take_line(text);
    const std::size_t colon = whole.rfind(':');
    if (colon == std::string_view::npos)
      continue;
    const std::string_view name = trim(whole.substr(0, colon));
    const std::string_view value = trim(whole.substr(colon + 1));
    if (!is_counter_name(name) || value.empty() || !seen.insert(name).second)
      continue;
    counters.push_back({std::string(name), parse_counter_text(value)});
  }
  return counters;
}

namespace {

constexpr std::uint32_t max_statistics = 65536;

/// Storage for a structure that ends in an array, aligned as the kernel's headers require.
template <class Head>
class Room {
public:
  explicit Room(std::size_t tail_bytes)
      : words_((sizeof(Head) + tail_bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t)) {}
  Head* operator->() { return reinterpret_cast<Head*>(words_.data()); }
  void* get() { return words_.data(); }
  const char* tail() const { return reinterpret_cast<const char*>(words_.data()) + sizeof(Head); }

private:
  std::vector<std::uint64_t> words_;
};

class Question {
public:
  explicit Question(const std::string& netdev)
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    netdev.copy(request_.ifr_name, IFNAMSIZ - 1);
  }
  bool ask(void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return socket_ && ::ioctl(socket_.get(), SIOCETHTOOL, &request_) == 0;
  }

private:
  FileDescriptor socket_;
  ifreq request_{};
};

} // namespace

std::vector<NamedCounter> read_ethtool(const std::string& netdev) {
  std::vector<NamedCounter> counters;
  if (netdev.empty() || netdev.size() >= IFNAMSIZ)
    return counters;
  Question question(netdev);
  Room<ethtool_sset_info> sets(sizeof(std::uint32_t));
  sets->cmd = ETHTOOL_GSSET_INFO;
  sets->sset_mask = std::uint64_t{1} << ETH_SS_STATS;
  if (!question.ask(sets.get()) || sets->sset_mask == 0)
    return counters;
  std::uint32_t count = 0;
  std::memcpy(&count, sets.tail(), sizeof count);
  if (count == 0 || count > max_statistics)
    return counters;
  // The number of counters may have grown since it was read: there is memory for twice as many, and
  // if it differs from `count`, none is returned.
  Room<ethtool_gstrings> names(std::size_t{2} * count * ETH_GSTRING_LEN);
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = count;
  Room<ethtool_stats> values(std::size_t{2} * count * sizeof(std::uint64_t));
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = count;
  if (!question.ask(names.get()) || !question.ask(values.get()) || names->len != count ||
      values->n_stats != count)
    return counters;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* name = names.tail() + std::size_t{i} * ETH_GSTRING_LEN;
    std::uint64_t value = 0;
    std::memcpy(&value, values.tail() + i * sizeof value, sizeof value);
    NamedCounter counter{std::string(name, ::strnlen(name, ETH_GSTRING_LEN)), {}};
    if (value <= static_cast<std::uint64_t>(INT64_MAX))
      counter.text.value = value;
    else
      counter.text.problem = "is larger than any counter value";
    counters.push_back(std::move(counter));
  }
  return counters;
}

namespace {

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;
constexpr std::uint64_t port_data_word_bytes = 4; ///< unit of port_xmit_data and port_rcv_data

/// Bit widths of IBA's PortCounters attribute (volume 1, 16.1.3.5), which saturate at their
/// maximum. If the device has wider counters (PortCountersExtended), sysfs shows those.
int width_of(const std::string& counter) {
  static constexpr std::array<std::pair<std::string_view, int>, 11> widths = {{
      {"symbol_error", 16},
      {"link_error_recovery", 8},
      {"link_downed", 8},
      {"port_rcv_errors", 16},
      {"port_rcv_remote_physical_errors", 16},
      {"port_rcv_constraint_errors", 8},
      {"port_xmit_constraint_errors", 8},
      {"port_xmit_discards", 16},
      {"local_link_integrity_errors", 4},
      {"excessive_buffer_overrun_errors", 4},
      {"VL15_dropped", 16},
  }};
  for (const auto& [name, bits] : widths)
    if (name == counter)
      return bits;
  return 32;
}

} // namespace

std::uint64_t counter_step_bytes(const std::string& counter) {
  return counter == "port_xmit_data_bytes" || counter == "port_rcv_data_bytes"
             ? port_data_word_bytes
             : 1;
}

CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after) {
  const std::uint64_t step = counter_step_bytes(counter);
  const std::uint64_t round = two_to_32 * step;
  const std::uint64_t ceiling = ((std::uint64_t{1} << width_of(counter)) - 1) * step;
  if (before == after && (after == ceiling || after == round - step))
    return {std::nullopt,
            fmt::format("stays at {}, the largest value of its width: it is saturated", after),
            false};
  if (after >= before)
    return {static_cast<std::int64_t>(after - before), "", false};
  if (before < round && before >= round / 4 * 3 && after < round / 4)
    return {static_cast<std::int64_t>(after + round - before), "", true};
  return {std::nullopt, fmt::format("went back from {} to {}: it was reset", before, after), false};
}

} // namespace shmemctl
