// Which GPUs, heaps and paths a job gets, and what is reported where it gets none.
#include <cuda.h>

#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

TEST(GpuRuntime, PesUseDevicesRoundRobin) {
  const std::vector<PeResult> results = run_fork_job(gpu_job(3, [](Runtime& runtime) {
    const GpuInfo& site = runtime.gpu()->info();
    return std::to_string(site.device) + " " + std::to_string(site.pes_on_device) + " " +
           site.heap_kind + " " + site.pci_address + " " + runtime.gpu()->paths_by_pe()[2].reason;
  }));
  expect_all_well(results);
  EXPECT_EQ(results[0].text, "0 2 vmm 0000:1a:00.0 memory of the same GPU");
  EXPECT_EQ(results[1].text, "1 1 vmm 0000:1b:00.0 peer mapping by NVLink or PCIe");
  EXPECT_EQ(results[2].text, "0 2 vmm 0000:1a:00.0 its own memory");
}

std::string gpu_or_reason(Runtime& runtime) {
  return runtime.gpu() ? "gpu" + runtime.no_gpu_reason() : runtime.no_gpu_reason();
}

TEST(GpuRuntime, WithoutADriverThereIsAReasonOrAnError) {
  ForkJob job = gpu_job(2, gpu_or_reason, {{"SHMEMCTL_CUDA_LIBRARY", "libcuda-of-nobody.so.1"}});
  job.gpu = GpuUse::if_available;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_NE(result.text.find("libcuda-of-nobody.so.1"), std::string::npos) << result.text;
  }
  job.gpu = GpuUse::required;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("in phase gpu"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("libcuda-of-nobody.so.1"), std::string::npos) << result.text;
  }
}

/// x.4 of the major version before the one that this binary is built with: CUDA 12.4 for 13.0.
constexpr int old_driver = CUDA_VERSION / 1000 * 1000 - 1000 + 40;
const std::string old_driver_text =
    "the driver supports CUDA " + std::to_string(old_driver / 1000) + ".4";

// A binary of CUDA 13 under a driver of CUDA 12: what needs no kernel works.
TEST(GpuRuntime, AnOldDriverRunsNoKernelsAndAllElse) {
  const SetVariable old("FAKE_CUDA_DRIVER", std::to_string(old_driver));
  ForkJob job = gpu_job(2, [](Runtime& runtime) {
    auto* word = static_cast<std::uint64_t*>(runtime.gpu()->allocate(8));
    runtime.rma().put_value<std::uint64_t>(word, 5, 1 - runtime.pe());
    runtime.rma().quiet();
    runtime.collectives().barrier(team_world);
    expect(word_at(*runtime.gpu(), word) == 5, "the host's put into GPU memory");
    return runtime.gpu()->info().no_kernels;
  });
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text.rfind(old_driver_text + ", and this binary's kernels", 0), 0u)
        << result.text;
  }
  job.kernels = true;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    for (const std::string& part : {std::string("kernels of this job"), std::string("in phase gpu"),
                                    old_driver_text, std::string("cuda-compat-")})
      EXPECT_NE(result.text.find(part), std::string::npos) << part << "\n" << result.text;
  }
}

TEST(GpuRuntime, OnePeWithAnOldDriverIsNamedByAll) {
  ForkJob job = gpu_job(3, gpu_or_reason);
  job.kernels = true;
  job.of_pe = [](int pe, Environment&) {
    if (pe == 1) // the process of this PE alone
      ::setenv("FAKE_CUDA_DRIVER", std::to_string(old_driver).c_str(), 1);
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("PE 1 on "), std::string::npos) << result.text;
    EXPECT_NE(result.text.find(old_driver_text), std::string::npos) << result.text;
  }
}

TEST(GpuRuntime, OnePeWithoutAGpuIsNamedByAll) {
  ForkJob job = gpu_job(3, gpu_or_reason);
  job.gpu = GpuUse::if_available;
  job.of_pe = [](int pe, Environment& environment) {
    if (pe == 1)
      environment["SHMEMCTL_CUDA_LIBRARY"] = "libcuda-of-nobody.so.1";
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text.rfind("PE 1 on ", 0), 0u) << result.text;
    EXPECT_NE(result.text.find("has no GPU: "), std::string::npos) << result.text;
  }
}

