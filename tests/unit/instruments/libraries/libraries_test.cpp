// Libraries of a recorded tree: kinds, versions, owners; and versions that do not fit.
#include <algorithm>
#include <gtest/gtest.h>

#include "src/instruments/libraries/libraries.h"
#include "src/instruments/libraries/versions.h"
#include "tests/support/elf_image.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::libraries {
namespace {

using fake::ElfImage;

TEST(Libraries, KindsAndStems) {
  const auto kind = [](const char* path) {
    const LibraryKind* found = library_kind(path);
    return std::string(found == nullptr ? "" : found->id);
  };
  EXPECT_EQ(kind("/x/libnvshmem_host.so.3"), "nvshmem-host");
  EXPECT_EQ(kind("/x/nvshmem_transport_ibrc.so.3"), "nvshmem-transport");
  EXPECT_EQ(kind("/x/libnccl.so.2.21.5"), "nccl");
  EXPECT_EQ(kind("/x/libnccl-net.so"), "nccl-net");
  EXPECT_EQ(kind("/x/libucp-9be14c45.so.0.0.0"), "ucx");
  EXPECT_EQ(kind("/x/deep_ep_cpp.cpython-312-x86_64-linux-gnu.so"), "deepep");
  EXPECT_EQ(kind("/site-packages/uccl/ep.abi3.so"), "uccl");
  EXPECT_EQ(kind("/site-packages/mori/libmori_pybinds.so"), "mori");
  EXPECT_EQ(kind("/site-packages/mori/cco/cco.cpython-312-x86_64-linux-gnu.so"), "mori");
  EXPECT_EQ(kind("/home/mori/ep.abi3.so"), "");
  EXPECT_EQ(kind("/x/libc.so.6"), "");
  EXPECT_EQ(kind("/x/libcudart_static.a"), "");
  EXPECT_EQ(library_stem("/x/libucp-9be14c45.so.0.0.0"), "libucp");
  EXPECT_EQ(library_stem("/x/libnccl-net.so"), "libnccl-net");
  EXPECT_EQ(library_stem("libnccl.so.2"), "libnccl");
  EXPECT_EQ(leading_version("2.21.5+cuda12.4 x"), "2.21.5+cuda12.4");
  EXPECT_EQ(leading_version("3"), "");
  EXPECT_EQ(leading_version("%d.%d"), "");
  EXPECT_EQ(leading_version("1."), "");
}

TEST(Libraries, Releases) {
  EXPECT_EQ(release_of("3.5.19-1"), (std::array<int, 3>{3, 5, 19}));
  EXPECT_EQ(release_of("12.4"), (std::array<int, 3>{12, 4, 0}));
  EXPECT_EQ(release_of("v3"), std::nullopt);
  EXPECT_EQ(release_of("99999999999.1"), std::nullopt);
}

/// A recorded machine with one process, whose maps grow with each library.
class MachineOfLibraries {
public:
  void add(const std::string& path, const ElfImage& image) {
    folder_.write(path.substr(1), image.bytes());
    map(path);
  }
  void map(const std::string& path) {
    files_.push_back({path, "fd:01", ++inode_, false, "7f0" + std::to_string(inode_) + "-7fff"});
  }
  const TemporaryFolder& folder() const { return folder_; }
  std::vector<MappedFile>& files() { return files_; }
  Libraries libraries() {
    const Sysroot sysroot(folder_.path());
    return LibraryReader(sysroot).libraries(files_, {42, "", 0});
  }
  Findings findings() { return version_findings(libraries()); }

private:
  TemporaryFolder folder_;
  std::vector<MappedFile> files_;
  std::uint64_t inode_ = 0;
};

ElfImage image_with(std::vector<std::string> texts, const std::string& soname = "") {
  ElfImage image;
  image.soname = soname;
  image.texts = std::move(texts);
  return image;
}

TEST(Libraries, VersionsOfTextsNamesAndPackages) {
  MachineOfLibraries machine;
  const std::string site = "/opt/venv/lib/python3.12/site-packages/";
  machine.add(site + "nvidia/nccl/lib/libnccl.so.2",
              image_with({"NCCL version %s", "NCCL version 2.21.5+cuda12.4", "NCCL_DEBUG"}));
  machine.add("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0", ElfImage{});
  machine.add("/usr/lib/x86_64-linux-gnu/libucp.so.0.0.0", ElfImage{});
  machine.add("/opt/libfabric.so.1", image_with({"127.0.0.1", "1.17.0"}));
  machine.map("/gone/libmlx5.so.1");
  machine.folder().write(site.substr(1) + "nvidia_nccl_cu12-2.21.5.dist-info/RECORD",
                         "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
  machine.folder().write(site.substr(1) + "other-1.0.dist-info/RECORD", "other.py,,\n");
  machine.folder().write("var/lib/dpkg/info/libucx0:amd64.list",
                         "/.\n/usr/lib/x86_64-linux-gnu/libucp.so.0.0.0\n");
  machine.folder().write("var/lib/dpkg/status", "Package: libucx0\nVersion: 1.13.1-1\n\n");
  const Libraries libraries = machine.libraries();
  ASSERT_EQ(libraries.size(), 5U);
  EXPECT_EQ(libraries[0]->version, "2.21.5+cuda12.4");
  EXPECT_EQ(libraries[0]->version_source, "text in the file");
  EXPECT_EQ(libraries[0]->owner, "nvidia-nccl-cu12 2.21.5");
  EXPECT_EQ(libraries[0]->state, "not compared");
  EXPECT_TRUE(libraries[0]->knows("NCCL_DEBUG"));
  EXPECT_FALSE(libraries[0]->knows("NCCL_DEBU"));
  EXPECT_EQ(libraries[1]->version, "1.14.44.0");
  EXPECT_EQ(libraries[1]->version_source, "file name");
  EXPECT_EQ(libraries[2]->owner, "libucx0 1.13.1-1");
  EXPECT_EQ(libraries[2]->version_source, "package");
  EXPECT_EQ(libraries[3]->version, "1.17.0");
  EXPECT_EQ(libraries[4]->version, "");
  EXPECT_EQ(libraries[4]->version_source, "No such file or directory");
}

TEST(Libraries, AFileIsReadOnce) {
  MachineOfLibraries machine;
  machine.add("/opt/libnccl.so.2", image_with({"NCCL version 2.21.5"}));
  const Sysroot sysroot(machine.folder().path());
  LibraryReader reader(sysroot);
  const auto first = reader.libraries(machine.files(), {42, "", 0}).at(0);
  EXPECT_EQ(reader.libraries(machine.files(), {43, "", 0}).at(0), first);
  EXPECT_EQ(reader.files_read(), 1U);
}

TEST(Libraries, DeletedAndReplaced) {
  MachineOfLibraries machine;
  machine.add("/opt/libnccl.so.2", image_with({"NCCL version 2.28.3"})); // the new one
  machine.map("/gone/libnccl.so.2");
  for (MappedFile& file : machine.files())
    file.deleted = true;
  const Libraries libraries = machine.libraries();
  EXPECT_EQ(libraries[0]->state, "replaced");
  EXPECT_EQ(libraries[0]->version, ""); // the new file's version would be wrong
  EXPECT_EQ(libraries[1]->state, "deleted");
}

TEST(Versions, NvshmemSplitAndLayout) {
  MachineOfLibraries machine;
  machine.add("/opt/libnvshmem_host.so.3", image_with({"NVSHMEM v3.6.5"}));
  machine.add("/opt/deep_ep_cpp.so",
              image_with({"NVSHMEM v3.4.5", "nvshmemi_ibgda_device_state_d"}));
  const Findings findings = machine.findings();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].id, "nvshmem-version-split");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[1].id, "nvshmem-qp-layout");
  EXPECT_EQ(findings[1].severity, Severity::error);
  for (const Finding& finding : findings) {
    EXPECT_NE(finding.message.find("/opt/libnvshmem_host.so.3"), std::string::npos);
    EXPECT_NE(finding.message.find("/opt/deep_ep_cpp.so"), std::string::npos);
    EXPECT_NE(finding.fix.find("rebuild deep_ep_cpp"), std::string::npos);
  }
}

