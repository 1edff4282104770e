// Registered buffers of GPU memory on real GPUs.
#include <chrono>
#include <fmt/format.h>

#include "tests/gpu/buffer_kernels.h"
#include "tests/gpu/on_gpus.h"
#include "tests/gpu/share.h"
#include "tests/support/gpu_buffer_bodies.h"

namespace shmemctl::test {
namespace {

constexpr const char* driver_file = "libcuda.so.1";

cudaStream_t stream_of(Runtime& runtime) {
  return static_cast<cudaStream_t>(runtime.gpu()->stream());
}

GpuBufferCase case_of(const std::string& memory) {
  return {driver_file, memory,
          [](Runtime& runtime, std::byte* to, const std::byte* from, std::size_t size_bytes) {
            launch_byte_copy(stream_of(runtime), to, from, size_bytes);
            runtime.gpu()->wait(runtime.gpu()->stream(), "a copy by a kernel");
          }};
}

std::shared_ptr<const cuda::Device> device_of(Runtime& runtime) {
  return open_device(driver_file, runtime.gpu()->info().device);
}

/// Free memory of the PE's device, by the driver.
std::size_t free_bytes(const cuda::Device& device) {
  const cuda::Current current(device);
  std::size_t free_bytes = 0, total_bytes = 0;
  device.require(device.call().mem_get_info(&free_bytes, &total_bytes), "ask for the memory of");
  return free_bytes;
}

std::string error_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

class BuffersOnGpus : public OnGpus {
protected:
  static ForkJob job(int n_pes, std::function<std::string(Runtime&)> body) {
    return job_with_heap("auto", n_pes, std::move(body));
  }
};
INSTANTIATE_TEST_SUITE_P(, BuffersOnGpus, ::testing::Values("malloc", "vmm", "vmm3"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(BuffersOnGpus, AreReachedByHostStreamsAndKernels) {
  const std::string kind = GetParam();
  const std::vector<PeResult> results = run_fork_job(
      job(2, [kind](Runtime& runtime) { return put_and_get_buffers(runtime, case_of(kind)); }));
  expect_all_well(results);
  for (const PeResult& result : results)
    EXPECT_EQ(result.text.find("zero-copy: "), 0u) << result.text;
}

TEST_P(BuffersOnGpus, LeaveNoMemoryAfterManyRounds) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) {
    const auto device = device_of(runtime);
    return "free bytes " + register_many_times(runtime, case_of(kind), share_of(100),
                                               [&] { return std::to_string(free_bytes(*device)); });
  })));
}

/// A kernel of each PE counts in both PEs' buffers at the same time.
TEST_P(BuffersOnGpus, CountWhatKernelsOfBothAdd) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) -> std::string {
    PeGpu& gpu = *runtime.gpu();
    Buffers& buffers = runtime.buffers();
    const auto memory = user_memory(kind, device_of(runtime));
    gpu.fill(memory->data(), 0, 4096);
    const BufferHandle handle = buffers.add(memory->data() + 64, 4096);
    const auto all = exchange(runtime, buffers.describe(handle));
    {
      const BufferRef mine = buffers.hold(all[0]), theirs = buffers.hold(all[1]);
      for (const BufferRef* held : {&mine, &theirs})
        launch_count(stream_of(runtime), reinterpret_cast<unsigned long long*>(held->address()),
                     1000);
      gpu.wait(gpu.stream(), "counting");
    }
    runtime.collectives().barrier(team_world);
    expect(word_at(gpu, memory->data() + 64) == 2 * 4 * 32 * 1000, "the sum");
    buffers.remove(handle);
    return {};
  })));
}

/// Fences and signals of the device API order a kernel's stores into a held buffer, too.
TEST_P(BuffersOnGpus, StoresArriveBeforeTheirSignal) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) -> std::string {
    constexpr std::size_t words = 1000;
    PeGpu& gpu = *runtime.gpu();
    // PEs that share a GPU take turns of some milliseconds.
    const int rounds = share_of(gpu.info().pes_on_device > 1 ? 100 : 100000);
    Buffers& buffers = runtime.buffers();
    auto* const signals = static_cast<std::uint64_t*>(gpu.allocate(64));
    const auto memory = user_memory(kind, device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data() + 8, words * 8);
    const auto all = exchange(runtime, buffers.describe(handle));
    {
      const BufferRef held = buffers.hold(all[static_cast<std::size_t>(1 - runtime.pe())]);
      launch_store_and_signal(
          stream_of(runtime), gpu.job(), reinterpret_cast<std::uint64_t*>(held.address()),
          reinterpret_cast<const std::uint64_t*>(memory->data() + 8), words, signals,
          reinterpret_cast<unsigned long long*>(signals + 2), static_cast<unsigned>(rounds));
      gpu.wait(gpu.stream(), "stores and signals");
    }
    runtime.collectives().barrier(team_world);
    expect(word_at(gpu, signals) == static_cast<unsigned>(rounds), "all rounds");
    expect(word_at(gpu, signals + 2) == 0, "words that were not there behind the signal");
    buffers.remove(handle);
    return {};
  })));
}