TEST(GpuRuntime, HeapNoneIsAJobWithoutGpus) {
  ForkJob job = gpu_job(1, gpu_or_reason, {{"SHMEMCTL_HEAP", "none"}});
  job.gpu = GpuUse::if_available;
  EXPECT_EQ(run_fork_job(job)[0].text, "SHMEMCTL_HEAP=none");
}

TEST(GpuRuntime, WithoutVirtualMemoryTheHeapIsOfHandles) {
  const SetVariable lacks("FAKE_CUDA_LACKS", "102");
  for (const PeResult& result : run_fork_job(gpu_job(2, [](Runtime& runtime) {
         return runtime.gpu()->info().heap_kind + ": " + runtime.gpu()->info().heap_reason;
       }))) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text, "ipc: the GPU of PE 0 has no virtual memory with file descriptors");
  }
}

TEST(GpuRuntime, AHeapOnTheHostSaysIfItsAtomicsAreThoseOfPcie) {
  for (const bool native : {false, true}) {
    const SetVariable lacks("FAKE_CUDA_LACKS", native ? "0" : "86");
    for (const PeResult& result : run_fork_job(gpu_job(2,
                                                       [](Runtime& runtime) {
                                                         return runtime.gpu()->info().heap_kind +
                                                                ": " +
                                                                runtime.gpu()->info().heap_reason;
                                                       },
                                                       {{"SHMEMCTL_HEAP", "host"}}))) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      EXPECT_EQ(result.text.rfind("host: ", 0), 0u) << result.text;
      EXPECT_EQ(result.text.find("no native atomics of this GPU on host memory") ==
                    std::string::npos,
                native)
          << result.text;
    }
  }
}

TEST(GpuRuntime, TooLittleMemoryIsSaidByAll) {
  const SetVariable small("FAKE_CUDA_BYTES", "16777216");
  for (const PeResult& result : run_fork_job(gpu_job(2, [](Runtime& runtime) {
         runtime.gpu()->allocate(32 << 20);
         return std::string("32 MiB of 16");
       }))) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("out of memory"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("of memory of GPU "), std::string::npos) << result.text;
  }
}

std::string ways_of(Runtime& runtime) {
  std::string text;
  for (const KernelPath& way : runtime.gpu()->paths_by_pe())
    text += way.path == DevicePath::load_store ? "+" : "(" + way.reason + ")";
  return text;
}

// They are reached by a network, if one may be used.
TEST(GpuRuntime, DevicesWithoutPeerAccessAreNotMapped) {
  const SetVariable none("FAKE_CUDA_NO_PEER", "1");
  for (const char* heap : {"vmm", "ipc"}) {
    const std::vector<PeResult> results = run_fork_job(gpu_job(
        3,
        [](Runtime& runtime) {
          auto* word = static_cast<std::uint64_t*>(runtime.gpu()->allocate(8));
          runtime.rma().put_value<std::uint64_t>(word, 1, runtime.pe() == 1 ? 1 : 2 - runtime.pe());
          return ways_of(runtime);
        },
        {{"SHMEMCTL_HEAP", heap}}));
    EXPECT_EQ(results[0].exit_code, 0) << results[0].text;
    const std::string no = "CUDA has no peer access from GPU ";
    EXPECT_EQ(results[0].text.find("+(" + no + "0 (0000:1a:00.0) to GPU 1 (0000:1b:00.0)"), 0u)
        << results[0].text;
    EXPECT_EQ(results[0].text.substr(results[0].text.size() - 2), ")+") << results[0].text;
  }
}

