#include "reports/job_hosts.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

namespace shmemctl::test {
namespace {

using nlohmann::json;

/// An allgather among threads.
class Gathering {
public:
  explicit Gathering(int n_pes) : texts_(static_cast<std::size_t>(n_pes)) {}

  std::vector<std::string> gather(int pe, const std::string& text) {
    std::unique_lock lock(mutex_);
    longest_ = std::max(longest_, text.size());
    texts_[static_cast<std::size_t>(pe)] = text;
    const int round = round_;
    if (++arrived_ == static_cast<int>(texts_.size())) {
      arrived_ = 0;
      ++round_;
      all_ = texts_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round; });
    }
    return all_;
  }
  int rounds() const { return round_; }
  std::size_t longest() const { return longest_; }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_, all_;
  int arrived_ = 0, round_ = 0;
  std::size_t longest_ = 0;
};

struct Outcome {
  JobHosts all;
  int rounds = 0;
  std::size_t longest = 0; ///< text that was sent
};

HostDescription description_of(int host, const std::string& kind, std::size_t size_bytes = 10) {
  return {{{"name", "h" + std::to_string(host)}},
          kind,
          {{"hostname", "h" + std::to_string(host)}, {"filler", std::string(size_bytes, 'x')}},
          {{"of", kind}}};
}

/// What a PE sends instead of its text.
using Substitution = std::function<std::string(int pe, const std::string& text)>;

/// Two PEs on each host.
Outcome gather(const std::vector<HostDescription>& descriptions,
               const Substitution& substitute = {}) {
  const int n_pes = 2 * static_cast<int>(descriptions.size());
  std::vector<HostPes> places;
  for (int pe = 0; pe < n_pes; pe += 2)
    places.push_back({pe, {pe, pe + 1}, {pe / 2}});
  Gathering gathering(n_pes);
  Outcome outcome;
  std::vector<std::thread> pes;
  for (int pe = 0; pe < n_pes; ++pe)
    pes.emplace_back([&, pe] {
      std::optional<HostDescription> mine;
      if (pe % 2 == 0)
        mine = descriptions[static_cast<std::size_t>(pe / 2)];
      JobHosts all = gather_job_hosts(places, pe, mine, [&](const std::string& text) {
        return gathering.gather(pe, substitute ? substitute(pe, text) : text);
      });
      if (pe == 0)
        outcome.all = std::move(all);
      else
        EXPECT_TRUE(all.hosts.empty() && all.other_nodes.empty());
    });
  for (std::thread& pe : pes)
    pe.join();
  outcome.rounds = gathering.rounds();
  outcome.longest = gathering.longest();
  return outcome;
}

TEST(JobHosts, HostsOfOneKindSendNoTopology) {
  const Outcome outcome =
      gather({description_of(0, "k"), description_of(1, "k"), description_of(2, "k")});
  ASSERT_EQ(outcome.all.hosts.size(), 3u);
  EXPECT_EQ(outcome.all.hosts[2]["name"], "h2");
  EXPECT_TRUE(outcome.all.other_nodes.empty());
  EXPECT_EQ(outcome.rounds, 1);
}

TEST(JobHosts, EachOtherKindIsThereOnce) {
  const Outcome outcome =
      gather({description_of(0, "k"), description_of(1, "other", 300000), description_of(2, "k"),
              description_of(3, "other", 300000), description_of(4, "third")});
  ASSERT_EQ(outcome.all.other_nodes.size(), 2u);
  const json& other = outcome.all.other_nodes[0];
  EXPECT_EQ(other["nodes"], (json{1, 3}));
  EXPECT_EQ(other["topology"]["hostname"], "h1");
  EXPECT_EQ(other["topology"]["filler"].get<std::string>().size(), 300000u);
  EXPECT_EQ(other["mapping"]["of"], "other");
  EXPECT_EQ(outcome.all.other_nodes[1]["topology"]["hostname"], "h4");
  EXPECT_EQ(outcome.rounds, 4) << "in pieces";
  EXPECT_LE(outcome.longest, std::size_t{128} << 10);
}

TEST(JobHosts, TooManyKindsAndTooLongOnesAreLeftOut) {
  std::vector<HostDescription> descriptions;
  for (int host = 0; host < 19; ++host)
    descriptions.push_back(description_of(host, "k" + std::to_string(host)));
  descriptions[3] = description_of(3, "long", std::size_t{9} << 20);
  const Outcome outcome = gather(descriptions);
  EXPECT_EQ(outcome.all.hosts.size(), 19u);
  ASSERT_EQ(outcome.all.other_nodes.size(), 18u);
  EXPECT_EQ(outcome.all.other_nodes[2]["left_out"], "it is larger than 8 MiB");
  EXPECT_FALSE(outcome.all.other_nodes[2].contains("topology"));
  EXPECT_TRUE(outcome.all.other_nodes[15].contains("topology"));
  EXPECT_EQ(outcome.all.other_nodes[16]["left_out"], "16 other kinds of nodes are in this report");
  EXPECT_EQ(outcome.rounds, 2);
}

TEST(JobHosts, AHostWhoseFirstTextIsMalformedIsLeftOut) {
  for (const char* sent :
       {"", "{", "[]", "\xff\xfe", R"({"kind":"k","size_bytes":5})",
        R"({"host":"h1","kind":"k","size_bytes":5})", R"({"host":{},"kind":7,"size_bytes":5})",
        R"({"host":{},"kind":"k","size_bytes":-1})",
        R"({"host":{},"kind":"k","size_bytes":1e30})"}) {
    const Outcome outcome =
        gather({description_of(0, "k"), description_of(1, "other"), description_of(2, "k")},
               [&](int pe, const std::string& text) { return pe == 2 ? std::string(sent) : text; });
    ASSERT_EQ(outcome.all.hosts.size(), 2u) << sent;
    EXPECT_EQ(outcome.all.hosts[0]["name"], "h0");
    EXPECT_EQ(outcome.all.hosts[1]["name"], "h2");
    EXPECT_TRUE(outcome.all.other_nodes.empty());
  }
}

TEST(JobHosts, AMalformedTopologyIsLeftOut) {
  for (const char* sent : {"", "{", "[]", "5", R"({"topology":{}})", "\xff\xfe"}) {
    const Outcome outcome = gather({description_of(0, "k"), description_of(1, "other")},
                                   [&](int pe, const std::string& text) {
                                     const bool node = text.find("topology") != std::string::npos;
                                     return pe == 2 && node ? std::string(sent) : text;
                                   });
    ASSERT_EQ(outcome.all.hosts.size(), 2u) << sent;
    ASSERT_EQ(outcome.all.other_nodes.size(), 1u);
    EXPECT_EQ(outcome.all.other_nodes[0]["left_out"], "its host sent no topology");
    EXPECT_FALSE(outcome.all.other_nodes[0].contains("topology"));
  }
}

} // namespace
} // namespace shmemctl::test