/// Copies and a kernel on a held buffer, captured once and launched several times.
TEST_P(BuffersOnGpus, AreReachedFromGraphs) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) -> std::string {
    constexpr std::size_t size_bytes = 100003;
    PeGpu& gpu = *runtime.gpu();
    Buffers& buffers = runtime.buffers();
    const auto memory = user_memory(kind, device_of(runtime));
    const MallocMemory local(device_of(runtime), 2 * size_bytes);
    gpu.fill(memory->data(), 0, size_bytes + 128);
    const BufferHandle handle = buffers.add(memory->data(), size_bytes + 128);
    const auto all = exchange(runtime, buffers.describe(handle));
    const auto me = static_cast<unsigned>(runtime.pe()), peer = 1 - me;
    store_pattern(gpu, local.data(), size_bytes, 9 + me);
    {
      const BufferRef held = buffers.hold(all[peer]);
      launch_as_graph(
          stream_of(runtime),
          [&] {
            held.put_on_stream(65, local.data(), size_bytes, gpu.stream());
            launch_count(stream_of(runtime), reinterpret_cast<unsigned long long*>(held.address()),
                         10);
            held.get_on_stream(local.data() + size_bytes, 65, size_bytes, gpu.stream());
          },
          5);
    }
    runtime.collectives().barrier(team_world);
    expect_pattern(gpu, memory->data() + 65, size_bytes, 9 + peer, "a put of the graph");
    expect_pattern(gpu, local.data() + size_bytes, size_bytes, 9 + me, "a get of the graph");
    expect(word_at(gpu, memory->data()) == 5 * 4 * 32 * 10, "what its kernel counted");
    buffers.remove(handle);
    return {};
  })));
}

/// A PE that has mapped the lost PE's memory goes on without a hang, and its error names the lost
/// PE.
TEST_P(BuffersOnGpus, AKilledOwnerIsNamed) {
  const std::string kind = GetParam();
  const std::vector<PeResult> results = run_fork_job(job(2, [kind](Runtime& runtime) {
    PeGpu& gpu = *runtime.gpu();
    Buffers& buffers = runtime.buffers();
    const auto memory = user_memory(kind, device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data(), 4 << 20);
    const auto all = exchange(runtime, buffers.describe(handle));
    std::optional<BufferRef> held;
    if (runtime.pe() == 1)
      held.emplace(buffers.hold(all[0]));
    runtime.collectives().barrier(team_world);
    if (runtime.pe() == 0)
      ::raise(SIGKILL);
    const std::string said = error_of([&] {
      while (true) { // the peer's memory stays while it is mapped; the loss is known soon
        held->put_on_stream(0, memory->data(), 4 << 20, gpu.stream());
        gpu.wait(gpu.stream(), "a copy to a killed PE");
        const std::uint64_t never = 0;
        runtime.rma().wait_until(&never, Compare::not_equal, 0, "the end of PE 0", 0);
      }
    });
    return said + "\n";
  }));
  EXPECT_EQ(results[0].exit_code, 128 + SIGKILL);
  const std::string& said = results[1].text;
  const std::size_t name = said.find("PE 0 (host ");
  EXPECT_LT(said.find(" was lost", name), said.find('\n')) << said;
}

TEST_P(BuffersOnGpus, MemoryThatWasFreedIsNoticed) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    auto memory = user_memory(kind, device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
    const auto all = exchange(runtime, buffers.describe(handle));
    memory.reset();
    memory = user_memory(kind, device_of(runtime)); // perhaps at the same place
    runtime.collectives().barrier(team_world);
    const std::string said =
        error_of([&] { buffers.path_to(all[static_cast<std::size_t>(1 - runtime.pe())]); });
    expect(said.find("freed while") != std::string::npos, said);
    runtime.collectives().barrier(team_world);
    buffers.remove(handle);
    return said;
  })));
}

using OtherMemory = OnGpus;