TEST(Versions, NvshmemThatFits) {
  {
    MachineOfLibraries machine; // the same release
    machine.add("/opt/libnvshmem_host.so.3", image_with({"NVSHMEM v3.4.5"}));
    machine.add("/opt/deep_ep_cpp.so",
                image_with({"NVSHMEM v3.4.5", "nvshmemi_ibgda_device_state_d"}));
    EXPECT_TRUE(machine.findings().empty());
  }
  {
    MachineOfLibraries machine; // an older device library without private state: allowed
    machine.add("/opt/libnvshmem_host.so.3", image_with({"NVSHMEM v3.6.5"}));
    machine.add("/opt/pplx_kernels.so", image_with({"NVSHMEM v3.4.5"}));
    const Findings findings = machine.findings();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].severity, Severity::warning);
  }
  {
    MachineOfLibraries machine; // built for the new order
    machine.add("/opt/libnvshmem_host.so.3", image_with({"NVSHMEM v3.5.19"}));
    machine.add("/opt/deep_ep_cpp.so",
                image_with({"NVSHMEM v3.5.19", "nvshmemi_ibgda_device_state_d"}));
    EXPECT_TRUE(machine.findings().empty());
  }
}

TEST(Versions, APluginOfAnotherRelease) {
  MachineOfLibraries machine;
  machine.add("/opt/libnvshmem_host.so.3", image_with({"NVSHMEM v3.6.5"}));
  machine.add("/usr/lib/nvshmem_transport_ibrc.so.3", image_with({"NVSHMEM v3.4.5"}));
  machine.add("/opt/nvshmem_bootstrap_uid.so.3", image_with({"nothing"}));
  const Findings findings = machine.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "nvshmem-version-split");
  EXPECT_NE(findings[0].message.find("nvshmem_transport_ibrc.so.3"), std::string::npos);
}