// Kernels would count the members of barriers by them. Of three devices two lack them.
TEST(GpuRuntime, LinksWithoutNativeAtomicsAreNotMapped) {
  const SetVariable three("FAKE_CUDA_DEVICES", "3"), without("FAKE_CUDA_NO_ATOMICS", "0-1");
  for (const char* heap : {"vmm", "ipc"}) {
    const std::vector<PeResult> results = run_fork_job(
        gpu_job(3,
                [](Runtime& runtime) {
                  auto* word = static_cast<std::uint64_t*>(runtime.gpu()->allocate(8));
                  runtime.rma().put_value<std::uint64_t>(word, 1, (runtime.pe() + 1) % 3);
                  runtime.collectives().barrier(team_world);
                  return ways_of(runtime);
                },
                {{"SHMEMCTL_HEAP", heap}}));
    EXPECT_EQ(results[0].exit_code, 0) << results[0].text;
    EXPECT_EQ(results[0].text.find(
                  "+(the link has no native atomics from GPU 0 (0000:1a:00.0) to GPU 1 "),
              0u)
        << results[0].text;
    EXPECT_EQ(results[1].text.find("(the link has no native atomics from GPU 1 "), 0u)
        << results[1].text;
  }
}

TEST(GpuRuntime, HostOperationsOnUnmappedMemoryAreErrors) {
  ForkJob job = gpu_job(2, [](Runtime& runtime) {
    auto* word = static_cast<std::uint64_t*>(runtime.gpu()->allocate(8));
    const std::string why = "(on another virtual node";
    expect(ways_of(runtime).find(why) == (runtime.pe() == 0 ? 1 : 0), ways_of(runtime));
    if (runtime.pe() == 0)
      runtime.rma().put_value<std::uint64_t>(word, 1, 1);
    runtime.gather_text("");
    return std::string();
  });
  job.n_nodes = 2;
  job.environment["SHMEMCTL_REMOTE_TRANSPORT"] = "none";
  job.require_reach = false;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("no transport connects its GPU memory with PE 0"), std::string::npos)
        << result.text;
  }
}

TEST(GpuRuntime, ANetworkMayBeAskedForToMappedPes) {
  for (const PeResult& result : run_fork_job(gpu_job(
           2,
           [](Runtime& runtime) -> std::string {
             PeGpu& gpu = *runtime.gpu();
             const auto peer = static_cast<std::size_t>(1 - runtime.pe());
             expect(gpu.paths_by_pe()[peer].path != DevicePath::load_store, "a way by network");
             const std::vector<std::uint64_t> deltas = words_at(gpu, gpu.job().heap_delta_bytes, 2);
             expect(deltas[peer] == static_cast<std::uint64_t>(DeviceJob::unreachable), "delta");
             expect(!gpu.job().all_mapped, "not everybody is mapped");
             auto* word = static_cast<std::uint64_t*>(gpu.allocate(8));
             // the host's path
             runtime.rma().put_value<std::uint64_t>(word, 5, 1 - runtime.pe());
             runtime.rma().quiet();
             runtime.collectives().barrier(team_world);
             expect(word_at(gpu, word) == 5, "the host's put");
             return {};
           },
           {{"SHMEMCTL_DEVICE_PATH", "proxy"}})))
    EXPECT_EQ(result.exit_code, 0) << result.text;
}

TEST(GpuRuntime, TransfersBetweenHostAndGpuMemoryAreRefused) {
  const SetVariable strict("FAKE_CUDA_STRICT", "1");
  for (const PeResult& result : run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
         auto* theirs = static_cast<std::uint64_t*>(runtime.allocate(64));
         auto* gpu = static_cast<std::uint64_t*>(runtime.gpu()->allocate(64));
         if (runtime.pe() == 1)
           runtime.rma().put(theirs, gpu, 64, 0);
         runtime.collectives().barrier(team_world);
         return {};
       }))) {
    EXPECT_EQ(result.exit_code, 2) << result.text;
    EXPECT_NE(result.text.find("no transport supports it"), std::string::npos) << result.text;
  }
}

TEST(GpuRuntime, OptionsAreCheckedInTheFirstPhase) {
  for (const char* name : {"SHMEMCTL_HEAP", "SHMEMCTL_DEVICE_PATH"})
    for (const PeResult& result : run_fork_job(gpu_job(2, gpu_or_reason, {{name, "nonsense"}}))) {
      EXPECT_EQ(result.exit_code, 2) << result.text;
      EXPECT_NE(result.text.find(std::string(name) + "=nonsense in phase options"),
                std::string::npos)
          << result.text;
    }
}

} // namespace
} // namespace shmemctl::test