TEST_F(OtherMemory, OfAPoolOrWithoutHandleTypesIsStaged) {
  for (const bool pool : {true, false})
    expect_all_well(run_fork_job(job_with_heap("auto", 2, [pool](Runtime& runtime) {
      constexpr std::size_t size_bytes = 1000003;
      Buffers& buffers = runtime.buffers();
      PeGpu& gpu = *runtime.gpu();
      std::optional<VirtualMemory> own;
      if (!pool)
        own.emplace(device_of(runtime), 1, 2 << 20, 0);
      auto* const memory = pool ? static_cast<std::byte*>(pool_allocate(2 << 20)) : own->data();
      const BufferHandle handle = buffers.add(memory + 3, size_bytes);
      const auto all = exchange(runtime, buffers.describe(handle));
      const auto peer = static_cast<std::size_t>(1 - runtime.pe());
      const BufferPath path = buffers.path_to(all[peer]);
      expect(path.kind == BufferPathKind::staged, path.reason);
      const auto sent = patterned(size_bytes, static_cast<unsigned>(runtime.pe()));
      buffers.put(all[peer], 0, sent.data(), sent.size());
      runtime.collectives().barrier(team_world);
      expect_pattern(gpu, memory + 3, size_bytes, static_cast<unsigned>(peer), "put");
      std::vector<std::byte> got(size_bytes);
      buffers.get(got.data(), all[peer], 0, got.size());
      expect(got == sent, "get");
      const MallocMemory local(device_of(runtime), size_bytes + 1); // GPU memory at both ends
      store_pattern(gpu, local.data() + 1, size_bytes, 7 + static_cast<unsigned>(runtime.pe()));
      buffers.put(all[peer], 0, local.data() + 1, size_bytes);
      runtime.collectives().barrier(team_world);
      expect_pattern(gpu, memory + 3, size_bytes, 7 + static_cast<unsigned>(peer), "put of GPU's");
      runtime.collectives().barrier(team_world);
      buffers.remove(handle);
      if (pool)
        pool_free(memory);
      return path.reason;
    })));
}

TEST_F(OtherMemory, ThatIsManagedIsRefused) {
  expect_all_well(run_fork_job(job_with_heap("auto", 1, [](Runtime& runtime) {
    void* const memory = managed_allocate(1 << 20);
    const std::string said = error_of([&] { runtime.buffers().add(memory, 4096); });
    managed_free(memory);
    expect(said.find("cudaMallocManaged") != std::string::npos, said);
    return said;
  })));
}

/// As the local side of buffers of host memory, and of operations on the GPUs' heap.
TEST_F(OtherMemory, MayBeTheLocalSide) {
  for (const char* heap : {"vmm", "ipc"}) {
    const ForkJob job = job_with_heap(heap, 2, [](Runtime& runtime) {
      constexpr std::size_t size_bytes = 1000003;
      Buffers& buffers = runtime.buffers();
      PeGpu& gpu = *runtime.gpu();
      const auto peer = static_cast<std::size_t>(1 - runtime.pe());
      const auto me = static_cast<unsigned>(runtime.pe());
      const MallocMemory memory(device_of(runtime), size_bytes + 8);
      std::vector<std::byte> array(size_bytes);
      const BufferHandle handle = buffers.add(array.data(), array.size());
      const auto all = exchange(runtime, buffers.describe(handle));
      store_pattern(gpu, memory.data() + 3, size_bytes, 5 + me);
      buffers.put(all[peer], 0, memory.data() + 3, size_bytes);
      runtime.collectives().barrier(team_world);
      expect(first_wrong(array.data(), size_bytes, 5 + static_cast<unsigned>(peer)) == size_bytes,
             "a put from GPU memory");
      auto* const row = static_cast<std::byte*>(gpu.allocate(size_bytes));
      runtime.rma().put(row, memory.data() + 3, size_bytes, static_cast<int>(peer));
      runtime.rma().quiet();
      runtime.collectives().barrier(team_world);
      expect_pattern(gpu, row, size_bytes, 5 + static_cast<unsigned>(peer), "a put into the heap");
      gpu.fill(memory.data(), 0, size_bytes);
      runtime.rma().get(memory.data() + 3, row, size_bytes, static_cast<int>(peer));
      expect_pattern(gpu, memory.data() + 3, size_bytes, 5 + me, "a get from the heap");
      runtime.collectives().barrier(team_world);
      buffers.remove(handle);
      return std::string();
    });
    expect_all_well(run_fork_job(job));
  }
}

