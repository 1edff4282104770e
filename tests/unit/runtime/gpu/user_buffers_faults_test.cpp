// Failures of registered buffers in GPU memory, and what remove() waits for.
#include <chrono>
#include <thread>

#include "tests/unit/runtime/gpu/user_buffers.h"

namespace shmemctl::test {
namespace {

class GpuBufferFaults : public OverUserMemory {};
INSTANTIATE_TEST_SUITE_P(, GpuBufferFaults, all_user_memory(),
                         [](const auto& which) { return std::string(which.param); });

/// When remove() returns, no PE maps it, not even one that has not accessed it meanwhile.
TEST_P(GpuBufferFaults, AreClosedEverywhereWhenTheyAreRemoved) {
  expect_all_well(run_fork_job(gpu_job(3, [this](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    const auto memory = user_memory(kind(), device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
    const auto all = exchange(runtime, buffers.describe(handle));
    const std::string before = memory_held();
    for (const BufferDescriptor& each : all)
      buffers.path_to(each);
    expect(memory_held() != before, "mapped: " + before);
    runtime.collectives().barrier(team_world);
    buffers.remove(handle);
    runtime.collectives().barrier(team_world);
    expect(memory_held() == before, memory_held() + " after, before " + before);
    expect_words(
        error_of([&] { buffers.path_to(all[static_cast<std::size_t>(runtime.pe() + 1) % 3]); }),
        {"no longer registered"});
    runtime.collectives().barrier(team_world);
    return {};
  })));
}

TEST_P(GpuBufferFaults, AreNotRemovedWhileHeld) {
  expect_all_well(run_fork_job(gpu_job(2, [this](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    const auto memory = user_memory(kind(), device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
    auto* words = static_cast<std::uint64_t*>(runtime.allocate(16));
    words[0] = words[1] = 0;
    const auto all = exchange(runtime, buffers.describe(handle));
    if (runtime.pe() == 1) {
      auto held = std::make_unique<BufferRef>(buffers.hold(all[0]));
      const std::uint64_t one = 1;
      runtime.rma().put(words, &one, 8, 0); // held now
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      runtime.rma().put(words + 1, &one, 8, 0);
      runtime.rma().fence();
      held.reset();
    } else {
      runtime.rma().wait_until(words, Compare::equal, 1, "PE 1 to hold it", 1);
      buffers.remove(handle);
      expect(std::atomic_ref(words[1]).load() == 1, "remove() waits");
    }
    runtime.collectives().barrier(team_world);
    if (runtime.pe() == 1)
      buffers.remove(handle);
    return {};
  })));
}

TEST_P(GpuBufferFaults, NamesThePeThatHoldsOneTooLong) {
  constexpr int timeout_s = 1;
  const std::vector<PeResult> results =
      run_fork_job(gpu_job(2,
                           [this](Runtime& runtime) -> std::string {
                             Buffers& buffers = runtime.buffers();
                             const auto memory = user_memory(kind(), device_of(runtime));
                             const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
                             const auto all = exchange(runtime, buffers.describe(handle));
                             std::optional<BufferRef> held;
                             if (runtime.pe() == 1)
                               held.emplace(buffers.hold(all[0]));
                             runtime.collectives().barrier(team_world);
                             if (runtime.pe() == 0)
                               buffers.remove(handle);
                             else // this PE's own deadline must not be the first to pass
                               std::this_thread::sleep_for(std::chrono::seconds(3 * timeout_s));
                             return {};
                           },
                           {{"SHMEMCTL_TIMEOUT", std::to_string(timeout_s)}}));
  EXPECT_EQ(results[0].exit_code, 124) << results[0].text;
  EXPECT_NE(results[0].text.find("PE 1"), std::string::npos) << results[0].text;
}

TEST_P(GpuBufferFaults, AKilledOwnerIsAnErrorAndAKilledUserHoldsNothing) {
  for (const int victim : {0, 1}) {
    const std::vector<PeResult> results =
        run_fork_job(gpu_job(2, [&](Runtime& runtime) -> std::string {
          Buffers& buffers = runtime.buffers();
          const auto memory = user_memory(kind(), device_of(runtime));
          const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
          const auto all = exchange(runtime, buffers.describe(handle));
          if (victim == 1 && runtime.pe() == 1)
            buffers.path_to(all[0]);
          if (runtime.pe() == victim) {
            runtime.collectives().barrier(team_world);
            ::raise(SIGKILL);
          }
          const std::string lost = error_of([&] {
            // the victim may exit before the barrier ends
            runtime.collectives().barrier(team_world);
            const std::uint64_t never = 0;
            runtime.rma().wait_until(&never, Compare::not_equal, 0, "the end of a PE", victim);
          });
          expect_words(lost, {"PE " + std::to_string(victim)});
          const std::string said = error_of([&] {
            std::uint64_t word = 0;
            if (victim == 0)
              buffers.get(&word, all[0], 0, 8);
            else
              buffers.remove(handle);
          });
          return "after: " + said + "\n";
        }));
    const std::string& text = results[static_cast<std::size_t>(1 - victim)].text;
    EXPECT_NE(text.find("after: "), std::string::npos) << text;
    const std::string first = text.substr(0, text.find('\n'));
    if (victim == 0) // no PE responds for PE 0
      EXPECT_NE(first.find("PE 0"), std::string::npos) << text;
    else // success, or the job's failure with the name of the lost PE
      EXPECT_TRUE(first == "after: no error" || first.find("PE 1") != std::string::npos) << text;
  }
}

TEST_P(GpuBufferFaults, DetectsFreedMemory) {
  expect_all_well(run_fork_job(gpu_job(2, [this](Runtime& runtime) -> std::string {
    Buffers& buffers = runtime.buffers();
    auto memory = user_memory(kind(), device_of(runtime));
    const BufferHandle handle = buffers.add(memory->data(), 1 << 20);
    const auto all = exchange(runtime, buffers.describe(handle));
    memory.reset();
    memory = user_memory(kind(), device_of(runtime)); // perhaps at the same address
    runtime.collectives().barrier(team_world);
    const auto peer = static_cast<std::size_t>(1 - runtime.pe());
    expect_words(error_of([&] { buffers.path_to(all[peer]); }),
                 {"PE " + std::to_string(peer), "freed while"});
    runtime.collectives().barrier(team_world);
    buffers.remove(handle);
    return {};
  })));
}

/// Each fails with "out of memory" at each of its calls: an error, or a slower path with its
/// reason; partial work is undone.
TEST_P(GpuBufferFaults, OutOfMemoryAtEachCall) {
  std::vector<const char*> functions = {"cuPointerGetAttributes", "cuMemGetAddressRange",
                                        "cuStreamCreateWithPriority", "cuMemcpyAsync"};
  const std::vector<const char*> by_handle = {"cuIpcGetMemHandle", "cuIpcOpenMemHandle"};
  const std::vector<const char*> by_descriptor = {"cuMemRetainAllocationHandle",
                                                  "cuMemGetAllocationPropertiesFromHandle",
                                                  "cuMemExportToShareableHandle",
                                                  "cuMemImportFromShareableHandle",
                                                  "cuMemAddressReserve",
                                                  "cuMemMap",
                                                  "cuMemSetAccess"};
  const auto& more = kind() == "malloc" ? by_handle : by_descriptor;
  functions.insert(functions.end(), more.begin(), more.end());
  for (const char* function : functions)
    for (const PeResult& result :
         run_fork_job(gpu_job(2, [&, this](Runtime& runtime) -> std::string {
           Buffers& buffers = runtime.buffers();
           const auto memory = user_memory(kind(), device_of(runtime));
           exchange(runtime, {}); // the heap grows, and kernels are notified
           const std::string before = memory_held();
           int met = 0;
           for (int call = 1; call <= 4; ++call) { // of each round
             const auto calls = of_fake<int(const char*)>("fake_cuda_calls");
             ::setenv("FAKE_CUDA_FAIL",
                      (std::string(function) + ":" + std::to_string(calls(function) + call) + ":2")
                          .c_str(),
                      1);
             BufferHandle handle{};
             const std::string registered = error_of(
                 [&] { handle = buffers.add(memory->data() + odd_gap_bytes, odd_size_bytes); });
             BufferDescriptor mine{};
             if (handle.generation != 0)
               mine = buffers.describe(handle);
             const auto all = exchange(runtime, mine);
             const BufferDescriptor& theirs = all[static_cast<std::size_t>(1 - runtime.pe())];
             std::string way;
             const std::string used = error_of([&] {
               if (theirs.magic == 0)
                 return;
               way = buffers.path_to(theirs).reason;
               const auto sent = patterned(1000, static_cast<unsigned>(call));
               buffers.put(theirs, 1, sent.data(), sent.size());
             });
             for (const std::string& text : {registered, used, way})
               if (text.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos) {
                 expect_words(text, {"GPU "});
                 ++met;
               }
             ::unsetenv("FAKE_CUDA_FAIL");
             runtime.collectives().barrier(team_world);
             if (handle.generation != 0)
               buffers.remove(handle);
             runtime.collectives().barrier(team_world);
             expect(memory_held() == before, memory_held() + ", before " + before);
             runtime.collectives().barrier(team_world);
           }
           return std::to_string(met);
         }))) {
      EXPECT_EQ(result.exit_code, 0) << function << ": " << result.text;
      EXPECT_GT(std::atoi(result.text.c_str()), 0) << function;
    }
}

} // namespace
} // namespace shmemctl::test
