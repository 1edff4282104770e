// The parsers below the checks, and the probe of the CUDA driver.
#include <gtest/gtest.h>

#include "src/instruments/doctor/cuda_probe.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/pcie.h"
#include "src/instruments/doctor/support.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl::doctor {

TEST(Libraries, SaysWhatLibibverbsEnables) {
  Machine machine;
  machine.node = healthy_node();
  machine.files.write("/usr/lib64/libibverbs.so.1.14.0", "");
  machine.files.symlink("/usr/lib64/libibverbs.so.1", "libibverbs.so.1.14.0");
  const Sysroot sysroot = machine.files.sysroot();
  EXPECT_EQ(library("libibverbs")({sysroot, machine.node, machine.environment, nullptr, ""}).reason,
            "version 1.14.0; enables the transports ibrc, ibdevx and ibgda");
}

TEST(Libraries, AreThoseThatShmemctlOpens) {
  // The bootstraps pmi and pmi2 speak the protocol themselves.
  for (const Check& check : all_checks())
    EXPECT_TRUE(check.id != "libpmi" && check.id != "libpmi2") << check.id;
}

TEST(ProcText, VersionNumbers) {
  EXPECT_EQ(version_numbers("6.8.0-45-generic"), (std::vector<int>{6, 8, 0}));
  EXPECT_EQ(version_numbers("5.14"), (std::vector<int>{5, 14}));
  EXPECT_EQ(version_numbers("1.2.3.4.5"), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(version_numbers("7."), (std::vector<int>{7}));
  EXPECT_TRUE(version_numbers("x.1").empty());
  EXPECT_TRUE(version_numbers("-1.2").empty());
  EXPECT_TRUE(version_numbers("99999999999999999999.1").empty());
}

TEST(ProcText, Limits) {
  const std::string text = "Max locked memory         8388608   unlimited            bytes\n";
  const std::optional<Limit> limit = find_limit(text, "Max locked memory");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->soft, 8388608U);
  EXPECT_EQ(limit->hard, std::nullopt);
  EXPECT_FALSE(find_limit(text, "Max open files"));
  EXPECT_FALSE(find_limit("Max open files 12", "Max open files"));
  EXPECT_FALSE(find_limit("Max open files 12x 13 files", "Max open files"));
  EXPECT_FALSE(find_limit("Max open files 99999999999999999999999 1 files", "Max open files"));
}

TEST(ProcText, TheLastMountOnAPointCounts) {
  const std::string mounts = "tmpfs /dev/shm tmpfs rw,size=1k 0 0\nshort /dev/shm\n"
                             "shm /dev/shm tmpfs rw,size=2k 0 0\ntmpfs /dev/shm2 tmpfs rw 0 0\n";
  const std::optional<Mount> mount = find_mount(mounts, "/dev/shm");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->options, "rw,size=2k");
  EXPECT_FALSE(find_mount(mounts, "/dev"));
}

TEST(ProcText, MountSizes) {
  EXPECT_EQ(mount_size_bytes("rw,size=65536k,mode=1777"), 65536U << 10);
  EXPECT_EQ(mount_size_bytes("size=3g"), std::uint64_t{3} << 30);
  EXPECT_EQ(mount_size_bytes("size=4096"), 4096U);
  EXPECT_FALSE(mount_size_bytes("size=50%"));
  EXPECT_FALSE(mount_size_bytes("size="));
  EXPECT_FALSE(mount_size_bytes("rw"));
  EXPECT_FALSE(mount_size_bytes("size=18446744073709551615g"));
}

