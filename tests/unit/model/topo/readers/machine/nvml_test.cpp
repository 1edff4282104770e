// NVML, implemented by the shared object tests/fake/fake_nvml.c.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/model/topo/distance.h"
#include "src/model/topo/readers/machine.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "tests/support/fake_machine.h"
#include "tests/support/other_threads.h"
#include "tests/support/set_variable.h"

namespace shmemctl {
namespace {

using fake::FakeMachine;

class FakeNvml : public ::testing::Test {
protected:
  void TearDown() override { ::unsetenv("FAKE_NVML_CONFIG"); }

  void configure(const std::string& text) {
    machine_.write("/nvml.txt", text);
    ::setenv("FAKE_NVML_CONFIG", machine_.host_path("/nvml.txt").c_str(), 1);
  }
  Nvml open(const std::string& text) {
    configure(text);
    std::string why;
    std::optional<Nvml> nvml = Nvml::open(SHMEMCTL_FAKE_NVML, why);
    if (!nvml)
      throw std::runtime_error(why);
    return std::move(*nvml);
  }
  Node read(const std::string& text) {
    configure(text);
    return read_machine(machine_.sysroot(), SHMEMCTL_FAKE_NVML);
  }
  static std::string gpu_line(int index, const std::string& address) {
    return fmt::format("gpu {} 0000{} GPU-{} NVIDIA H100 80GB HBM3\n", index, address, index);
  }

