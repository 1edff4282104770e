#include "src/hotspots/ethtool.h"

#include <cstring>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "src/base/file_descriptor.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t most_statistics = 65536;

/// Room for a structure that ends in an array, aligned as the kernel's headers want it.
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
  if (count == 0 || count > most_statistics)
    return counters;
  // A driver may have more by the time it is asked: twice the room, and what it says it filled.
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
      counter.text.problem = "is more than any count";
    counters.push_back(std::move(counter));
  }
  return counters;
}

} // namespace shmemctl
