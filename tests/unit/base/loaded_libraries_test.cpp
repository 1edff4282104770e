#include "src/base/loaded_libraries.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

TEST(LoadedLibraries, TheCLibraryHasAVersion) {
  const auto versions = loaded_library_versions();
  ASSERT_EQ(versions.count("glibc"), 1u);
  EXPECT_EQ(versions.at("glibc").rfind("2.", 0), 0u) << versions.at("glibc");
}

TEST(LoadedLibraries, AFileNameHasAVersion) {
  EXPECT_EQ(version_in_library_name("/usr/lib/libibverbs.so.1.14.44.0"), "1.14.44.0");
  EXPECT_EQ(version_in_library_name("/opt/lib.so.d/libx.so.1"), "1");
  EXPECT_EQ(version_in_library_name("/usr/lib/libibverbs.so"), "");
  EXPECT_EQ(version_in_library_name("libx.so.1.old"), "");
  EXPECT_EQ(version_in_library_name(""), "");
}

} // namespace
} // namespace shmemctl::test