  FakeMachine machine_;
};

TEST_F(FakeNvml, MissingLibrarySaysWhy) {
  std::string why;
  EXPECT_FALSE(Nvml::open("libshmemctl-none.so.1", why));
  EXPECT_NE(why.find("libshmemctl-none.so.1"), std::string::npos);
}

TEST_F(FakeNvml, LibraryThatIsNotNvmlSaysWhatItLacks) {
  std::string why;
  EXPECT_FALSE(Nvml::open("libm.so.6", why));
  EXPECT_EQ(why, "nvmlInit_v2: this driver's NVML does not have it");
}

TEST_F(FakeNvml, DriverThatIsNotLoaded) {
  configure("fail nvmlInit_v2 9\n");
  std::string why;
  EXPECT_FALSE(Nvml::open(SHMEMCTL_FAKE_NVML, why));
  EXPECT_EQ(why, "nvmlInit_v2: Driver Not Loaded");
}

TEST_F(FakeNvml, ItsThreadTakesNoSignalsOfTheProgram) {
  const test::SetVariable threads("FAKE_NVML_THREAD", "1");
  const Nvml nvml = open("");
  bool seen = false;
  for (const test::OtherThread& thread : test::other_threads()) {
    seen |= thread.name == "fake-nvml";
    EXPECT_FALSE(thread.takes_signals) << thread.name;
  }
  EXPECT_TRUE(seen);
}

TEST_F(FakeNvml, Versions) {
  const Nvml nvml = open("driver 580.159.03\ncuda 13010\n");
  EXPECT_EQ(*nvml.driver_version(), "580.159.03");
  EXPECT_EQ(*nvml.cuda_version(), "13.1");
  EXPECT_EQ(*nvml.device_count(), 0);
  EXPECT_NE(nvml.file().find("fake_nvml"), std::string::npos);
}

TEST_F(FakeNvml, OneGpu) {
  const Nvml nvml = open(gpu_line(0, "0000:18:00.0") +
                         "minor 0 3\ncpus 0 ff0\nnuma 0 2\nvbios 0 96.00.89.00.01\n");
  const NvmlGpu gpu = nvml.gpu(0);
  EXPECT_EQ(to_string(*gpu.address), "0000:18:00.0");
  EXPECT_EQ(*gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(*gpu.uuid, "GPU-0");
  EXPECT_EQ(*gpu.vbios, "96.00.89.00.01");
  EXPECT_EQ(*gpu.minor, 3);
  EXPECT_EQ(*gpu.cpus, "4-11");
  EXPECT_EQ(*gpu.numa, 1);
  EXPECT_EQ(*gpu.mig_enabled, false);
  ASSERT_TRUE(gpu.links) << gpu.links.origin;
  EXPECT_TRUE((*gpu.links).empty()) << "a card without NVLink is known to have none";
}

TEST_F(FakeNvml, ANodeHasTheVersionsOfDriverCudaAndVbios) {
  machine_.add_hgx_node();
  const std::string gpus = gpu_line(0, FakeMachine::hgx_gpu(0)) + "vbios 0 96.00.89.00.01\n" +
                           gpu_line(1, FakeMachine::hgx_gpu(1));
  Node node = read("driver 580.159.03\ncuda 13000\n" + gpus);
  EXPECT_EQ(*node.driver_version, "580.159.03");
  EXPECT_EQ(*node.cuda_version, "13.0");
  EXPECT_EQ(*node.gpus[0].vbios, "96.00.89.00.01");
  EXPECT_FALSE(node.gpus[1].vbios);
  EXPECT_EQ(node.gpus[1].vbios.origin, "nvmlDeviceGetVbiosVersion: Not Supported");
  nlohmann::json versions = host_json(node, nullptr)["versions"];
  EXPECT_EQ(versions, nlohmann::json({{"nvidia", "580.159.03"}, {"cuda", "13.0"}}));
  // The kernel's own answer is that of the driver that runs.
  machine_.write("/sys/module/nvidia/version", "570.1\n");
  const Sysroot sysroot = machine_.sysroot();
  EXPECT_EQ(host_json(node, &sysroot)["versions"]["nvidia"], "570.1");
  node = read("fail nvmlSystemGetCudaDriverVersion_v2 3\n" + gpus);
  EXPECT_FALSE(host_json(node, nullptr)["versions"].contains("cuda"));
}

TEST_F(FakeNvml, SeveralNumaNodesMeanUnknown) {
  const NvmlGpu gpu = open(gpu_line(0, "0000:18:00.0") + "numa 0 3\n").gpu(0);
  EXPECT_FALSE(gpu.numa);
  EXPECT_EQ(gpu.numa.origin, "nvmlDeviceGetMemoryAffinity names NUMA nodes \"0-1\"");
}

TEST_F(FakeNvml, EighteenLinksToSwitchesAreNv18) {
  machine_.add_hgx_node();
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += gpu_line(i, FakeMachine::hgx_gpu(i)) +
            fmt::format("links {0} 0 6 2 00000000:05:00.0\nlinks {0} 6 12 2 00000000:06:00.0\n", i);
  const Node node = read(text);
  ASSERT_EQ(node.gpus.size(), 8U);
  for (int left = 0; left < 8; ++left)
    for (int right = 0; right < 8; ++right)
      EXPECT_EQ(to_string(distance(node, left, right)), left == right ? "X" : "NV18");
  const std::vector<GpuLink>& links = node.gpus[2].links;
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].target, LinkTarget::nvswitch);
  EXPECT_EQ(links[0].count + links[1].count, 18);
  EXPECT_DOUBLE_EQ(*links[0].bandwidth_GBps, 26.562);
  EXPECT_EQ(*node.gpus[2].uuid, "GPU-2");
  EXPECT_TRUE(node.notes.empty());
}

// As seen on H200 virtual machines: the kind of the other end is known, its address is not.
TEST_F(FakeNvml, SwitchesWithHiddenAddresses) {
  machine_.add_hgx_node();
  const Node node = read(gpu_line(0, FakeMachine::hgx_gpu(0)) + "links 0 0 18 2 -\n" +
                         gpu_line(1, FakeMachine::hgx_gpu(1)) + "links 1 0 18 2 -\n");
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV18");
  ASSERT_EQ(node.gpus[0].links.size(), 1U);
  EXPECT_FALSE(node.gpus[0].links[0].target_address);
}

TEST_F(FakeNvml, DirectLinks) {
  machine_.add_hgx_node();
  const std::string first = FakeMachine::hgx_gpu(0), second = FakeMachine::hgx_gpu(1);
  const Node node = read(gpu_line(0, first) + "links 0 0 4 0 0000" + second + "\n" +
                         "links 0 4 2 1 -\n" + gpu_line(1, second) + "links 1 0 4 0 0000" + first +
                         "\ndown 1 4\n" + gpu_line(2, FakeMachine::hgx_gpu(2)));
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV4");
  EXPECT_EQ(to_string(distance(node, 0, 2)), "NODE");
  ASSERT_EQ(node.gpus[0].links.size(), 2U);
  EXPECT_EQ(node.gpus[0].links[1].target, LinkTarget::cpu);
  EXPECT_EQ(node.gpus[1].links.size(), 1U) << "a link that is down does not count";
}

TEST_F(FakeNvml, UnknownKindOfTargetIsResolvedByAddress) {
  machine_.add_hgx_node();
  machine_.add_pci({.address = "0000:05:00.0", .class_code = 0x068000, .device = 0x22a3});
  const Node node =
      read(gpu_line(0, FakeMachine::hgx_gpu(0)) + "links 0 0 2 255 0000" + FakeMachine::hgx_gpu(1) +
           "\nlinks 0 2 3 255 00000000:05:00.0\n" +
           "links 0 5 1 255 00000000:77:00.0\nfail nvmlDeviceGetNvLinkRemoteDeviceType 3\n");
  const std::vector<GpuLink>& links = node.gpus[0].links;
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[0].target, LinkTarget::gpu);
  EXPECT_EQ(links[1].target, LinkTarget::nvswitch);
  EXPECT_EQ(links[2].target, LinkTarget::unknown);
  EXPECT_EQ(to_string(distance(node, 0, 1)), "NV2");
}

