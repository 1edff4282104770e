// What is installed: the loader's cache and search order, packages of a Python environment.
#include <cstring>
#include <gtest/gtest.h>

#include "src/instruments/libraries/installed.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::libraries {
namespace {

struct CacheRow {
  std::uint32_t flags;
  std::string name, path;
};

void append_number(std::string& bytes, std::uint32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A cache as ldconfig writes it.
std::string cache_of(const std::vector<CacheRow>& rows) {
  const std::size_t table = 48 + 24 * rows.size();
  std::string strings, entries;
  for (const CacheRow& row : rows) {
    append_number(entries, row.flags);
    append_number(entries, static_cast<std::uint32_t>(table + strings.size()));
    strings += row.name + '\0';
    append_number(entries, static_cast<std::uint32_t>(table + strings.size()));
    strings += row.path + '\0';
    entries += std::string(12, '\0');
  }
  std::string bytes = "glibc-ld.so.cache1.1";
  append_number(bytes, static_cast<std::uint32_t>(rows.size()));
  append_number(bytes, static_cast<std::uint32_t>(strings.size()));
  bytes += std::string(48 - bytes.size(), '\0');
  return bytes + entries + strings;
}

constexpr std::uint32_t of_x86_64 = 0x303, of_i386 = 3;

TEST(Installed, RowsOfTheLoadersCache) {
  const std::string cache = cache_of({{of_x86_64, "libnccl.so.2", "/opt/libnccl.so.2"},
                                      {of_i386, "libucp.so.0", "/usr/lib32/libucp.so.0"},
                                      {of_x86_64, "libnccl.so.2", "/usr/lib/libnccl.so.2"}});
  const std::vector<CacheEntry> expected = {{"libnccl.so.2", "/opt/libnccl.so.2"},
                                            {"libnccl.so.2", "/usr/lib/libnccl.so.2"}};
  EXPECT_EQ(parse_loader_cache(cache), expected);
  std::string old = std::string("ld.so-1.7.0") + '\0';
  append_number(old, 1);
  old += std::string(12, '\0'); // its one row; the new format begins at a multiple of 8
  old += std::string(4, '\0');
  EXPECT_EQ(parse_loader_cache(old + cache), expected);
}

TEST(Installed, ACacheCutAnywhereHasNoOtherRows) {
  const std::string cache = cache_of({{of_x86_64, "libnccl.so.2", "/opt/libnccl.so.2"}});
  for (std::size_t size = 0; size + 1 < cache.size(); ++size)
    EXPECT_TRUE(parse_loader_cache(cache.substr(0, size)).empty()) << size;
  EXPECT_TRUE(parse_loader_cache("ld.so-1.7.0").empty());
  EXPECT_TRUE(parse_loader_cache(std::string("ld.so-1.7.0\0\xff\xff\xff\xff", 16)).empty());
}

TEST(Installed, SearchOrderOfTheLoader) {
  TemporaryFolder folder;
  for (const char* path : {"opt/a/libnccl.so.2.27.3", "opt/a/libnccl-net.so", "opt/b/libnccl.so.2",
                           "usr/lib/libnccl.so.2", "usr/lib/libnccl.so", "usr/lib/libz.so.1"})
    folder.write(path, path);
  folder.write("etc/ld.so.cache", cache_of({{of_x86_64, "libnccl.so.2", "/usr/lib/libnccl.so.2"},
                                            {of_x86_64, "libnccl.so", "/usr/lib/libnccl.so"},
                                            {of_x86_64, "libucp.so.0", "/gone/libucp.so.0"},
                                            {of_x86_64, "libz.so.1", "/usr/lib/libz.so.1"}}));
  const Sysroot sysroot(folder.path());
  const auto order = search_order(sysroot, "/opt/a:lib:/opt/b", {"/nowhere"});
  ASSERT_EQ(order.size(), 2U);
  const std::vector<InstalledFile>& nccl = order.at("libnccl.so.2");
  ASSERT_EQ(nccl.size(), 2U);
  EXPECT_EQ(nccl[0].path, "/opt/b/libnccl.so.2");
  EXPECT_EQ(nccl[0].origin, "LD_LIBRARY_PATH");
  EXPECT_EQ(nccl[1].file, "/usr/lib/libnccl.so.2");
  EXPECT_EQ(nccl[1].origin, "/etc/ld.so.cache");
  EXPECT_EQ(order.at("libnccl-net.so").size(), 1U);
}

TEST(Installed, RequirementsOfOneVersion) {
  const std::vector<ExactRequirement> expected = {{"nvidia-nccl-cu12", "2.27.3"},
                                                  {"nvidia-nvshmem-cu12", "3.4.5"}};
  EXPECT_EQ(exact_requirements("Name: torch\n"
                               "Requires-Dist: nvidia-nccl-cu12==2.27.3; platform == \"Linux\"\n"
                               "Requires-Dist: NVIDIA_nvshmem.cu12 (==3.4.5)\r\n"
                               "Requires-Dist: triton==3.4.*\n"
                               "Requires-Dist: sympy>=1.13\n"
                               "Requires-Dist: numpy==1.0,!=1.1\n"
                               "Requires-Dist: optree==0.13; extra == \"optree\"\n"
                               "\n"
                               "Requires-Dist: description==1.0\n"),
            expected);
  EXPECT_TRUE(exact_requirements("").empty());
  EXPECT_TRUE(exact_requirements("Requires-Dist: ==1.0\nRequires-Dist:\n").empty());
}

TEST(Installed, LibrariesOfARecord) {
  const std::vector<std::string> expected = {"nvidia/nccl/lib/libnccl.so.2", "deep_ep_cpp.so"};
  EXPECT_EQ(recorded_libraries("nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n"
                               "nvidia/nccl/include/nccl.h,,\n"
                               "../../lib/libnccl.so.2,,\n"
                               "/usr/lib/libnccl.so.2,,\n"
                               "deep_ep_cpp.so\n"),
            expected);
}

TEST(Installed, FoldersOfPackages) {
  TemporaryFolder folder;
  const std::string site = "/opt/venv/lib/python3.12/site-packages";
  folder.write("opt/venv/bin/python3", "");
  folder.write(site.substr(1) + "/six.py", "");
  folder.write("usr/bin/python3", "");
  folder.write("usr/lib/python3/dist-packages/six.py", "");
  folder.write("usr/local/lib/python3.12/dist-packages/six.py", "");
  const Sysroot sysroot(folder.path());
  const std::vector<std::string> expected = {site};
  for (const char* python : {"/opt/venv", "/opt/venv/", "/opt/venv/bin/python3",
                             "/opt/venv/lib/python3.12/site-packages"})
    EXPECT_EQ(site_folders(sysroot, python), expected) << python;
  EXPECT_EQ(site_folders(sysroot, "/usr/bin/python3"),
            (std::vector<std::string>{"/usr/local/lib/python3.12/dist-packages",
                                      "/usr/lib/python3/dist-packages"}));
  EXPECT_TRUE(site_folders(sysroot, "/opt/gone").empty());
  EXPECT_TRUE(site_folders(sysroot, "").empty());
}

TEST(Installed, PackagesAndWhoClaimsALibrary) {
  TemporaryFolder folder;
  const std::string site = "site-packages/";
  for (const char* name : {"nvidia_nccl_cu12-2.27.3", "nvidia_nccl_cu13-2.28.9"})
    folder.write(site + name + ".dist-info/RECORD",
                 "nvidia/nccl/lib/libnccl.so.2,,\ngone/libnccl.so.2,,\n");
  folder.write(site + "nvidia_nccl_cu12-2.27.3.dist-info/METADATA", "Requires-Dist: a==1\n");
  folder.write(site + "nvidia/nccl/lib/libnccl.so.2", "");
  folder.write(site + "deep_ep-1.1-py3.12.egg/deep_ep_cpp.so", "");
  folder.write(site + ".dist-info/RECORD", "");
  const Sysroot sysroot(folder.path());
  const PythonSite found = read_python_site(sysroot, "/site-packages");
  ASSERT_EQ(found.packages.size(), 2U);
  const PythonPackage* const package = found.package("nvidia-nccl-cu12");
  ASSERT_NE(package, nullptr);
  EXPECT_EQ(package->version, "2.27.3");
  EXPECT_EQ(package->requirements, (std::vector<ExactRequirement>{{"a", "1"}}));
  EXPECT_EQ(found.package("nccl"), nullptr);
  ASSERT_EQ(found.libraries.size(), 2U);
  EXPECT_EQ(found.libraries.at("nvidia/nccl/lib/libnccl.so.2"),
            (std::vector<std::string>{"nvidia-nccl-cu12", "nvidia-nccl-cu13"}));
  EXPECT_TRUE(found.libraries.at("deep_ep-1.1-py3.12.egg/deep_ep_cpp.so").empty());
}

} // namespace
} // namespace shmemctl::libraries
