// Registered buffers of GPU memory, over a fake driver.
#include "tests/unit/runtime/gpu/user_buffers.h"

namespace shmemctl::test {
namespace {

class GpuBuffers : public OverUserMemory {};
INSTANTIATE_TEST_SUITE_P(, GpuBuffers, all_user_memory(),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(GpuBuffers, AreReachedByHostStreamsAndKernels) {
  for (const int n_pes : {1, 2, 3}) {
    ForkJob job = gpu_job(
        n_pes, [this](Runtime& runtime) { return put_and_get_buffers(runtime, case_of(kind())); });
    job.after = [] { return " held: " + held_by_fake(); };
    for (const PeResult& result : run_fork_job(job)) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      EXPECT_EQ(result.text.find("zero-copy: "), 0u) << result.text;
      EXPECT_NE(result.text.find(std::string(" held: ") + nothing_held), std::string::npos)
          << result.text;
    }
  }
}

TEST_P(GpuBuffers, WithoutPeerAccessAreStagedWithTheReason) {
  const SetVariable none("FAKE_CUDA_NO_PEER", "1");
  for (const PeResult& result : run_fork_job(gpu_job(2, [this](Runtime& runtime) {
         return put_and_get_buffers(runtime, case_of(kind()), false);
       }))) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text.find("staged: not mapped here: "), 0u) << result.text;
    EXPECT_NE(result.text.find("no peer access from GPU "), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("system calls do not reach"), std::string::npos) << result.text;
  }
}

TEST_P(GpuBuffers, LeaveNothingAfterManyRounds) {
  expect_all_well(run_fork_job(gpu_job(2, [this](Runtime& runtime) -> std::string {
    register_many_times(runtime, case_of(kind()), 40, memory_held);
    return {};
  })));
}

// Memory that cannot be shared: detected at registration and reported for each pair; host-initiated
// operations take the slow path.
TEST(GpuBuffersUnshared, OfAPoolOrWithoutHandleTypes) {
  for (const bool pool : {true, false})
    for (const PeResult& result : run_fork_job(gpu_job(2, [&](Runtime& runtime) -> std::string {
           Buffers& buffers = runtime.buffers();
           PeGpu& gpu = *runtime.gpu();
           std::unique_ptr<UserMemory> memory;
           if (pool) {
             memory = std::make_unique<MallocMemory>(device_of(runtime), 1 << 20);
             of_fake<void(void*, int)>("fake_cuda_mark")(memory->data(), 2);
           } else {
             memory = std::make_unique<VirtualMemory>(device_of(runtime), 1, 2 << 20, 0);
           }
           const BufferHandle handle = buffers.add(memory->data() + 3, 300001);
           const auto all = exchange(runtime, buffers.describe(handle));
           const auto peer = static_cast<std::size_t>(1 - runtime.pe());
           const BufferPath path = buffers.path_to(all[peer]);
           expect(path.kind == BufferPathKind::staged, path.reason);
           expect_words(path.reason, {pool ? "cudaMallocAsync" : "requestedHandleTypes is 0x0"});
           expect_words(error_of([&] { buffers.hold(all[peer]); }), {"PE ", path.reason});
           const auto sent = patterned(300001, static_cast<unsigned>(runtime.pe()));
           buffers.put(all[peer], 0, sent.data(), sent.size());
           runtime.collectives().barrier(team_world);
           expect_pattern(gpu, memory->data() + 3, 300001, static_cast<unsigned>(peer), "put");
           std::vector<std::byte> got(300001);
           buffers.get(got.data(), all[peer], 0, got.size());
           expect(got == sent, "get");
           runtime.collectives().barrier(team_world);
           buffers.remove(handle);
           return {};
         })))
      EXPECT_EQ(result.exit_code, 0) << result.text;
}

TEST(GpuBuffersRefused, ManagedOrOfAnotherGpuOrNotAllocated) {
  expect_all_well(run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    const MallocMemory managed(device_of(runtime), 1 << 20);
    of_fake<void(void*, int)>("fake_cuda_mark")(managed.data(), 1);
    expect_words(error_of([&] { buffers.add(managed.data(), 100); }), {"cudaMallocManaged"});
    const int other = 1 - runtime.gpu()->info().device;
    const MallocMemory elsewhere(open_device(SHMEMCTL_FAKE_CUDA, other), 1 << 20);
    expect_words(error_of([&] { buffers.add(elsewhere.data(), 100); }),
                 {"memory of GPU " + std::to_string(other), "this PE uses GPU"});
    const VirtualMemory small(device_of(runtime), 1, 2 << 20);
    expect_words(error_of([&] { buffers.add(small.data() + (1 << 20), 2 << 20); }),
                 {"only its first 1048576 bytes are allocated"});
    void* const heap = runtime.gpu()->allocate(4096);
    expect_words(error_of([&] { buffers.add(heap, 100); }), {"symmetric heap"});
    return {};
  })));
}