TEST(Versions, TwoFilesOfOneLibrary) {
  MachineOfLibraries machine;
  machine.add("/usr/lib/libnccl.so.2", image_with({"NCCL version 2.18.3"}));
  machine.add("/opt/libnccl.so.2", image_with({"NCCL version 2.21.5"}));
  machine.add("/opt/libucp.so.0", ElfImage{});
  machine.add("/opt/libucs.so.0", ElfImage{});
  const Findings findings = machine.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "library-twice");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].message.find("/usr/lib/libnccl.so.2 (2.18.3)"), std::string::npos);
  EXPECT_NE(findings[0].message.find("/opt/libnccl.so.2 (2.21.5)"), std::string::npos);
}

TEST(Versions, SymbolVersionsThatAreMissing) {
  ElfImage mlx5 = image_with({}, "libmlx5.so.1");
  mlx5.defined = {"MLX5_1.0", "MLX5_1.24"};
  MachineOfLibraries machine;
  machine.add("/usr/lib/libmlx5.so.1.24.44.0", mlx5);
  machine.add("/opt/libnccl.so.2", image_with({"NCCL version 2.28.3", "MLX5_1.24", "MLX5_1.25"}));
  ElfImage transport = image_with({"x"});
  transport.needed = {{"libmlx5.so.1", {"MLX5_1.24", "MLX5_1.26"}}};
  machine.add("/opt/nvshmem_transport_ibgda.so.3", transport);
  const Findings findings = machine.findings();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].id, "symbol-missing");
  EXPECT_EQ(findings[0].severity, Severity::info); // dlvsym()
  EXPECT_NE(findings[0].message.find("at run time for MLX5_1.25 of libmlx5.so.1"),
            std::string::npos);
  EXPECT_NE(findings[0].fix.find("install a newer rdma-core"), std::string::npos);
  EXPECT_EQ(findings[1].severity, Severity::error);
  EXPECT_NE(findings[1].message.find("MLX5_1.26"), std::string::npos);
  EXPECT_EQ(findings[1].message.find("MLX5_1.24,"), std::string::npos);
}

} // namespace
} // namespace shmemctl::libraries