TEST_F(FakeNvml, MigHidesLinks) {
  machine_.add_hgx_node();
  const Node node = read(gpu_line(0, FakeMachine::hgx_gpu(0)) + "links 0 0 18 2 -\nmig 0\n");
  EXPECT_TRUE(node.gpus[0].links.empty());
  bool told = false;
  for (const std::string& note : node.notes)
    told = told || note.find("Not Supported (MIG is enabled)") != std::string::npos;
  EXPECT_TRUE(told) << fmt::format("{}", node.notes.empty() ? "no note" : node.notes[0]);
}

TEST_F(FakeNvml, LostGpuIsNotedAndTheOthersAreRead) {
  machine_.add_hgx_node();
  const Node node =
      read(gpu_line(0, FakeMachine::hgx_gpu(0)) + gpu_line(1, FakeMachine::hgx_gpu(1)) +
           "fail nvmlDeviceGetHandleByIndex_v2 15 0\n");
  ASSERT_EQ(node.gpus.size(), 8U) << "sysfs still lists the lost one";
  EXPECT_EQ(*node.gpus[1].uuid, "GPU-1");
  ASSERT_FALSE(node.notes.empty());
  EXPECT_EQ(node.notes[0],
            "NVML's GPU 0 cannot be placed: nvmlDeviceGetHandleByIndex_v2: GPU is lost");
}

TEST_F(FakeNvml, GpuIsLostWhileItIsAsked) {
  machine_.add_hgx_node();
  const Node node = read(gpu_line(0, FakeMachine::hgx_gpu(0)) +
                         "fail nvmlDeviceGetNvLinkState 15\nfail nvmlDeviceGetName 15\n");
  EXPECT_TRUE(node.gpus[0].links.empty());
  EXPECT_EQ(*node.gpus[0].name, "NVIDIA H100 80GB HBM3") << "the file of the driver still tells";
  EXPECT_EQ(node.notes.at(0), "the NVLinks of GPU " + FakeMachine::hgx_gpu(0) +
                                  " are unknown: nvmlDeviceGetNvLinkState: GPU is lost");
}

