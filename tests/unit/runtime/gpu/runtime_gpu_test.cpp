// The runtime's GPU phase: devices, heaps, paths, what kernels get.
#include <cstring>
#include <thread>

#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/moe/links.h"
#include "src/runtime/buffers.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

using GpuRuntimeTest = OverHeaps;

TEST_P(GpuRuntimeTest, PutsArriveInThePeersMemory) {
  expect_all_well(run_fork_job(gpu_job(
      3, [this](Runtime& runtime) { return put_to_all(runtime, kind()); }, heap())));
}

TEST_P(GpuRuntimeTest, SignalsAndAtomicsAreCounted) {
  expect_all_well(run_fork_job(gpu_job(2, signal_and_count, heap())));
}

TEST_P(GpuRuntimeTest, KernelsGetMappedPeers) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        PeGpu& gpu = *runtime.gpu();
        auto* word = static_cast<std::uint64_t*>(gpu.allocate(8));
        const DeviceJob job = gpu.job();
        expect(job.pe == runtime.pe() && job.n_pes == 2, "who it is");
        expect(reinterpret_cast<std::byte*>(word) >= job.heap &&
                   reinterpret_cast<std::byte*>(word) + 8 <= job.heap + job.heap_bytes,
               "the heap");
        const int peer = 1 - runtime.pe();
        const std::vector<std::uint64_t> deltas = words_at(gpu, job.heap_delta_bytes, 2);
        expect(deltas[static_cast<std::size_t>(job.pe)] == 0, "its own delta");
        expect(job.all_mapped, "everybody is mapped");
        expect(job.n_param_pes == 2 &&
                   job.param_heap_delta_bytes[peer] ==
                       static_cast<std::int64_t>(deltas[static_cast<std::size_t>(peer)]),
               "the same by value");
        // As a kernel would: a store at its own address plus the delta.
        auto* theirs = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(word) +
                                                        deltas[static_cast<std::size_t>(peer)]);
        *reach(theirs) = 40 + static_cast<std::uint64_t>(runtime.pe());
        const std::vector<std::uint64_t> cells = words_at(gpu, job.team_flags_delta_bytes, 2);
        expect(job.param_flags_delta_bytes[peer] ==
                   static_cast<std::int64_t>(cells[static_cast<std::size_t>(peer)]),
               "the cells' by value");
        auto* arrived = reinterpret_cast<std::uint64_t*>(
            reinterpret_cast<std::uintptr_t>(&job.cells[2].arrived[job.pe]) +
            cells[static_cast<std::size_t>(peer)]);
        *reach(arrived) = 1;
        runtime.collectives().barrier(team_world);
        expect(word_at(gpu, word) == 40 + static_cast<std::uint64_t>(peer), "its store");
        expect(word_at(gpu, &job.cells[2].arrived[peer]) == 1, "its cell");
        expect(word_at(gpu, &job.cells[2].arrived[job.pe]) == 0, "another cell");
        return {};
      },
      heap())));
}

TEST_P(GpuRuntimeTest, TheHeapGrowsInPlaceUpToItsLimit) {
  expect_all_well(run_fork_job(gpu_job(2, grow_to_the_limit, heap())));
}

TEST_P(GpuRuntimeTest, RowsOfMoeStayOnGpuLinksWhereAllAreMapped) {
  const auto stay = [this](Environment more, bool wanted) {
    more["SHMEMCTL_HEAP"] = kind();
    ForkJob job = gpu_job(
        2,
        [wanted](Runtime& runtime) -> std::string {
          expect(moe::rows_stay_on_gpu_links(runtime) == wanted, "whether they stay there");
          return {};
        },
        more);
    expect_all_well(run_fork_job(job));
  };
  stay({}, kind() != "host");
  stay({{"SHMEMCTL_DEVICE_PATH", "proxy"}}, false);
}

// NVLink is no limit of what a network or the host's memory carries.
TEST_P(GpuRuntimeTest, ALinkOfGpusLimitsOnlyWhatUsesIt) {
  const bool on_gpus = kind() != "host";
  const auto stay = [&](int n_nodes, int second_pe, Environment more, bool wanted) {
    more["SHMEMCTL_HEAP"] = kind();
    ForkJob job = gpu_job(
        2 * n_nodes,
        [on_gpus, second_pe, wanted](Runtime& runtime) -> std::string {
          bench::Point point;
          point.second_pe = second_pe;
          // PE 0 is the only one that sends.
          point.launch.initiator = bench::Initiator::gpu;
          const bench::GpuPath path = bench::path_of(runtime, point);
          const bool stays = wanted || runtime.pe() != 0;
          expect(path.between_gpus == (on_gpus && stays), "whether it stays there");
          expect(path.in_host_memory == (!on_gpus && stays), "whether it is the host's memory");
          expect(path.otherwise.empty() == stays, path.otherwise);
          const bench::GpuLimit limit = bench::gpu_limit_of(runtime, point, nullptr);
          expect(limit.on_gpus == wanted, "whether all of it does");
          expect(!limit.found.limit && !limit.found.reason.empty(), "a reason");
          point.launch.initiator = bench::Initiator::host;
          expect(bench::path_of(runtime, point).in_host_memory == false, "processors copy");
          return {};
        },
        more);
    job.n_nodes = n_nodes;
    expect_all_well(run_fork_job(job));
  };
  stay(1, 1, {}, true);
  stay(1, 1, {{"SHMEMCTL_DEVICE_PATH", "proxy"}}, false);
#if __has_include(<rdma/fabric.h>)
  const Environment network = {{"SHMEMCTL_TRANSPORT", "shm,libfabric"},
                               {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}};
  stay(2, 1, network, true);
  stay(2, 2, network, false);
#endif
}

