#include "src/instruments/bringup/connections.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

using namespace shmemctl;

namespace {

TEST(Connections, AreMergedByTransportSourceAndTarget) {
  const std::vector<ConnectionRow> rows = merge_connections(
      {connections_message(std::vector<ConnectionRow>{{"ucx", 0, 1, "tcp eth0"},
                                                      {"ibrc", 0, 1, "rxe0:1 -> rxe1:1, 2 QPs"}}),
       connections_message(std::vector<ConnectionRow>{{"ibrc", 1, 0, "rxe1:1 -> rxe0:1, 2 QPs"}})});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].transport, "ibrc");
  EXPECT_EQ(rows[0].source, 0);
  EXPECT_EQ(rows[0].target, 1);
  EXPECT_EQ(rows[1].source, 1);
  EXPECT_EQ(rows[2].path, "tcp eth0");
}

TEST(Connections, EqualPathsAreGrouped) {
  EXPECT_EQ(connections_for_people({{"ibrc", 0, 1, "rxe0:1 -> rxe0:1"},
                                    {"ibrc", 1, 0, "rxe0:1 -> rxe0:1"},
                                    {"ucx", 0, 1, "tcp"}}),
            "ibrc, rxe0:1 -> rxe0:1: 0>1, 1>0\nucx, tcp: 0>1\n");
  EXPECT_EQ(connections_for_people({}), "");
}

TEST(Connections, WhatIsNoneIsRefused) {
  const auto message = [](int target, const std::string& way) {
    return connections_message(std::vector<ConnectionRow>{{"ibrc", 0, target, way}});
  };
  const std::string none = connections_message(std::vector<ConnectionRow>());
  EXPECT_EQ(merge_connections({message(1, "way"), none}).size(), 1u);
  for (const std::string& bad : {std::string(), std::string("{}x"), message(1, "way") + "x",
                                 message(2, "way"), message(-1, "way"), message(0, "")})
    EXPECT_THROW(merge_connections({bad, none}), Error);
}

TEST(Connections, TheEmulatedHcaIsLabelled) {
  EXPECT_TRUE(emulated_hca_findings({{"ibrc", 0, 1, "rxe0:1 -> rxe0:1"}}).empty());
  const Findings findings = emulated_hca_findings(
      {{"ibdevx", 0, 1, "emulated-mlx5:1 -> emulated-mlx5:1, emulated HCA over shm"},
       {"ibdevx", 1, 0, "emulated-mlx5:1 -> emulated-mlx5:1, emulated HCA over shm"}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "emulated-hca");
  EXPECT_EQ(findings[0].subject, "ibdevx");
  EXPECT_EQ(findings[0].severity, Severity::info);
}

} // namespace