TEST(ProcText, NvidiaVersion) {
  EXPECT_FALSE(parse_nvidia_version("GCC version: 12.3.0"));
  EXPECT_FALSE(parse_nvidia_version("NVRM version: NVIDIA UNIX Kernel Module for x86_64"));
  const std::optional<NvidiaVersion> version = parse_nvidia_version(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n");
  ASSERT_TRUE(version);
  EXPECT_EQ(version->version, "580.65.06");
  EXPECT_TRUE(version->open_modules);
}

TEST(ProcText, TheLastRegistryDwordCounts) {
  const std::string params = "RegistryDwords: \"A=1;B=0x10;A=2;C;=5\"\n";
  EXPECT_EQ(registry_dword(params, "A"), 2);
  EXPECT_EQ(registry_dword(params, "b"), 16);
  EXPECT_EQ(registry_dword(params, "C"), std::nullopt);
  EXPECT_EQ(registry_dword(params, "D"), std::nullopt);
  EXPECT_EQ(registry_dword("EnableMSI: 1\n", "A"), std::nullopt);
}

TEST(ProcText, SelectedWord) {
  EXPECT_EQ(selected_word("always [madvise] never"), "madvise");
  EXPECT_EQ(selected_word("]a[b"), std::nullopt);
  EXPECT_EQ(selected_word("madvise"), std::nullopt);
}

TEST(ConfigSpace, FindsCapabilities) {
  const ConfigSpace space(config_bytes(4096, 0x2936, 0x001d));
  EXPECT_EQ(space.capability(0x10), 0x60U);
  EXPECT_EQ(space.capability(0x05), std::nullopt);
  EXPECT_EQ(space.device_control(), 0x2936);
  EXPECT_EQ(space.extended_capability(0x000d), 0x148U);
  EXPECT_EQ(space.acs_control(), 0x001d);
  EXPECT_EQ(max_read_request_bytes(0x2936), 512);
  EXPECT_EQ(max_read_request_bytes(0x5936), 4096);
}

TEST(ConfigSpace, WhatCannotBeReadIsUnknown) {
  const ConfigSpace header(config_bytes(4096, 0x2936, 0x001d).substr(0, 64));
  EXPECT_FALSE(header.has_capabilities());
  EXPECT_EQ(header.device_control(), std::nullopt);
  EXPECT_EQ(header.acs_control(), std::nullopt);
  const ConfigSpace standard(config_bytes(256, 0x2936, 0));
  EXPECT_EQ(standard.device_control(), 0x2936);
  EXPECT_FALSE(standard.has_extended_capabilities());
  EXPECT_EQ(ConfigSpace("").word(0), std::nullopt);
}

TEST(ConfigSpace, CirclesOfCapabilitiesEnd) {
  std::string bytes = config_bytes(4096, 0, 0);
  bytes[0x41] = 0x40; // the first capability points to itself
  bytes[0x102] = 0x02;
  bytes[0x103] = 0x10; // the first extended capability goes in a circle, too
  const ConfigSpace space(bytes);
  EXPECT_EQ(space.capability(0x10), std::nullopt);
  EXPECT_EQ(space.extended_capability(0x000d), std::nullopt);
}

TEST(LibraryFiles, VersionInFileName) {
  EXPECT_EQ(version_in_file_name("/usr/lib/libibverbs.so.1.14.44.0"), "1.14.44.0");
  EXPECT_EQ(version_in_file_name("/usr/lib/libx.so"), std::nullopt);
  EXPECT_EQ(version_in_file_name("/usr/lib/libucp.so.0.0.0"), std::nullopt);
}

TEST(CudaProbe, RoundTripsThroughThePipe) {
  CudaProbe probe;
  probe.library = "/usr/lib/x86 64/libcuda.so.1";
  probe.driver_version = 13000;
  probe.init_result = 0;
  probe.devices = {{parse_pci_address("0000:18:00.0"), true}, {std::nullopt, false}};
  probe.peers = {{false, true}, {true, false}};
  const CudaProbe back = parse_cuda_probe(to_text(probe));
  EXPECT_EQ(back.problem, "");
  EXPECT_EQ(back.library, probe.library);
  EXPECT_EQ(back.driver_version, 13000);
  EXPECT_TRUE(back.initialized());
  ASSERT_EQ(back.devices.size(), 2U);
  EXPECT_EQ(back.devices[0].address, probe.devices[0].address);
  EXPECT_TRUE(back.devices[0].dma_buf);
  EXPECT_EQ(back.devices[1].address, std::nullopt);
  EXPECT_FALSE(back.devices[1].dma_buf);
  EXPECT_EQ(back.peers, probe.peers);
}

TEST(CudaProbe, AMissingLibraryIsTold) {
  CudaProbe probe;
  probe.problem = "libcuda.so.1: cannot open shared object file";
  probe.library_unusable = true;
  const CudaProbe back = parse_cuda_probe(to_text(probe));
  EXPECT_EQ(back.problem, probe.problem);
  EXPECT_TRUE(back.library_unusable);
  EXPECT_FALSE(parse_cuda_probe("library /x\n").library_unusable);
}

TEST(CudaProbe, ATruncatedReplyIsAProblem) {
  EXPECT_EQ(parse_cuda_probe("library /x\ndriver_version 13000\n").problem,
            "the CUDA driver did not respond");
  EXPECT_FALSE(parse_cuda_probe("init_result many\n").initialized());
}

TEST(CudaProbe, AChildWithoutTimeIsGivenUp) {
  const auto start = std::chrono::steady_clock::now();
  const CudaProbe probe = probe_cuda(std::chrono::milliseconds(0));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(probe.problem, "cuInit did not return within 0 ms");
}

TEST(CudaProbe, TheLiveMachineReplies) {
  const CudaProbe probe = probe_cuda(std::chrono::seconds(60));
  EXPECT_EQ(probe.problem.empty(), probe.init_result.has_value()) << probe.problem;
}

} // namespace shmemctl::doctor
