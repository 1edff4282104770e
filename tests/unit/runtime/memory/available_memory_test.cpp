#include <gtest/gtest.h>

#include "src/runtime/memory/available_memory.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

constexpr const char* meminfo = "MemTotal:       16384 kB\nMemFree:  100 kB\n"
                                "MemAvailable:    8192 kB\nSwapFree: 999999 kB\n";

TEST(AvailableMemory, IsWhatTheMachineHasAvailable) {
  const TemporaryFolder root;
  root.write("proc/meminfo", meminfo);
  const auto room = AvailableMemory(Sysroot(root.path())).now();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 8192u * 1024);
  EXPECT_EQ(room->limited_by, "this machine");
}

TEST(AvailableMemory, IsUnknownWithoutFiles) {
  const TemporaryFolder root;
  EXPECT_FALSE(AvailableMemory(Sysroot(root.path())).now());
  root.write("proc/meminfo", "MemTotal: 5 kB\nMemAvailable: many\n");
  EXPECT_FALSE(AvailableMemory(Sysroot(root.path())).now());
}

TEST(AvailableMemory, TheTightestGroupOfVersion2Counts) {
  const TemporaryFolder root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
  root.write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  root.write("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  root.write("sys/fs/cgroup/slurm/job_7/memory.max", "4194304\n");
  root.write("sys/fs/cgroup/slurm/job_7/memory.current", "3145728\n");
  root.write("sys/fs/cgroup/slurm/job_7/memory.stat",
             "anon 9\nactive_file 65536\ninactive_file 131072\nfile 5000000\n");
  root.write("sys/fs/cgroup/slurm/memory.max", "8000000\n");
  root.write("sys/fs/cgroup/slurm/memory.current", "3145728\n");
  const auto room = AvailableMemory(Sysroot(root.path())).now();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 1048576u + 65536 + 131072);
  EXPECT_EQ(room->limited_by, "the control group /slurm/job_7 (limit 4M)");
}

TEST(AvailableMemory, VersionOneIsReadToo) {
  const TemporaryFolder root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/mounts", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
                            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
                            "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
  root.write("proc/self/cgroup", "5:cpu:/a\n4:memory:/docker/x\n0::/\n");
  const std::string folder = "sys/fs/cgroup/memory/docker/x/";
  root.write(folder + "memory.limit_in_bytes", "2097152\n");
  root.write(folder + "memory.usage_in_bytes", "2000000\n");
  root.write(folder + "memory.stat", "active_file 1\ntotal_active_file 100000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  const auto room = AvailableMemory(Sysroot(root.path())).now();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 2097152u - 1900000);
  EXPECT_EQ(room->limited_by, "the control group /docker/x (limit 2M)");
}

TEST(AvailableMemory, AContainersOwnGroupIsTheMountsRoot) {
  const TemporaryFolder root;
  root.write("proc/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
  root.write("proc/self/cgroup", "4:memory:/docker/0123abcd\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000000\n");
  const auto room = AvailableMemory(Sysroot(root.path())).now();
  ASSERT_TRUE(room);
  EXPECT_EQ(room->free_bytes, 0u);
  EXPECT_EQ(room->limited_by, "the control group / (limit 1M)");
}

TEST(AvailableMemory, OfThisMachineIsKnown) {
  const auto room = AvailableMemory().now();
  ASSERT_TRUE(room);
  EXPECT_GT(room->free_bytes, 0u);
}

TEST(MemoryRoomTexts, MalformedLinesMeanUnknown) {
  EXPECT_FALSE(number_of("MemAvailable:", "MemAvailable:"));
  EXPECT_FALSE(number_of("MemAvailable: -5 kB", "MemAvailable:"));
  EXPECT_FALSE(number_of("MemAvailable: 99999999999999999999 kB", "MemAvailable:"));
  EXPECT_FALSE(number_of("xMemAvailable: 5", "MemAvailable:"));
  EXPECT_FALSE(cgroup_path("0:", ""));
  EXPECT_FALSE(cgroup_path("4:memory", "memory"));
  EXPECT_EQ(cgroup_path("4:cpu,memory:/a:b", "memory"), "/a:b");
  EXPECT_EQ(cgroup_path("4:memory:/a\n0::/b", ""), "/b");
  EXPECT_FALSE(cgroup_mount("cgroup2 /x", ""));
  EXPECT_FALSE(cgroup_mount("cgroup /x cgroup rw,memoryless 0 0", "memory"));
}

} // namespace
} // namespace shmemctl