TEST_P(GpuRuntimeTest, TrafficOnOneGpuIsLimitedByItsMemory) {
  const SetVariable one_gpu("FAKE_CUDA_DEVICES", "1");
  expect_all_well(run_fork_job(gpu_job(
      2,
      [this](Runtime& runtime) -> std::string {
        bench::LinkMeter meter(runtime);
        bench::Point point;
        point.launch.initiator = bench::Initiator::gpu;
        const bench::FoundLimit found = bench::gpu_limit_of(runtime, point, &meter).found;
        const auto& limit = found.limit;
        expect(limit.has_value() == (kind() != "host"), "that there is one");
        // The fake GPUs are no devices of this machine, of which the model would know the link.
        expect(limit || found.reason.find("to the host's memory") != std::string::npos,
               found.reason);
        if (limit)
          expect(limit->of_memory && limit->rate_GBps > 1676 && limit->rate_GBps < 1677,
                 limit->name);
        return {};
      },
      heap())));
}

TEST_P(GpuRuntimeTest, LinksAreNotMeasuredWithoutNeed) {
  const auto say = [this](Environment more, const std::string& wanted, std::size_t taken_bytes) {
    more["SHMEMCTL_HEAP"] = kind();
    ForkJob job = gpu_job(
        2,
        [wanted, taken_bytes](Runtime& runtime) -> std::string {
          void* const taken = taken_bytes > 0 ? runtime.gpu()->allocate(taken_bytes) : nullptr;
          bench::Point exchange;
          exchange.traffic = bench::Traffic::all_to_all;
          bench::LinkMeter meter(runtime);
          const bench::LinkMeasurement& measured = meter.of(exchange);
          expect(!measured.link && measured.reason == wanted, measured.reason);
          expect(&meter.of(exchange) == &measured, "once");
          runtime.gpu()->free(taken);
          return {};
        },
        more);
    expect_all_well(run_fork_job(job));
  };
  const std::string of_host = "the heap is memory of the host";
  const bool host = kind() == "host";
  say({{"SHMEMCTL_DEVICE_PATH", "proxy"}}, host ? of_host : "a PE's GPU memory is not mapped", 0);
  say({}, host ? of_host : "the heap has no room for it", std::size_t{50} << 20);
}

TEST_P(GpuRuntimeTest, ATooSmallHeapReportsTheRequiredSize) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        try {
          bench::ArenaMemory(runtime, bench::MemoryKind::gpu, std::size_t{100} << 20, "the test");
        } catch (const Error& error) {
          expect(std::string(error.what()).find("the test needs 104857600 bytes on each PE") !=
                     std::string::npos,
                 error.what());
          return {};
        }
        return "nothing was said";
      },
      heap())));
}

// The heap has grown piece by piece when its memory is one array.
TEST_P(GpuRuntimeTest, AnArrayMayLieInSeveralPiecesOfTheHeap) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        constexpr std::size_t piece = std::size_t{4} << 20, count = 4 * piece / 8 - 1;
        PeGpu& gpu = *runtime.gpu();
        for (int i = 1; i <= 4; ++i)
          gpu.free(gpu.allocate(static_cast<std::size_t>(i) * piece - 8));
        auto* array = static_cast<std::uint64_t*>(gpu.allocate(count * 8));
        gpu.fill(array, 0x11, count * 8);
        expect(words_at(gpu, array, count) == std::vector<std::uint64_t>(count, 0x1111111111111111),
               "what it was filled with");
        std::vector<std::uint64_t> words(count);
        for (std::size_t i = 0; i < count; ++i)
          words[i] = i * 0x9e3779b97f4a7c15;
        gpu.copy(array, words.data(), count * 8);
        expect(words_at(gpu, array, count) == words, "what was copied there");
        runtime.collectives().barrier(team_world);
        runtime.rma().put(array + 1, words.data(), (count - 1) * 8, 1 - runtime.pe());
        runtime.rma().quiet();
        runtime.collectives().barrier(team_world);
        words.insert(words.begin() + 1, words[0]);
        words.pop_back();
        expect(words_at(gpu, array, count) == words, "what the other PE put");
        return {};
      },
      heap())));
}