/// A generation ends when its buffer is removed, even if the next one has the same slot and
/// address.
TEST(GpuBuffersStale, AnOldDescriptorIsRefused) {
  expect_all_well(run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    const MallocMemory memory(device_of(runtime), 1 << 20);
    const BufferHandle first = buffers.add(memory.data(), 4096);
    const auto old = exchange(runtime, buffers.describe(first));
    const auto peer = static_cast<std::size_t>(1 - runtime.pe());
    std::uint64_t word = 7;
    buffers.put(old[peer], 0, &word, 8);
    runtime.collectives().barrier(team_world);
    buffers.remove(first);
    const BufferHandle second = buffers.add(memory.data(), 4096);
    const auto now = exchange(runtime, buffers.describe(second));
    expect(second.slot == first.slot, "the slot");
    for (int twice = 0; twice < 2; ++twice) {
      expect_words(error_of([&] { buffers.put(old[peer], 0, &word, 8); }),
                   {"no longer registered"});
      buffers.get(&word, now[peer], 0, 8);
      expect(word == 7, "the memory");
    }
    BufferDescriptor forged = now[peer];
    forged.size_bytes *= 2;
    expect_words(error_of([&] { buffers.get(&word, forged, 0, 8); }), {"descriptor"});
    expect_words(error_of([&] { buffers.get(&word, now[peer], 4090, 8); }), {"4096"});
    runtime.collectives().barrier(team_world);
    buffers.remove(second);
    return {};
  })));
}

/// As the local side: of buffers of host memory, by each path, and of operations on the GPUs' heap,
/// over p2p and staged.
TEST(GpuMemoryAsLocalSide, OfBuffersOfHostMemory) {
  const SetVariable strict("FAKE_CUDA_STRICT", "1");
  expect_all_well(run_fork_job(gpu_job(2, [](Runtime& runtime) -> std::string {
    constexpr std::size_t size_bytes = (2 << 20) + 77;
    Buffers& buffers = runtime.buffers();
    PeGpu& gpu = *runtime.gpu();
    const MallocMemory memory(device_of(runtime), size_bytes + 8);
    const auto peer = static_cast<std::size_t>(1 - runtime.pe());
    const auto me = static_cast<unsigned>(runtime.pe());
    for (const bool may_replace_pages : {true, false}) { // mapped; by a system call or staged
      std::vector<std::byte> array(size_bytes);
      const BufferHandle handle = buffers.add(array.data(), array.size(), may_replace_pages);
      const auto all = exchange(runtime, buffers.describe(handle));
      const BufferPathKind kind = buffers.path_to(all[peer]).kind;
      expect((kind == BufferPathKind::zero_copy) == may_replace_pages,
             buffers.path_to(all[peer]).reason);
      store_pattern(gpu, memory.data() + 3, size_bytes, 5 + me);
      buffers.put(all[peer], 0, memory.data() + 3, size_bytes);
      runtime.collectives().barrier(team_world);
      expect(first_wrong(array.data(), size_bytes, 5 + static_cast<unsigned>(peer)) == size_bytes,
             "a put from GPU memory");
      gpu.fill(memory.data(), 0, size_bytes);
      buffers.get(memory.data() + 3, all[peer], 0, size_bytes);
      expect_pattern(gpu, memory.data() + 3, size_bytes, 5 + me, "a get into GPU memory");
      runtime.collectives().barrier(team_world);
      buffers.remove(handle);
    }
    return {};
  })));
}

TEST(GpuMemoryAsLocalSide, OfOperationsOnTheHeapOfGpus) {
  const SetVariable strict("FAKE_CUDA_STRICT", "1");
  for (const bool staged : {false, true}) {
    std::optional<SetVariable> no_peer;
    if (staged)
      no_peer.emplace("FAKE_CUDA_NO_PEER", "1");
    expect_all_well(run_fork_job(
        gpu_job(2,
                [](Runtime& runtime) -> std::string {
                  constexpr std::size_t size_bytes = 300001;
                  PeGpu& gpu = *runtime.gpu();
                  Buffers& buffers = runtime.buffers();
                  auto* const row = static_cast<std::byte*>(gpu.allocate(size_bytes));
                  const VirtualMemory memory(device_of(runtime), 1, 2 << 20);
                  const BufferHandle handle = buffers.add(memory.data() + 1, size_bytes);
                  const int peer = 1 - runtime.pe();
                  const auto me = static_cast<unsigned>(runtime.pe());
                  store_pattern(gpu, memory.data() + 1, size_bytes, 3 + me);
                  runtime.rma().put(row, memory.data() + 1, size_bytes, peer);
                  runtime.rma().quiet();
                  runtime.collectives().barrier(team_world);
                  expect_pattern(gpu, row, size_bytes, 3 + static_cast<unsigned>(peer), "put");
                  gpu.fill(memory.data(), 0, 2 << 20);
                  runtime.rma().get(memory.data() + 1, row, size_bytes, peer);
                  expect_pattern(gpu, memory.data() + 1, size_bytes, 3 + me, "get");
                  runtime.collectives().barrier(team_world);
                  buffers.remove(handle);
                  return {};
                },
                {{"SHMEMCTL_TRANSPORT", "shm"}})));
  }
}

} // namespace
} // namespace shmemctl::test