TEST_F(FakeNvml, GpuThatTheTreeLacksIsAdded) {
  machine_.add_gpu("0000:21:00.0", {}, 0);
  const Node node = read(gpu_line(0, "0000:99:00.0") + "numa 0 2\n");
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_EQ(*node.gpus[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(*node.gpus[1].numa, 1);
  const PciDevice& function = node.pci.at(static_cast<std::size_t>(node.gpus[1].pci));
  EXPECT_EQ(to_string(function.address), "0000:99:00.0");
  EXPECT_FALSE(function.class_code);
  EXPECT_EQ(*node.gpus[1].driver_index, 0);
  bool told = false;
  for (const std::string& note : node.notes)
    told = told || note == "NVML does not show GPU 0000:21:00.0: its NVLinks are unknown";
  EXPECT_TRUE(told);
}

TEST_F(FakeNvml, DriverIndexOnlyWhereItDiffers) {
  machine_.add_hgx_node();
  const Node node =
      read(gpu_line(0, FakeMachine::hgx_gpu(1)) + gpu_line(1, FakeMachine::hgx_gpu(0)) +
           gpu_line(2, FakeMachine::hgx_gpu(2)));
  EXPECT_EQ(*node.gpus[0].driver_index, 1);
  EXPECT_EQ(*node.gpus[1].driver_index, 0);
  EXPECT_FALSE(node.gpus[2].driver_index);
}

TEST_F(FakeNvml, C2cLinks) {
  const NvmlGpu gpu = open(gpu_line(0, "0009:01:00.0") + "c2c 0 10 44712\n").gpu(0);
  ASSERT_EQ((*gpu.links).size(), 1U);
  const GpuLink& link = (*gpu.links)[0];
  EXPECT_EQ(link.kind, GpuLinkKind::c2c);
  EXPECT_EQ(link.target, LinkTarget::cpu);
  EXPECT_EQ(link.count, 10);
  EXPECT_DOUBLE_EQ(*link.bandwidth_GBps, 44.712);
}

TEST_F(FakeNvml, HealthyGpu) {
  const Nvml nvml = open(gpu_line(0, "0000:18:00.0") + "persistence 0 1\nfabric 0 3 0\n");
  const NvmlHealth health = nvml.health(0);
  EXPECT_EQ(*health.persistence_mode, true);
  EXPECT_EQ(*health.ecc_enabled, true);
  EXPECT_EQ(*health.uncorrected_ecc_errors, 0U);
  EXPECT_FALSE((*health.remapped_rows).pending);
  EXPECT_EQ(*health.fabric_state, FabricState::completed);
  EXPECT_EQ(*health.fabric_status, 0);
  EXPECT_TRUE(throttle_words(*health.throttle_reasons).empty());
  EXPECT_FALSE(health.retired_pages_pending);
  EXPECT_EQ(health.retired_pages_pending.origin,
            "nvmlDeviceGetRetiredPagesPendingStatus: this driver's NVML does not have it");
}

TEST_F(FakeNvml, ClocksOfMultiprocessorsAndMemory) {
  const NvmlHealth health =
      open(gpu_line(0, "0000:18:00.0") + "clock 0 1 345 1980 1200 1980\nclock 0 2 2619 2619 0 0\n")
          .health(0);
  EXPECT_EQ(*health.sm_clock.now_MHz, 345U);
  EXPECT_EQ(*health.sm_clock.max_MHz, 1980U);
  EXPECT_EQ(*health.sm_clock.application_MHz, 1200U);
  EXPECT_EQ(*health.sm_clock.default_MHz, 1980U);
  EXPECT_EQ(*health.memory_clock.now_MHz, 2619U);
  EXPECT_FALSE(health.memory_clock.application_MHz);
  EXPECT_EQ(health.memory_clock.default_MHz.origin,
            "nvmlDeviceGetDefaultApplicationsClock: Not Supported");
  EXPECT_TRUE(are_clocks_held_by_setting(0x2));
  EXPECT_FALSE(are_clocks_held_by_setting(0x3)) << "idle";
  EXPECT_FALSE(are_clocks_held_by_setting(0x4)) << "power";
}

TEST_F(FakeNvml, NvlinkDomainsOfSeveralMachinesHaveAName) {
  const auto domain = [&](const std::string& lines) {
    return open(gpu_line(0, "0000:18:00.0") + lines).health(0).fabric_domain;
  };
  EXPECT_EQ(*domain("fabric 0 3 0\ncluster 0 10 5\n"), "0a000000000000000000000000000000.5");
  EXPECT_FALSE(domain("fabric 0 3 0\n")) << "one machine";
  EXPECT_FALSE(domain("fabric 0 2 0\ncluster 0 10 5\n")) << "not registered yet";
  EXPECT_FALSE(domain("fabric 0 3 999\ncluster 0 10 5\n")) << "it failed";
  EXPECT_FALSE(domain("").origin.empty());
}

TEST_F(FakeNvml, SickGpu) {
  const Nvml nvml =
      open(gpu_line(0, "0000:18:00.0") + "ecc 0 7\nrows 0 1 2 1 1\nthrottle 0 69\nfabric 0 2 999\n"
                                         "links 0 0 16 2 -\ndown 0 16\ndown 0 17\n");
  const NvmlHealth health = nvml.health(0);
  EXPECT_EQ(*health.uncorrected_ecc_errors, 7U);
  EXPECT_EQ((*health.remapped_rows).uncorrectable, 2U);
  EXPECT_TRUE((*health.remapped_rows).pending && (*health.remapped_rows).failed);
  EXPECT_EQ(*health.fabric_state, FabricState::in_progress);
  EXPECT_EQ(throttle_words(*health.throttle_reasons),
            (std::vector<std::string>{"hardware slowdown", "software thermal slowdown",
                                      "hardware thermal slowdown"}));
  const NvmlGpu gpu = nvml.gpu(0);
  EXPECT_EQ(*gpu.nvlinks_present, 18);
  EXPECT_EQ(*gpu.nvlinks_active, 16);
}

TEST_F(FakeNvml, HealthOfALostGpuIsUnknownWithTheReason) {
  const Nvml nvml = open(gpu_line(0, "0000:18:00.0") + "fail nvmlDeviceGetHandleByIndex_v2 15\n");
  const NvmlHealth health = nvml.health(0);
  for (const std::string& origin :
       {health.persistence_mode.origin, health.ecc_enabled.origin, health.fabric_state.origin,
        health.remapped_rows.origin, health.throttle_reasons.origin,
        health.sm_clock.default_MHz.origin, health.memory_clock.now_MHz.origin})
    EXPECT_EQ(origin, "nvmlDeviceGetHandleByIndex_v2: GPU is lost");
  EXPECT_FALSE(nvml.gpu(7).address) << "an index that does not exist";
}

TEST_F(FakeNvml, LibraryWithoutGpusLeavesTheTreeAlone) {
  machine_.add_hgx_node();
  const Node node = read("");
  EXPECT_EQ(node.gpus.size(), 8U);
  EXPECT_EQ(node.notes.size(), 8U);
}

TEST_F(FakeNvml, MissingLibraryIsANoteWhereThereAreGpus) {
  machine_.add_gpu("0000:21:00.0", {}, 0);
  const Node node = read_machine(machine_.sysroot(), "libshmemctl-none.so.1");
  ASSERT_EQ(node.notes.size(), 1U);
  EXPECT_NE(node.notes[0].find("NVLinks are unknown"), std::string::npos);
}

} // namespace
} // namespace shmemctl
