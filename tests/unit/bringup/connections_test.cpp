#include "src/bringup/connections.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

using namespace shmemctl;

namespace {

TEST(Connections, AreMergedByTransportSourceAndTarget) {
  const std::vector<ConnectionRow> rows =
      merge_connections({R"([["ucx",1,"tcp eth0"],["ibrc",1,"rxe0:1 -> rxe1:1, 2 QPs"]])",
                         R"([["ibrc",0,"rxe1:1 -> rxe0:1, 2 QPs"]])"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].transport, "ibrc");
  EXPECT_EQ(rows[0].source, 0);
  EXPECT_EQ(rows[0].target, 1);
  EXPECT_EQ(rows[1].source, 1);
  EXPECT_EQ(rows[2].way, "tcp eth0");
}

TEST(Connections, EqualPathsAreGrouped) {
  EXPECT_EQ(connections_for_people({{"ibrc", 0, 1, "rxe0:1 -> rxe0:1"},
                                    {"ibrc", 1, 0, "rxe0:1 -> rxe0:1"},
                                    {"ucx", 0, 1, "tcp"}}),
            "ibrc, rxe0:1 -> rxe0:1: 0>1, 1>0\nucx, tcp: 0>1\n");
  EXPECT_EQ(connections_for_people({}), "");
}

TEST(Connections, WhatIsNoneIsRefused) {
  for (const std::string text : {"", "{}x", "[[1]]", R"([["ibrc",2,"way"]])",
                                 R"([["ibrc",-1,"way"]])", R"([["ibrc",0,""]])"})
    EXPECT_THROW(merge_connections({text, "[]"}), Error) << text;
}

TEST(Connections, SoftwareIsLabelled) {
  EXPECT_TRUE(software_findings({{"ibrc", 0, 1, "rxe0:1 -> rxe0:1"}}).empty());
  const Findings findings =
      software_findings({{"ibdevx", 0, 1, "soft-mlx5:1 -> soft-mlx5:1, software HCA over shm"},
                         {"ibdevx", 1, 0, "soft-mlx5:1 -> soft-mlx5:1, software HCA over shm"}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "software-hca");
  EXPECT_EQ(findings[0].subject, "ibdevx");
  EXPECT_EQ(findings[0].severity, Severity::info);
}

} // namespace
