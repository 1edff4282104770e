// Heaps of memory with fabric handles. The machines of a domain are one here: everything but the
// hardware's part is the same.
#include "src/runtime/gpu/cuda_opened_gpu.h"

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

class FabricTest : public ::testing::Test {
protected:
  /// Two GPUs; "cluster" lines define the domain of each.
  void write_nvml(const std::string& clusters) {
    std::string text;
    for (int gpu = 0; gpu < 2; ++gpu) {
      const std::string number = std::to_string(gpu);
      text += "gpu " + number + " 00000000:1" + (gpu == 0 ? "A" : "B") +
              ":00.0 GPU-00000000-0000-0000-0000-00000000000" + std::to_string(gpu + 1) +
              " Fake GPU\nfabric " + number + " 3 0\n";
    }
    folder_.write("nvml.txt", text + clusters);
  }
  ForkJob job(int n_pes, std::function<std::string(Runtime&)> body,
              const std::string& heap = "fabric") {
    return gpu_job(n_pes, std::move(body),
                   {{"SHMEMCTL_HEAP", heap}, {"SHMEMCTL_NVML_LIBRARY", SHMEMCTL_FAKE_NVML}});
  }
  std::string domain(std::string& why) {
    const auto driver = cuda::Driver::open(SHMEMCTL_FAKE_CUDA, why);
    return driver ? fabric_domain(std::make_shared<const cuda::Device>(driver, 0),
                                  SHMEMCTL_FAKE_NVML, why)
                  : "";
  }

  static constexpr const char* one_domain = "cluster 0 7 2\ncluster 1 7 2\n";
  TemporaryFolder folder_;
  SetVariable nvml_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
  SetVariable fabric_{"FAKE_CUDA_FABRIC", "1"};
  SetVariable strict_{"FAKE_CUDA_STRICT", "1"};
};

TEST_F(FabricTest, AHeapIsSharedGrownAndReleased) {
  write_nvml(one_domain);
  expect_all_well(
      run_fork_job(job(3, [](Runtime& runtime) { return put_to_all(runtime, "fabric"); })));
  expect_all_well(run_fork_job(job(2, signal_and_count)));
  ForkJob growing = job(2, grow_to_the_limit);
  growing.after = [] { return held_by_fake() == nothing_held ? "" : held_by_fake(); };
  for (const PeResult& result : run_fork_job(growing))
    EXPECT_EQ(result.text, "");
}

/// Each on its own: memory of the other one's domain is not tried.
TEST_F(FabricTest, PesOfOtherDomainsAreNotMapped) {
  write_nvml("cluster 0 7 2\ncluster 1 7 3\n");
  expect_all_well(run_fork_job(job(2, [](Runtime& runtime) -> std::string {
    const KernelPath& way =
        runtime.gpu()->paths_by_pe()[static_cast<std::size_t>(1 - runtime.pe())];
    expect(way.path != DevicePath::load_store, "no mapping");
    expect(way.reason.find("in another NVLink domain") == 0, way.reason);
    return {};
  })));
}

TEST_F(FabricTest, VirtualNodesStayApart) {
  write_nvml(one_domain);
  ForkJob apart = job(2, [](Runtime& runtime) -> std::string {
    const KernelPath& way =
        runtime.gpu()->paths_by_pe()[static_cast<std::size_t>(1 - runtime.pe())];
    expect(way.path != DevicePath::load_store, "no mapping");
    expect(way.reason.find("on another virtual node") == 0, way.reason);
    return {};
  });
  apart.n_nodes = 2;
  apart.environment["SHMEMCTL_REMOTE_TRANSPORT"] = "none";
  apart.require_reach = false;
  expect_all_well(run_fork_job(apart));
}

/// One machine: descriptors are sufficient, and need no service.
TEST_F(FabricTest, AutoIsForSeveralMachines) {
  write_nvml(one_domain);
  expect_all_well(run_fork_job(job(
      2,
      [](Runtime& runtime) -> std::string {
        expect(runtime.gpu()->info().heap_kind == "vmm", runtime.gpu()->info().heap_kind);
        return {};
      },
      "auto")));
}

TEST_F(FabricTest, TheDomainIsFoundOrMissedWithAReason) {
  std::string why;
  write_nvml(one_domain);
  EXPECT_EQ(domain(why), "07000000000000000000000000000000.2") << why;
  {
    const SetVariable refused("FAKE_CUDA_NO_IMEX", "1");
    EXPECT_EQ(domain(why), "");
    EXPECT_NE(why.find("nvidia-imex"), std::string::npos) << why;
  }
  write_nvml("");
  EXPECT_EQ(domain(why), "");
  EXPECT_NE(why.find("its NVLink domain is one machine"), std::string::npos) << why;
  const SetVariable without("FAKE_CUDA_FABRIC", "0");
  EXPECT_EQ(domain(why), "");
  EXPECT_EQ(why, "the driver has no fabric handles for it");
}

TEST_F(FabricTest, AskedForWhereThereIsNoneIsAnError) {
  write_nvml(one_domain);
  const SetVariable without("FAKE_CUDA_FABRIC", "0");
  for (const PeResult& result :
       run_fork_job(job(2, [](Runtime&) { return std::string("it began"); }))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("no fabric handles"), std::string::npos) << result.text;
  }
}

} // namespace
} // namespace shmemctl::test
