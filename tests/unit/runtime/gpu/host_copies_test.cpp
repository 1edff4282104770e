// Copies between a PE's GPU and its host's memory, and the cases of bench that measure them.
#include <algorithm>
#include <memory>
#include <optional>

#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/job_memory.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

int calls_of(const char* name) {
  return of_fake<int(const char*)>("fake_cuda_calls")(name);
}

bench::Point point_of(bench::Direction direction, std::size_t size_bytes) {
  bench::Point point;
  point.size_bytes = size_bytes;
  point.traffic = bench::Traffic::local;
  point.direction = direction;
  point.launch.initiator = bench::Initiator::stream;
  point.launch.memory = bench::MemoryKind::gpu;
  return point;
}

/// A case at a point, with memory as the engine gives it.
class Driven {
public:
  Driven(Runtime& runtime, const std::string& name, const bench::Point& point)
      : point_(point),
        body_(bench::choose_cases(bench::stream_cases(), {name}).front().make(point)),
        size_bytes_(body_->bytes_needed(runtime, point)),
        memory_(runtime, bench::MemoryKind::gpu, size_bytes_, "the test"),
        arena_{runtime, point_, memory_.get(), size_bytes_, 77, nullptr} {
    memory_.clear(size_bytes_);
    body_->prepare(arena_);
  }
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  /// Collective.
  void free() { memory_.free(); }
  bench::Case* operator->() { return body_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Flips a bit of the GPU's memory. Twice: nothing.
  void flip(std::size_t at) { *reach(memory_.get() + at) ^= std::byte{1}; }

private:
  bench::Point point_;
  std::unique_ptr<bench::Case> body_;
  std::size_t size_bytes_;
  bench::ArenaMemory memory_;
  bench::Arena arena_;
};

constexpr std::size_t some_bytes = 100001;

/// Heaps that lie in the GPU's memory.
class HostCopyCases : public OverHeaps {};

TEST_P(HostCopyCases, MoveEveryByteInEachDirection) {
  for (const bench::Direction direction : {bench::Direction::uni, bench::Direction::bi})
    for (const char* const name : {"host-to-device", "device-to-host"})
      expect_all_well(run_fork_job(gpu_job(
          2,
          [name, direction](Runtime& runtime) -> std::string {
            const std::uint64_t copies = direction == bench::Direction::bi ? 2 : 1;
            for (const std::size_t size_bytes : {std::size_t{1}, std::size_t{64}, some_bytes}) {
              Driven driven(runtime, name, point_of(direction, size_bytes));
              expect(driven->measures(), "that every PE measures");
              expect(driven->bytes_per_iteration() == copies * size_bytes, "bytes");
              expect(!driven->verify(0), "nothing was copied yet");
              const int before = calls_of("cuMemcpyAsync"), waits = calls_of("cuStreamWaitEvent");
              driven->iterate(0, 70);
              expect(calls_of("cuMemcpyAsync") - before == static_cast<int>(70 * copies),
                     "a copy for each operation");
              expect(calls_of("cuStreamWaitEvent") - waits == static_cast<int>(2 * (copies - 1)),
                     "two streams begin and end together");
              expect(driven->last_duration_ns().value_or(0) > 0, "the time of it");
              expect(!driven->verify(70), "what 70 copies leave");
              driven->iterate(70, 3);
              expect(!driven->verify(73), "what 73 copies leave");
              driven.free();
            }
            return {};
          },
          heap())));
}

TEST_P(HostCopyCases, RefuseWhatCopiesCannotHaveLeft) {
  for (const bench::Direction direction : {bench::Direction::uni, bench::Direction::bi})
    for (const char* const name : {"host-to-device", "device-to-host"})
      expect_all_well(run_fork_job(gpu_job(
          1,
          [name, direction](Runtime& runtime) -> std::string {
            Driven driven(runtime, name, point_of(direction, some_bytes));
            const auto found = driven->verify(5);
            expect(found.has_value() && found->pe == 0, "that no copy was made");
            driven->iterate(0, 5);
            expect(!driven->verify(5), "five copies");
            expect(driven->verify(6).has_value(), "that the sixth copy is missing");
            expect(driven->verify(0).has_value(), "that there were copies");
            // Source, slot, and what lies behind the slot.
            for (std::size_t at = 0; at < driven.size_bytes(); at += 997) {
              driven.flip(at);
              const auto wrong = driven->verify(5);
              expect(wrong && wrong->offset_bytes == at && (wrong->found ^ wrong->expected) == 1,
                     "byte " + std::to_string(at));
              driven.flip(at);
            }
            driven.flip(driven.size_bytes() - 1);
            expect(driven->verify(5).has_value(), "the last byte");
            driven.flip(driven.size_bytes() - 1);
            expect(!driven->verify(5), "all is as it was");
            driven.free();
            return {};
          },
          heap())));
}

INSTANTIATE_TEST_SUITE_P(, HostCopyCases, ::testing::Values("vmm", "ipc"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(HostCopies, AHeapOfTheHostHasNoGpuMemoryToCopyTo) {
  expect_all_well(run_fork_job(gpu_job(
      1,
      [](Runtime& runtime) -> std::string {
        const bench::Point point = point_of(bench::Direction::uni, 8);
        for (const char* const name : {"host-to-device", "device-to-host"}) {
          const auto body = bench::choose_cases(bench::stream_cases(), {name}).front().make(point);
          const std::string reason = body->cannot_run(runtime);
          expect(reason.find("memory of the host") != std::string::npos, reason);
        }
        return {};
      },
      {{"SHMEMCTL_HEAP", "host"}})));
}

#if __has_include(<rdma/fabric.h>)
TEST(HostCopies, TheirLimitIsAskedOfEveryPesOwnMachine) {
  ForkJob job =
      gpu_job(2,
              [](Runtime& runtime) -> std::string {
                const bench::GpuLimit limit =
                    bench::gpu_limit_of(runtime, point_of(bench::Direction::uni, 8), nullptr);
                expect(limit.on_gpus, "that no network carries them, whatever node a PE is on");
                // The fake GPUs are no devices of this machine, of which the model would know the
                // link.
                expect(!limit.found.limit &&
                           limit.found.reason.find("GPU 0000:1a:00.0 to the host's memory") !=
                               std::string::npos,
                       limit.found.reason);
                return {};
              },
              {{"SHMEMCTL_TRANSPORT", "shm,libfabric"}, {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}});
  job.n_nodes = 2;
  expect_all_well(run_fork_job(job));
}
#endif

TEST(HostCopies, HostMemoryIsZeroedAndGivenBack) {
  ForkJob job = gpu_job(1, [](Runtime& runtime) -> std::string {
    constexpr std::size_t size_bytes = 100000;
    const std::string before = held_by_fake();
    {
      const std::unique_ptr<HostCopies> copies = runtime.gpu()->make_host_copies(size_bytes);
      const std::byte* const memory = copies->host_memory();
      expect(std::all_of(memory, memory + size_bytes,
                         [](std::byte byte) { return byte == std::byte{0}; }),
             "zeros");
      expect(held_by_fake() != before, "that the driver has given memory");
    }
    expect(held_by_fake() == before, held_by_fake());
    return {};
  });
  job.after = [] { return " held: " + held_by_fake(); };
  const std::vector<PeResult> results = run_fork_job(job);
  expect_all_well(results);
  EXPECT_NE(results[0].text.find(std::string(" held: ") + nothing_held), std::string::npos)
      << results[0].text;
}

TEST(HostCopies, ARefusalOfTheDriverIsReported) {
  for (const char* const function : {"cuMemHostAlloc", "cuEventCreate", "cuMemcpyAsync"})
    expect_all_well(run_fork_job(gpu_job(1, [function](Runtime& runtime) -> std::string {
      auto* const memory = static_cast<std::byte*>(runtime.gpu()->allocate(64));
      const std::string before = held_by_fake();
      const int next = calls_of(function) + 1;
      ::setenv("FAKE_CUDA_FAIL",
               (std::string(function) + ":" + std::to_string(next) + ":2").c_str(), 1);
      try {
        const std::unique_ptr<HostCopies> copies = runtime.gpu()->make_host_copies(4096);
        copies->start(memory, copies->host_memory(), 64);
      } catch (const Error& error) {
        const std::string text = error.what();
        expect(text.find("GPU 0") != std::string::npos &&
                   text.find("out of memory") != std::string::npos,
               text);
        expect(held_by_fake() == before, held_by_fake());
        return {};
      }
      return std::string("no failure of ") + function;
    })));
}

} // namespace
} // namespace shmemctl::test