// Payload and signal take different paths; the signal still arrives last.
TEST_P(GpuRuntimeTest, ASignalMayLieInOtherMemoryThanItsPayload) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        constexpr std::size_t count = 4096;
        constexpr std::uint64_t rounds = 20;
        PeGpu& gpu = *runtime.gpu();
        Rma& rma = runtime.rma();
        auto* of_gpu = static_cast<std::uint64_t*>(gpu.allocate((count + 1) * 8));
        auto* of_host = static_cast<std::uint64_t*>(runtime.allocate((count + 1) * 8));
        std::memset(of_host, 0, (count + 1) * 8);
        runtime.collectives().barrier(team_world);
        const int peer = 1 - runtime.pe();
        for (std::uint64_t round = 1; round <= rounds; ++round) {
          const std::vector<std::uint64_t> payload(count, round);
          rma.put_signal(of_gpu, payload.data(), count * 8, of_host + count, round, SignalOp::set,
                         peer);
          rma.wait_until(of_host + count, Compare::equal, round, "signal");
          expect(words_at(gpu, of_gpu, count) == payload, "what came before the host's signal");
          rma.put_signal(of_host, payload.data(), count * 8, of_gpu + count, 1, SignalOp::add,
                         peer);
          rma.quiet();
          runtime.collectives().barrier(team_world);
          expect(word_at(gpu, of_gpu + count) == round, "the GPU's signal");
          expect(std::vector<std::uint64_t>(of_host, of_host + count) == payload, "its payload");
          runtime.collectives().barrier(team_world);
        }
        return {};
      },
      heap())));
}

TEST_P(GpuRuntimeTest, ThreadsPutOnContextsOfTheirOwn) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        constexpr std::size_t n_threads = 3, count = 1000;
        auto* words = static_cast<std::uint64_t*>(runtime.gpu()->allocate(n_threads * count * 8));
        const int peer = 1 - runtime.pe();
        std::vector<std::thread> threads;
        for (std::size_t thread = 0; thread < n_threads; ++thread)
          threads.emplace_back([&, thread] {
            for (std::size_t i = 0; i < count; ++i)
              runtime.rma().put_value<std::uint64_t>(words + thread * count + i, i + thread, peer,
                                                     static_cast<int>(thread));
            runtime.rma().quiet(static_cast<int>(thread));
          });
        for (std::thread& thread : threads)
          thread.join();
        runtime.collectives().barrier(team_world);
        const auto seen = words_at(*runtime.gpu(), words, n_threads * count);
        for (std::size_t at = 0; at < seen.size(); ++at)
          expect(seen[at] == at % count + at / count, "word " + std::to_string(at));
        return {};
      },
      heap())));
}

TEST_P(GpuRuntimeTest, NothingIsLeftInTheDriver) {
  for (const bool finishes : {true, false}) {
    ForkJob job = gpu_job(2, {}, heap());
    job.body = [finishes](Runtime& runtime) -> std::string {
      runtime.gpu()->allocate(1 << 20);
      runtime.rma().put_value<std::uint64_t>(
          static_cast<std::uint64_t*>(runtime.gpu()->allocate(8)), 1, 1 - runtime.pe());
      if (!finishes)
        throw Error(ExitCode::finding, "the test", "end", "as it shall", "-");
      return {};
    };
    job.after = [] { return " held: " + held_by_fake(); };
    for (const PeResult& result : run_fork_job(job)) {
      EXPECT_EQ(result.exit_code, finishes ? 0 : 1) << result.text;
      EXPECT_NE(result.text.find(std::string(" held: ") + nothing_held), std::string::npos)
          << result.text;
    }
  }
}

TEST_P(GpuRuntimeTest, TheHeapIsNoUserBufferButMemoryOfTheHostIs) {
  expect_all_well(run_fork_job(gpu_job(
      2,
      [](Runtime& runtime) -> std::string {
        std::string said;
        try {
          runtime.buffers().add(runtime.gpu()->allocate(1 << 20), 4096);
        } catch (const Error& error) {
          said = error.message();
        }
        expect(said.find("symmetric heap") != std::string::npos, "a refusal: " + said);
        std::vector<std::byte> array(100000);
        const BufferHandle handle = runtime.buffers().add(array.data(), array.size());
        runtime.buffers().remove(handle);
        runtime.collectives().barrier(team_world);
        return {};
      },
      heap())));
}

INSTANTIATE_TEST_SUITE_P(, GpuRuntimeTest, all_heaps(),
                         [](const auto& kind) { return std::string(kind.param); });

} // namespace
} // namespace shmemctl::test
