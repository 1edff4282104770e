// The registry of transports against what reads it. What sources and pages have for each transport
// is tests/style/test_transports.py's to check.
#include "transports/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/instruments/doctor/doctor.h"

namespace shmemctl::test {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string> seen;
  for (const TransportRow& row : transport_registry()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
    EXPECT_EQ(find_transport(row.name), &row);
    EXPECT_FALSE(row.summary.empty()) << row.name;
  }
  EXPECT_GE(seen.size(), 6u);
  EXPECT_EQ(find_transport("portals"), nullptr);
  EXPECT_THROW(make_transport("portals", {}), std::logic_error);
}

TEST(Registry, OptionsAreThoseOfTheTable) {
  for (const TransportRow& row : transport_registry()) {
    std::set<std::string> seen;
    for (const std::string& option : row.options) {
      EXPECT_NO_THROW(option_spec(option)) << row.name << ": " << option;
      EXPECT_TRUE(seen.insert(option).second) << row.name << ": " << option;
    }
  }
}

TEST(Registry, EveryTransportIsAChoiceOfTheOptionsThatMayNameIt) {
  const Names& remote = option_spec("REMOTE_TRANSPORT").choices;
  const Names& carriers = option_spec("EMULATED_HCA_OVER").choices;
  for (const TransportRow& row : transport_registry()) {
    EXPECT_NE(option_spec("TRANSPORT").doc.find(row.name), std::string::npos) << row.name;
    EXPECT_EQ(has(remote, row.name), (row.uses & transport_use::remote) != 0) << row.name;
    EXPECT_EQ(has(carriers, row.name), (row.uses & transport_use::carrier) != 0) << row.name;
    if ((row.uses & transport_use::automatic) != 0) {
      EXPECT_NE(option_spec("REMOTE_TRANSPORT").doc.find(row.name), std::string::npos) << row.name;
    }
  }
  EXPECT_EQ(transport_names(transport_use::automatic), (Names{"ibrc", "libfabric", "ucx"}));
}

/// A value of NVSHMEM's variable that NVSHMEM knows means that transport here.
TEST(Registry, EveryRemoteTransportOfNvshmemIsAChoice) {
  for (const std::string name : {"none", "ibrc", "ucx", "ibdevx", "libfabric"}) {
    EXPECT_EQ(parse_remote_transport(name), name);
    EXPECT_TRUE(has(option_spec("REMOTE_TRANSPORT").choices, name)) << name;
  }
}

TEST(Registry, EveryTransportHasACheckOfDoctor) {
  for (const TransportRow& row : transport_registry()) {
    const std::string id = row.nics == TransportNics::none ? "dev-shm" : "transport-" + row.name;
    const auto found = std::find_if(all_checks().begin(), all_checks().end(),
                                    [&](const Check& check) { return check.id == id; });
    ASSERT_NE(found, all_checks().end()) << id;
    if (row.nics != TransportNics::none) {
      EXPECT_NE(found->title.find(row.summary), std::string::npos) << found->title;
    }
  }
}

TEST(Registry, EveryTransportIsMadeUnderItsName) {
  const Options options({});
  JobHealth health;
  for (const TransportRow& row : transport_registry()) {
    const auto made = make_transport(row.name, {0, 2, "here", &options, &health, 10});
    ASSERT_NE(made, nullptr) << row.name;
    EXPECT_EQ(made->name(), row.name);
    const std::string info = made->local_info();
    EXPECT_LE(info.size(), 1024u) << row.name;
    if (row.built)
      continue;
    const Reach reach = made->reach({0, 1, 1, info}, {1, 2, 2, info});
    EXPECT_EQ(reach.capabilities, 0u) << row.name;
    EXPECT_EQ(reach.reason, why_absent(row));
  }
}

TEST(Registry, AnAbsentTransportNamesItsPackage) {
  TransportRow row;
  row.name = "portals";
  EXPECT_EQ(why_absent(row), "");
  row.package = "libportals-dev";
  EXPECT_EQ(why_absent(row), "") << "it is built";
  row.built = false;
  EXPECT_EQ(why_absent(row),
            "this build has no portals: the headers of libportals-dev were missing");
  EXPECT_EQ(absent_fix(row), "install libportals-dev and build again");
}

} // namespace
} // namespace shmemctl::test
