// Handles that go to everybody in place of descriptors.
#include "src/memory/gathered_peers.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace shmemctl::test {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

/// PE 2 of a job of four, in a group with PEs 0 and 3.
struct Group {
  std::vector<std::string> said = {"", "nonsense of a PE that is not in the group", "", ""};
  std::string mine;
  std::unique_ptr<LocalPeers> peers = make_gathered_peers({0, 2, 3}, 1, [this](const auto& text) {
    mine = text;
    said[2] = text;
    return said;
  });
};

TEST(GatheredPeers, EverybodysHandleComesInAFile) {
  Group group;
  EXPECT_EQ(group.peers->slots(), 3);
  EXPECT_EQ(group.peers->my_slot(), 1);
  const std::string handle("\x00\xff handle\n", 9);
  const FileDescriptor file = file_of_handle(handle);
  group.said[0] = "0010";
  group.said[3] = "none";
  const std::vector<FileDescriptor> theirs = group.peers->exchange(file.get(), soon());
  ASSERT_EQ(theirs.size(), 3u);
  EXPECT_EQ(handle_in_file(theirs[0].get()), std::string("\x00\x10", 2));
  EXPECT_FALSE(theirs[1]) << "its own";
  EXPECT_FALSE(theirs[2]) << "it has none";
  EXPECT_EQ(group.mine.size(), 18u);
  // What it said is what another one would read.
  group.said[0] = group.mine;
  group.said[3] = group.mine;
  const std::vector<FileDescriptor> again = group.peers->exchange(-1, soon());
  EXPECT_EQ(group.mine, "none");
  EXPECT_EQ(handle_in_file(again[0].get()), handle);
  EXPECT_EQ(handle_in_file(again[2].get()), handle);
}

TEST(GatheredPeers, WhatIsNoHandleIsRefusedWithItsPe) {
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string("xy"), std::string(130, 'a')}) {
    Group group;
    group.said[0] = "none";
    group.said[3] = text;
    expect_error(ExitCode::unavailable, {"handle of PE 3"},
                 [&] { group.peers->exchange(-1, soon()); });
  }
}

TEST(GatheredPeers, OnlyHandlesAreReadFromFiles) {
  EXPECT_EQ(handle_in_file(-1), "");
  EXPECT_EQ(handle_in_file(file_of_handle(std::string(65, 'a')).get()), "") << "too long";
  EXPECT_EQ(handle_in_file(file_of_handle(std::string(64, 'a')).get()), std::string(64, 'a'));
}

} // namespace
} // namespace shmemctl::test