/// Over two virtual nodes, where there is a network.
TEST_F(OtherMemory, MayBeTheLocalSideOfStagedTransfers) {
  ForkJob job = job_with_heap("vmm", 2, [](Runtime& runtime) -> std::string {
    constexpr std::size_t size_bytes = 1000003;
    PeGpu& gpu = *runtime.gpu();
    const int peer = 1 - runtime.pe();
    const auto me = static_cast<unsigned>(runtime.pe());
    auto* const row = static_cast<std::byte*>(gpu.allocate(size_bytes));
    const VirtualMemory memory(device_of(runtime), 1, 2 << 20);
    store_pattern(gpu, memory.data() + 3, size_bytes, 5 + me);
    runtime.rma().put(row, memory.data() + 3, size_bytes, peer);
    runtime.rma().quiet();
    runtime.collectives().barrier(team_world);
    expect_pattern(gpu, row, size_bytes, 5 + static_cast<unsigned>(peer), "put");
    gpu.fill(memory.data(), 0, 2 << 20);
    runtime.rma().get(memory.data() + 3, row, size_bytes, peer);
    expect_pattern(gpu, memory.data() + 3, size_bytes, 5 + me, "get");
    runtime.collectives().barrier(team_world);
    return "";
  });
  job.n_nodes = 2;
  job.environment["SHMEMCTL_TRANSPORT"] = "shm,libfabric";
  job.environment["SHMEMCTL_LIBFABRIC_PROVIDER"] = "tcp";
  const std::vector<PeResult> results = run_fork_job(job);
  if (results[0].text.find("no transport reaches") != std::string::npos)
    GTEST_SKIP() << results[0].text;
  expect_all_well(results);
}

double us_since(std::chrono::steady_clock::time_point start, int rounds) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
             .count() /
         rounds;
}

/// Not judged: for docs/explanation/buffers.md.
TEST_P(BuffersOnGpus, Figures) {
  const std::string kind = GetParam();
  expect_all_well(run_fork_job(job(2, [kind](Runtime& runtime) -> std::string {
    constexpr std::size_t size_bytes = std::size_t{64} << 20;
    constexpr int rounds = 50;
    Buffers& buffers = runtime.buffers();
    PeGpu& gpu = *runtime.gpu();
    const auto device = device_of(runtime);
    const MallocMemory local(device, size_bytes);
    std::unique_ptr<UserMemory> memory;
    if (kind == "malloc")
      memory = std::make_unique<MallocMemory>(device, size_bytes);
    else
      memory = std::make_unique<VirtualMemory>(device, kind == "vmm" ? 1 : 32,
                                               kind == "vmm" ? size_bytes : size_bytes / 32);
    const auto now = [] { return std::chrono::steady_clock::now(); };
    buffers.remove(buffers.add(memory->data(), size_bytes)); // the thread and the table
    auto start = now();
    const BufferHandle handle = buffers.add(memory->data(), size_bytes);
    const double add_us = us_since(start, 1);
    const auto all = exchange(runtime, buffers.describe(handle));
    std::string text;
    if (runtime.pe() == 0) {
      start = now();
      buffers.path_to(all[1]);
      const double open_us = us_since(start, 1);
      const auto put_us = [&](std::size_t bytes) {
        buffers.put(all[1], 0, local.data(), bytes);
        const auto begin = now();
        for (int i = 0; i < rounds; ++i)
          buffers.put(all[1], 0, local.data(), bytes);
        return us_since(begin, rounds);
      };
      const double small_us = put_us(8), large_us = put_us(size_bytes);
      const BufferRef held = buffers.hold(all[1]);
      start = now();
      for (int i = 0; i < rounds; ++i)
        held.put_on_stream(0, local.data(), size_bytes, gpu.stream());
      gpu.wait(gpu.stream(), "copies");
      const double stream_us = us_since(start, rounds);
      text = fmt::format("register {:.0f} us, first use {:.0f} us, put 8 B {:.2f} us, put 64 MiB "
                         "{:.1f} GB/s, by stream {:.1f} GB/s",
                         add_us, open_us, small_us, size_bytes / large_us / 1e3,
                         size_bytes / stream_us / 1e3);
    }
    runtime.collectives().barrier(team_world);
    start = now();
    buffers.remove(handle);
    if (runtime.pe() == 1)
      text =
          fmt::format("unregister {:.0f} us, with one PE that has it mapped", us_since(start, 1));
    runtime.collectives().barrier(team_world);
    return text;
  })));
}

} // namespace
} // namespace shmemctl::test
