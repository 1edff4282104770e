#include <gtest/gtest.h>

#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/gpu_devices.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

/// A copy of 64 MB at that rate.
std::vector<double> at_GBps(double rate) {
  return {64e3 / rate, 64e3 / rate, 70e3 / rate};
}

/// Two healthy GPUs, except for what `change` does to the second.
cuda::DeviceSurvey survey(const std::function<void(cuda::DeviceSample&)>& change = nullptr) {
  cuda::DeviceSurvey all;
  all.copy_bytes = 64'000'000;
  for (const char* address : gpu_address) {
    cuda::DeviceSample device;
    device.pci_address = address;
    device.name = "NVIDIA H200";
    device.cooperative_launch = device.stream_operations = device.unified_addressing = true;
    device.to_device_us = at_GBps(55);
    device.to_host_us = at_GBps(50);
    all.devices.push_back(device);
  }
  if (change)
    change(all.devices.back());
  return all;
}

cuda::DeviceSurvey problem(const std::string& text) {
  cuda::DeviceSurvey none;
  none.problem = text;
  return none;
}

Scenario abilities(const std::string& name, const cuda::DeviceSurvey& gpus, CheckStatus status,
                   const std::string& evidence, const std::string& fix) {
  return {"gpu-abilities", name, nullptr, status, evidence, fix, [gpus] {
            return doctor::judge_gpu_abilities(gpus);
          }};
}
Scenario copies(const std::string& name, const cuda::DeviceSurvey& gpus, CheckStatus status,
                const std::string& evidence, const std::string& fix, const Node& node) {
  return {"gpu-copies", name, nullptr, status, evidence, fix, [gpus, node] {
            return doctor::judge_gpu_copies(gpus, node);
          }};
}

Scenarios all_abilities() {
  return {
      abilities(
          "all", survey(), pass,
          "GPU 1: POSIX file descriptor export, IPC handles, cooperative launches, 64-bit "
          "stream memory operations, unified addressing; no fabric handles, no native atomics on "
          "host memory",
          ""),
      abilities("atomics on host memory", survey([](auto& gpu) { gpu.host_atomics = true; }), pass,
                "GPU 1: POSIX file descriptor export, IPC handles, cooperative launches, 64-bit "
                "stream memory operations, unified addressing, native atomics on host memory; no "
                "fabric handles",
                ""),
      abilities("no file descriptors", survey([](auto& gpu) {
                  gpu.no_descriptors = "cuMemExportToShareableHandle: CUDA_ERROR_NOT_SUPPORTED";
                }),
                warning, "GPU 1: IPC handles", "525"),
      abilities("no way to share memory", survey([](auto& gpu) {
                  gpu.no_descriptors = "the driver has no virtual memory calls for it";
                  gpu.no_ipc_handles = "cuIpcGetMemHandle: CUDA_ERROR_NOT_SUPPORTED";
                }),
                fail, "no POSIX file descriptor export, no IPC handles", "docker run --gpus all"),
      abilities("blocks cannot meet", survey([](auto& gpu) { gpu.cooperative_launch = false; }),
                warning, "no cooperative launches", "MPS"),
      abilities("one cannot be opened", survey([](auto& gpu) {
                  gpu.problem = "cannot make the context of GPU 1: CUDA_ERROR_ECC_UNCORRECTABLE";
                }),
                fail, "a context", "Xid"),
      abilities("the driver hangs", problem("no answer within 40 s"), fail, "child process",
                "dmesg"),
      abilities("no GPU is shown", problem(""), fail, "cuDeviceGetCount: 0", "nvidia-smi"),
      {"gpu-abilities", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "",
       ""},
      {"gpu-abilities", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "",
       ""},
  };
}

Scenarios all_copies() {
  Node unknown = healthy_node();
  for (PciDevice& device : unknown.pci)
    device.link = {};
  const auto slow = [](auto& gpu) { gpu.to_host_us = at_GBps(12); };
  return {
      copies("as quick as the link", survey(), pass,
             "GPU 1: 55.0 GB/s to it, 50.0 back (PCIe, 16 lanes of 32 GT/s: 63.0)", "",
             healthy_node()),
      copies("one way is slow", survey(slow), warning, "GPU 1: 55.0 GB/s to it, 12.0 back",
             "numactl", healthy_node()),
      copies("nobody knows the link", survey(slow), pass, "12.0 back (its PCIe link is not known)",
             "", unknown),
      copies("bytes do not come back",
             survey([](auto& gpu) { gpu.wrong = "at offset 7 expected 01, found 00"; }), fail,
             "GPU 0: 55.0", "--gpu-reset", healthy_node()),
      copies("the driver hangs", problem("no answer within 40 s"), fail, "child process", "dmesg",
             healthy_node()),
      {"gpu-copies", "a copied tree", [](Machine& m) { m.node = healthy_node(); }, skipped, "", ""},
      {"gpu-copies", "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

TEST(DoctorGpuDevices, TheChildsResultIsReturned) {
  cuda::DeviceSurvey sent = survey([](auto& gpu) {
    gpu.problem = "one \"two\"\nthree";
    gpu.no_descriptors = "a";
    gpu.no_ipc_handles = "b";
    gpu.cooperative_launch = false;
    gpu.fabric_handles = gpu.host_atomics = true;
    gpu.wrong = "at offset 3";
  });
  const cuda::DeviceSurvey back = doctor::parse_device_survey(doctor::to_text(sent));
  EXPECT_EQ(back.problem, "");
  EXPECT_EQ(back.copy_bytes, sent.copy_bytes);
  ASSERT_EQ(back.devices.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const cuda::DeviceSample &left = sent.devices[i], &right = back.devices[i];
    EXPECT_EQ(left.pci_address, right.pci_address);
    EXPECT_EQ(left.name, right.name);
    EXPECT_EQ(left.problem, right.problem);
    EXPECT_EQ(left.no_descriptors, right.no_descriptors);
    EXPECT_EQ(left.no_ipc_handles, right.no_ipc_handles);
    EXPECT_EQ(left.cooperative_launch, right.cooperative_launch);
    EXPECT_EQ(left.stream_operations, right.stream_operations);
    EXPECT_EQ(left.fabric_handles, right.fabric_handles);
    EXPECT_EQ(left.unified_addressing, right.unified_addressing);
    EXPECT_EQ(left.host_atomics, right.host_atomics);
    EXPECT_EQ(left.to_device_us, right.to_device_us);
    EXPECT_EQ(left.to_host_us, right.to_host_us);
    EXPECT_EQ(left.wrong, right.wrong);
  }
  for (const char* text : {"", "[", "[\"\",1]", "[\"\",1,[[1]]]", "{}"})
    EXPECT_NE(doctor::parse_device_survey(text).problem, "") << text;
}

} // namespace

Scenarios gpu_device_scenarios() {
  Scenarios all = all_abilities();
  for (const Scenario& each : all_copies())
    all.push_back(each);
  return all;
}

} // namespace shmemctl
