#include "src/instruments/bench/thread_times.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace shmemctl::bench {
namespace {

TEST(ThreadTimes, OfTheMeasuringThreadTheProxyAndTransports) {
  const TemporaryFolder root;
  root.write("proc/thread-self/schedstat", "5000 1 1\n");
  root.write("proc/self/task/10/comm", "shmemctl\n");
  root.write("proc/self/task/10/schedstat", "5000 1 1\n");
  root.write("proc/self/task/11/comm", "proxy\n");
  root.write("proc/self/task/11/schedstat", "300 1 1\n");
  root.write("proc/self/task/12/comm", "libfabric\n");
  root.write("proc/self/task/12/schedstat", "40 1 1\n");
  root.write("proc/self/task/13/comm", "libfabric\n");
  root.write("proc/self/task/13/schedstat", "2 1 1\n");
  root.write("proc/self/task/14/comm", "watchdog\n");
  root.write("proc/self/task/14/schedstat", "7 1 1\n");
  root.write("proc/self/task/15/comm", "ucx\n"); // gone, or a kernel without these numbers
  const auto times = thread_run_ns(Sysroot(root.path()));
  EXPECT_EQ(times, (std::map<std::string, std::uint64_t>{
                       {"host", 5000}, {"proxy", 300}, {"libfabric", 42}}));
  EXPECT_TRUE(thread_run_ns(Sysroot(TemporaryFolder().path())).empty());
}

TEST(ThreadTimes, SharesOfACore) {
  const auto shares = core_shares(
      {{"host", 0}, {"proxy", 500'000'000}},
      {{"host", 2'000'000'000}, {"proxy", 1'000'000'000}, {"ucx", 100'000'000}}, // began meanwhile
      2);
  EXPECT_DOUBLE_EQ(shares.at("host"), 1);
  EXPECT_DOUBLE_EQ(shares.at("proxy"), 0.25);
  EXPECT_DOUBLE_EQ(shares.at("ucx"), 0.05);
  EXPECT_TRUE(core_shares({}, {{"host", 1}}, 0).empty());
}

} // namespace
} // namespace shmemctl::bench
