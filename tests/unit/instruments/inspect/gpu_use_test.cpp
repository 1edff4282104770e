// GPUs of processes: the recorded form, the numbers under CUDA_VISIBLE_DEVICES, device files.
#include <gtest/gtest.h>

#include <string>

#include "src/instruments/inspect/gpu_use.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

constexpr const char* recorded_gpus = "gpu 0 pci 0000:18:00.0 uuid GPU-aaaa1111\n"
                                      "gpu 4 pci 0000:9a:00.0 uuid GPU-bbbb2222\n"
                                      "gpu 0 pid 11 used-bytes 1000 busy-percent 3\n"
                                      "gpu 4 pid 11 used-bytes 5000000000\n"
                                      "gpu 4 pid 12\n";

std::optional<int> seen_as(const std::string& visible) {
  return visible_index(&visible, parse_gpu_processes(recorded_gpus).gpus.at(1));
}

TEST(InspectGpuUse, WhatIsRecordedIsReadAgain) {
  const GpuProcesses found = parse_gpu_processes(
      std::string(recorded_gpus) + "gpu 9 pid 1\ngpu x\ngpu 4 pid -3\ngpu 0 pci zz\nnonsense\n");
  ASSERT_EQ(found.gpus.size(), 2U);
  EXPECT_EQ(found.gpus[1].index, 4);
  EXPECT_EQ(to_string(found.gpus[1].address), "0000:9a:00.0");
  ASSERT_EQ(found.gpus[1].processes.size(), 2U);
  EXPECT_EQ(found.gpus[1].processes[0].used_bytes, 5000000000U);
  EXPECT_EQ(found.gpus[1].processes[1].used_bytes, std::nullopt);
  EXPECT_EQ(found.gpus[0].processes[0].busy_percent, 3U);
  EXPECT_EQ(gpu_processes_text(parse_gpu_processes(gpu_processes_text(found))),
            gpu_processes_text(found));
}

TEST(InspectGpuUse, NumbersUnderCudaVisibleDevices) {
  EXPECT_EQ(visible_index(nullptr, parse_gpu_processes(recorded_gpus).gpus.at(1)), 4);
  EXPECT_EQ(seen_as("4"), 0);
  EXPECT_EQ(seen_as("0, 4"), 1);
  EXPECT_EQ(seen_as("GPU-aaaa,GPU-bbbb"), 1);
  EXPECT_EQ(seen_as("0,1,2"), std::nullopt);
  EXPECT_EQ(seen_as("0,-1,4"), std::nullopt) << "CUDA looks no further";
  EXPECT_EQ(seen_as("MIG-1234,4"), std::nullopt);
  EXPECT_EQ(seen_as(""), std::nullopt);
}

TEST(InspectGpuUse, OfOneProcess) {
  const TemporaryFolder folder;
  const Sysroot none(folder.path());
  Process process;
  process.pid = 11;
  process.environment.emplace()["CUDA_VISIBLE_DEVICES"] = "4";
  const auto uses = gpus_of(none, process, parse_gpu_processes(recorded_gpus));
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].index, 4) << "the one with most memory first";
  EXPECT_EQ(uses[0].visible_index, 0);
  EXPECT_EQ(uses[0].source, "NVML");
  EXPECT_EQ(uses[1].visible_index, std::nullopt);
  process.pid = 13;
  EXPECT_TRUE(gpus_of(none, process, parse_gpu_processes(recorded_gpus)).empty());
}

TEST(InspectGpuUse, TheOnlyDeviceFileTells) {
  const TemporaryFolder folder;
  folder.write("proc/driver/nvidia/gpus/0000:18:00.0/information", "Device Minor: \t 0\n");
  folder.write("proc/driver/nvidia/gpus/0000:9a:00.0/information",
               "Model: NVIDIA H100\nDevice Minor: \t 7\n");
  const Sysroot sysroot(folder.path());
  Process process;
  process.devices = {
      {3, "/dev/nvidiactl"}, {4, "/dev/nvidia7"}, {5, "/dev/nvidia7"}, {6, "/dev/nvidia-uvm"}};
  process.environment.emplace()["CUDA_VISIBLE_DEVICES"] = "1";
  const auto uses = gpus_of(sysroot, process, {});
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].index, 1) << "the driver's order, not the minor number";
  EXPECT_EQ(uses[0].visible_index, 0);
  EXPECT_EQ(uses[0].source, "/dev/nvidia7");
  process.devices.push_back({7, "/dev/nvidia0"}); // CUDA opens all GPUs that the process may see
  EXPECT_TRUE(gpus_of(sysroot, process, {}).empty());
}

TEST(InspectGpuUse, NvlinksOfAWindow) {
  NvlinkCounters before, after, none;
  none.problem = "the GPU has no NVLink";
  before.links = {{0, known<std::uint64_t>(10, "x"), known<std::uint64_t>(10, "x")}};
  after.links = {{0, known<std::uint64_t>(14, "x"), known<std::uint64_t>(9, "x")}};
  const auto loads = nvlink_loads({{0, before}, {1, none}}, {{0, after}, {1, none}, {2, after}});
  ASSERT_EQ(loads.size(), 1U);
  EXPECT_EQ(loads[0].sent_bytes, 4096U);
  EXPECT_EQ(loads[0].received_bytes, std::nullopt);
  EXPECT_NE(loads[0].reason.find("reset"), std::string::npos);
}

} // namespace
} // namespace shmemctl::inspect
