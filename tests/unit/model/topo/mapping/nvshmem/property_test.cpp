// Properties that hold for any list and any machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/unit/model/topo/mapping/nvshmem/machine.h"

namespace shmemctl {

namespace {

using Random = std::mt19937;

int between(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

std::string random_text(Random& random, const std::string& alphabet, int longest) {
  std::string text;
  for (int left = between(random, 0, longest); left > 0; --left)
    text += alphabet[random() % alphabet.size()];
  return text;
}

/// A second reading of the grammar, character by character: the name grows until a comma, a colon
/// or the end; what follows the first colon is the port, what follows the second the count.
class CharacterReader {
public:
  HcaList read(const std::string& text, std::size_t capacity) {
    std::size_t at = !text.empty() && text[0] == '^' ? 1 : 0;
    list_.exclude = at == 1;
    for (; at <= text.size() && list_.entries.size() < capacity; ++at)
      step(text, at);
    return list_;
  }

private:
  void accept() {
    HcaListEntry entry;
    entry.name = name_.substr(0, 64);
    list_.entries.push_back(entry);
    name_.clear();
  }
  void step(const std::string& text, std::size_t at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == ',') {
      if (!name_.empty())
        accept();
      colons_ = 0;
    } else if (c == ':' && colons_ == 0 && !name_.empty()) {
      accept();
      list_.entries.back().port = std::atoi(text.c_str() + at + 1);
      colons_ = 1;
    } else if (c == ':' && colons_ == 1) {
      list_.entries.back().count = std::atoi(text.c_str() + at + 1);
      colons_ = 2;
    } else if (c == ':') {
      colons_ = 2; // nothing more of this item counts
    } else if (colons_ == 0) {
      name_ += c;
    }
  }

  HcaList list_;
  std::string name_;
  int colons_ = 0;
};

std::vector<std::vector<PathClass>> random_classes(Random& random, int pes, int rows) {
  static const PathClass kinds[] = {PathClass::pix, PathClass::pxb, PathClass::phb, PathClass::node,
                                    PathClass::sys};
  std::vector<std::vector<PathClass>> classes(static_cast<std::size_t>(pes));
  for (std::vector<PathClass>& row : classes)
    for (int i = 0; i < rows; ++i)
      row.push_back(kinds[random() % 5]);
  return classes;
}

bool same_rows(const DeviceTable& left, const DeviceTable& right) {
  return std::equal(left.entries.begin(), left.entries.end(), right.entries.begin(),
                    right.entries.end(), [](const TableEntry& one, const TableEntry& other) {
                      return one.device == other.device && one.port == other.port;
                    });
}

std::vector<HcaFacts> random_devices(Random& random) {
  std::vector<HcaFacts> devices;
  for (int i = between(random, 0, 6); i > 0; --i) {
    HcaFacts device{"m" + std::to_string(between(random, 0, 3)), {}, random() % 8 != 0};
    for (int port = 1; port <= between(random, 1, 3); ++port)
      device.ports.push_back({port, random() % 4 != 0, static_cast<LinkLayer>(random() % 3)});
    devices.push_back(device);
  }
  return devices;
}

} // namespace

TEST(Property, TwoReadingsOfTheGrammarAgree) {
  Random random(1);
  for (int round = 0; round < 60000; ++round) {
    const std::string text = random_text(random, "mm:,:,^ 0123x-+", 24);
    const auto capacity = static_cast<std::size_t>(between(random, 1, 5));
    const HcaList one = parse_hca_list(text, capacity);
    const HcaList other = CharacterReader().read(text, capacity);
    ASSERT_EQ(one.exclude, other.exclude) << text;
    ASSERT_EQ(one.entries.size(), other.entries.size()) << text;
    for (std::size_t i = 0; i < one.entries.size(); ++i) {
      ASSERT_EQ(one.entries[i].name, other.entries[i].name) << text;
      ASSERT_EQ(one.entries[i].port, other.entries[i].port) << text;
      ASSERT_EQ(one.entries[i].count, other.entries[i].count) << text;
    }
  }
}

TEST(Property, ColumnsPointAtTheText) {
  Random random(2);
  for (int round = 0; round < 6000; ++round) {
    const std::string text = random_text(random, "mm:,:,^ 0123x-", 24);
    for (const HcaListEntry& entry : parse_hca_list(text, 4).entries)
      ASSERT_EQ(text.substr(entry.column - 1, entry.text.size()), entry.text) << text;
    for (const HcaListProblem& problem : parse_hca_list(text, 4).problems)
      ASSERT_EQ(text.substr(problem.column - 1, problem.text.size()), problem.text) << text;
  }
}

TEST(Property, MappingsAreInRangeAndRepeatable) {
  Random random(3);
  for (int round = 0; round < 6000; ++round) {
    const int pes = between(random, 1, 9);
    const int rows = between(random, 0, 20);
    const auto classes = random_classes(random, pes, rows);
    const bool mapping = random() % 4 == 0;
    for (const ReleaseFamily family : all_families) {
      const Answer answer = choose_rows(family, rows, classes, mapping);
      ASSERT_EQ(answer, choose_rows(family, rows, classes, mapping));
      ASSERT_EQ(answer.size(), static_cast<std::size_t>(pes));
      for (const std::vector<int>& of_pe : answer) {
        ASSERT_EQ(of_pe.empty(), rows == 0);
        ASSERT_LE(of_pe.size(), static_cast<std::size_t>(std::max(1, rows / pes)));
        for (const int row : of_pe)
          ASSERT_TRUE(row >= 0 && row < rows);
      }
    }
  }
}

TEST(Property, FirstRowRanksWithTheBestSince2_5) {
  // Loop 1 begins with the nearest, and loop 2 never goes below its rank. ReleaseFamily D does so
  // only for one slot: it confuses slots with PEs.
  const auto rank = [](PathClass path) { return path == PathClass::pxb ? PathClass::pix : path; };
  Random random(4);
  for (int round = 0; round < 6000; ++round) {
    const int pes = between(random, 1, 8);
    const int rows = between(random, 2, 20);
    const auto classes = random_classes(random, pes, rows);
    for (const ReleaseFamily family :
         {ReleaseFamily::v2_5, ReleaseFamily::v2_11, ReleaseFamily::v3_5, ReleaseFamily::v3_7}) {
      if (family == ReleaseFamily::v2_11 && rows / pes > 1)
        continue;
      const Answer answer = choose_rows(family, rows, classes, false);
      for (std::size_t pe = 0; pe < answer.size(); ++pe) {
        const PathClass best = *std::min_element(classes[pe].begin(), classes[pe].end());
        for (const int row : answer[pe])
          ASSERT_EQ(rank(classes[pe][static_cast<std::size_t>(row)]), rank(best));
      }
    }
  }
}

TEST(Property, FamiliesWithOneSlotAgree) {
  Random random(5);
  for (int round = 0; round < 6000; ++round) {
    const int pes = between(random, 2, 8);
    const auto classes = random_classes(random, pes, between(random, 2, 2 * pes - 1));
    const int rows = static_cast<int>(classes[0].size());
    const Answer newest_answer = choose_rows(ReleaseFamily::v3_5, rows, classes, false);
    for (const ReleaseFamily family :
         {ReleaseFamily::v2_5, ReleaseFamily::v2_11, ReleaseFamily::v3_7})
      ASSERT_EQ(choose_rows(family, rows, classes, false), newest_answer);
  }
}

TEST(Property, OneSlotLoadsNeverDifferByTwoForAPeThatCouldMove) {
  // For the last PE that was balanced no better row of its rank is left.
  const auto is_near = [](PathClass path) { return path <= PathClass::pxb; };
  Random random(6);
  for (int round = 0; round < 6000; ++round) {
    const int pes = between(random, 2, 8);
    const int rows = between(random, 2, pes);
    const auto classes = random_classes(random, pes, rows);
    const Answer answer = choose_rows(ReleaseFamily::v3_5, rows, classes, false);
    if (rows / pes > 1)
      continue;
    std::vector<int> uses(static_cast<std::size_t>(rows), 0);
    for (const std::vector<int>& of_pe : answer)
      ++uses[static_cast<std::size_t>(of_pe[0])];
    const auto last = static_cast<std::size_t>(pes - 1);
    const auto chosen = static_cast<std::size_t>(answer[last][0]);
    for (std::size_t row = 0; row < uses.size(); ++row)
      if (is_near(classes[last][row]) && is_near(classes[last][chosen])) {
        ASSERT_LT(uses[chosen] - uses[row], 2);
      }
  }
}

TEST(Property, TableKeepsEnumerationOrderAndReplicasFollowEachOther) {
  Random random(7);
  for (int round = 0; round < 6000; ++round) {
    const std::vector<HcaFacts> devices = random_devices(random);
    NvshmemSettings settings;
    settings.version = {between(random, 1, 3), between(random, 0, 11), between(random, 0, 20)};
    settings.transport = static_cast<NvshmemTransport>(random() % 5);
    if (random() % 2 == 0)
      settings.hca_list = random_text(random, "m01:,:,^3", 16);
    if (random() % 2 == 0)
      settings.hca_pe_mapping = random_text(random, "m01:,:,^3", 16);
    if (random() % 4 == 0)
      settings.hca_prefix = random_text(random, "m0^", 2);
    const DeviceTable table = build_device_table(devices, settings);
    ASSERT_TRUE(same_rows(table, build_device_table(devices, settings)));
    ASSERT_TRUE(std::is_sorted(table.entries.begin(), table.entries.end(),
                               [](const TableEntry& left, const TableEntry& right) {
                                 return std::pair(left.device, left.port) <
                                        std::pair(right.device, right.port);
                               }));
    // Every (device, port) is in the table or excluded with a reason, unless its whole device is.
    std::set<std::pair<int, int>> told;
    for (const TableEntry& entry : table.entries)
      told.insert({entry.device, entry.port});
    for (const TableExclusion& exclusion : table.exclusions) {
      ASSERT_FALSE(exclusion.reason.empty());
      ASSERT_TRUE(told.insert({exclusion.device, exclusion.port}).second);
    }
    for (std::size_t i = 0; i < devices.size(); ++i)
      for (const HcaPortFacts& port : devices[i].ports) {
        const int device = static_cast<int>(i);
        ASSERT_TRUE(told.count({device, port.number}) + told.count({device, 0}) == 1 ||
                    settings.transport == NvshmemTransport::libfabric);
      }
  }
}

TEST(Property, ClassDependsOnSharedSlashesOnly) {
  Random random(8);
  for (int round = 0; round < 6000; ++round) {
    const std::string gpu = random_text(random, "//ab", 16);
    const std::string nic = random_text(random, "//ab", 16);
    const PathClass path = nvshmem_path_class(gpu, nic, true);
    ASSERT_GE(path, PathClass::pix);
    ASSERT_LE(path, PathClass::node);
    ASSERT_EQ(path == PathClass::node, nvshmem_path_class(gpu, nic, false) == PathClass::sys);
    ASSERT_EQ(nvshmem_path_class(gpu, gpu + nic, true), nvshmem_path_class(gpu, gpu, true));
  }
}

} // namespace shmemctl
