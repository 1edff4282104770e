// Which QPs a QP set has, and which of them have work in flight.
#include "transports/rc/endpoint_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace shmemctl::rc {
namespace {

struct TestEndpoint {
  explicit TestEndpoint(int name_) : name(name_) {}
  int name;
  bool active = false;
};

/// PE 0 has no path, PE 1 has two, PE 2 one.
EndpointTable<TestEndpoint> table_of_three() {
  EndpointTable<TestEndpoint> table(3);
  table.add(1, std::make_unique<TestEndpoint>(10));
  table.add(2, std::make_unique<TestEndpoint>(20));
  table.add(1, std::make_unique<TestEndpoint>(11));
  return table;
}

TEST(EndpointTable, FindsThemByNumberAndByPeerAndPath) {
  const EndpointTable<TestEndpoint> table = table_of_three();
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0].name, 10);
  EXPECT_EQ(table[2].name, 11);
  ASSERT_EQ(table.paths_to(1), 2u);
  EXPECT_EQ(table.at(1, 0).name, 10);
  EXPECT_EQ(table.at(1, 1).name, 11);
  EXPECT_EQ(table.at(2, 0).name, 20);
  EXPECT_EQ(table.to(1).size(), 2u);
}

TEST(EndpointTable, APeThatIsNotConnectedHasNoPaths) {
  const EndpointTable<TestEndpoint> table = table_of_three();
  for (const int pe : {0, 3, -1})
    EXPECT_EQ(table.paths_to(pe), 0u) << pe;
}

TEST(EndpointTable, OnesWithWorkAreListedOnce) {
  EndpointTable<TestEndpoint> table = table_of_three();
  table.activate(table[2]);
  table.activate(table[1]);
  table.activate(table[2]);
  ASSERT_EQ(table.active().size(), 2u);
  EXPECT_EQ(table.active()[0]->name, 11);
  EXPECT_EQ(table.active()[1]->name, 20);
  table.deactivate_all();
  EXPECT_TRUE(table.active().empty());
  table.activate(table[2]);
  EXPECT_EQ(table.active().size(), 1u);
}

} // namespace
} // namespace shmemctl::rc
