// Files and links of a Sysroot, and why they cannot be read.
#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>

#include "src/base/sysroot.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

TEST(SysrootLinks, TheTextOfALinkIsNotResolved) {
  const TemporaryFolder folder;
  folder.write("proc/7/stat", "x");
  std::filesystem::create_directories(folder.path() + "/proc/7/fd");
  std::filesystem::create_symlink("socket:[4711]", folder.path() + "/proc/7/fd/3");
  const Sysroot sysroot(folder.path());
  EXPECT_EQ(sysroot.read_link("/proc/7/fd/3"), "socket:[4711]");
  EXPECT_EQ(sysroot.read_link("/proc/7/stat"), std::nullopt);
  EXPECT_EQ(sysroot.read_link("/proc/7/fd/4"), std::nullopt);
  EXPECT_EQ(sysroot.read_link("/proc/8/exe"), std::nullopt);
}

TEST(SysrootLinks, WhyAFileIsNotRead) {
  const TemporaryFolder folder;
  folder.write("proc/7/maps", "text");
  const Sysroot sysroot(folder.path());
  EXPECT_EQ(sysroot.read_or_reason("/proc/7/maps").bytes, "text");
  EXPECT_EQ(sysroot.read_or_reason("/proc/7/maps").error_number, 0);
  EXPECT_EQ(sysroot.read_or_reason("/proc/7/maps", 2).bytes, "te");
  EXPECT_EQ(sysroot.read_or_reason("/proc/8/maps").error_number, ENOENT);
  EXPECT_EQ(sysroot.read_or_reason("/proc/7").error_number, EISDIR);
  int error_number = 0;
  EXPECT_TRUE(sysroot.open("/proc/7/maps", error_number));
  EXPECT_FALSE(sysroot.open("/proc/7/environ", error_number));
  EXPECT_EQ(error_number, ENOENT);
}

} // namespace
} // namespace shmemctl
