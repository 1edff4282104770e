// What is ready of many descriptors.
#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "src/runtime/bootstrap/ready_set.h"

namespace shmemctl {
namespace {

/// Both ends of a connection.
std::pair<FileDescriptor, FileDescriptor> connected_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(ReadySet, GivesThoseThatAreReadyAndNoOthers) {
  ReadySet set;
  EXPECT_TRUE(set.take().empty());
  std::vector<std::pair<FileDescriptor, FileDescriptor>> pairs;
  for (std::size_t i = 0; i < 200; ++i) {
    pairs.push_back(connected_pair());
    set.add(pairs.back().first.get(), i);
  }
  EXPECT_FALSE(is_readable(set.descriptor()));
  EXPECT_TRUE(set.take().empty());
  for (const std::size_t i : {std::size_t{7}, std::size_t{150}})
    ASSERT_EQ(::write(pairs[i].second.get(), "x", 1), 1);
  EXPECT_TRUE(is_readable(set.descriptor()));
  for (int again = 0; again < 2; ++again) { // nothing was read
    std::vector<ReadySet::Ready> ready = set.take();
    ASSERT_EQ(ready.size(), 2U) << "looks at two, of 200";
    EXPECT_EQ(ready[0].key + ready[1].key, 157U);
    EXPECT_EQ(ready[0].events, POLLIN);
  }
  pairs[30].second.reset();
  set.remove(pairs[7].first.get());
  std::size_t keys = 0;
  for (const ReadySet::Ready& ready : set.take()) {
    keys += ready.key;
    if (ready.key == 30) {
      EXPECT_NE(ready.events & POLLHUP, 0);
    }
  }
  EXPECT_EQ(keys, 180U);
}

TEST(ReadySet, TellsOfRoomOnlyWhereItIsWaitedFor) {
  ReadySet set;
  const auto ends = connected_pair();
  set.add(ends.first.get(), 3);
  EXPECT_TRUE(set.take().empty());
  set.set_writing(ends.first.get(), 3, true);
  const std::vector<ReadySet::Ready> ready = set.take();
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].key, 3U);
  EXPECT_EQ(ready[0].events, POLLOUT);
  set.set_writing(ends.first.get(), 3, false);
  EXPECT_TRUE(set.take().empty());
}

} // namespace
} // namespace shmemctl
