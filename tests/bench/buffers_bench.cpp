// A put of user memory beside one of heap memory, by every way, in one run: use
// --benchmark_enable_random_interleaving=true --benchmark_repetitions=9.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/runtime/buffers.h"
#include "src/runtime/memory/host_file.h"
#include "src/runtime/rma.h"
#include "transports/shm/shm.h"

using namespace shmemctl;

namespace {

constexpr std::size_t max_bytes = std::size_t{4} << 20;

/// PEs in one process. What PE 1 owns is mapped a second time for PE 0, as between processes; PE 2
/// may only attach, PE 3 neither.
class TwoPes {
public:
  TwoPes() {
    for (std::byte* half : {reservation_.base(), reservation_.base() + max_bytes})
      heap_->map(half);
    RegionView view{region::heap, reservation_.base(), max_bytes, {}};
    view.mapped = {reservation_.base(), reservation_.base() + max_bytes};
    rma_.set_region(view);
    BuffersConfig config;
    std::random_device random;
    for (std::uint8_t& byte : config.secret)
      byte = static_cast<std::uint8_t>(random());
    config.users = {0, 1, 2, 3};
    config.max_buffers = 1 << 15;
    config.health = &health_;
    config.backing = backing_.get();
    near_ = std::make_unique<Buffers>(config);
    config.pe = 2;
    config.allowed = {false, true};
    attached_ = std::make_unique<Buffers>(config);
    config.pe = 3;
    config.allowed = {false, false};
    staged_ = std::make_unique<Buffers>(config);
    config.pe = 1;
    far_ = std::make_unique<Buffers>(config);
    descriptor_ = far_->describe(far_->add(target_.get(), max_bytes));
  }

  std::byte* heap() const { return reservation_.base(); }
  Rma& rma() { return rma_; }
  Buffers& buffers() { return *near_; }
  Buffers& attached() { return *attached_; }
  Buffers& staged() { return *staged_; }
  const BufferDescriptor& descriptor() const { return descriptor_; }
  Buffers& owner() { return *far_; }
  std::byte* owned() const { return target_.get(); }

private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> target_{
      static_cast<std::byte*>(std::aligned_alloc(4096, max_bytes))};
  std::unique_ptr<HeapBacking> backing_ = make_host_backing({});
  std::unique_ptr<Chunk> heap_ = backing_->create(max_bytes);
  Reservation reservation_{2 * max_bytes};
  JobHealth health_;
  std::unique_ptr<Transport> transport_ = make_shm_transport();
  Rma rma_{0, 2, {transport_.get(), transport_.get()}, health_, 60, true};
  std::unique_ptr<Buffers> near_, attached_, staged_, far_;
  BufferDescriptor descriptor_;
};

TwoPes& two_pes() {
  static TwoPes pes;
  return pes;
}

/// Memory that is only a program's.
std::byte* plain_memory() {
  static const std::vector<std::byte> memory(max_bytes, std::byte{1});
  return const_cast<std::byte*>(memory.data());
}
/// Memory of this PE that is registered.
std::byte* registered_memory() {
  static const auto memory = [] {
    auto* pages = static_cast<std::byte*>(std::aligned_alloc(4096, max_bytes));
    std::memset(pages, 1, max_bytes);
    two_pes().buffers().add(pages, max_bytes);
    return pages;
  }();
  return memory;
}

/// Processor time of the threads that answer for registered buffers.
double answering_s() {
  double seconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    double ran_ns = 0;
    if (name == "buffers")
      std::ifstream(task.path() / "schedstat") >> ran_ns;
    seconds += ran_ns * 1e-9;
  }
  return seconds;
}
/// Reports what the owner's thread had to do for each iteration.
class AnsweringTime {
public:
  explicit AnsweringTime(benchmark::State& state) : state_(state) {}
  ~AnsweringTime() {
    state_.counters["owner_us"] =
        benchmark::Counter((answering_s() - begin_s_) * 1e6, benchmark::Counter::kAvgIterations);
  }
  AnsweringTime(const AnsweringTime&) = delete;
  AnsweringTime& operator=(const AnsweringTime&) = delete;

private:
  benchmark::State& state_;
  double begin_s_ = answering_s();
};

template <class Put>
void measure(benchmark::State& state, const Put& put) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  put(size_bytes);
  for (auto _ : state) {
    put(size_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * size_bytes));
}

void heap_to_heap(benchmark::State& state) {
  measure(state, [](std::size_t size_bytes) {
    two_pes().rma().put(two_pes().heap(), plain_memory(), size_bytes, 1);
  });
}
void registered_to_heap(benchmark::State& state) {
  std::byte* source = registered_memory();
  measure(state, [source](std::size_t size_bytes) {
    two_pes().rma().put(two_pes().heap(), source, size_bytes, 1);
  });
}
void plain_to_registered(benchmark::State& state) {
  measure(state, [](std::size_t size_bytes) {
    two_pes().buffers().put(two_pes().descriptor(), 0, plain_memory(), size_bytes);
  });
}
void registered_to_registered(benchmark::State& state) {
  std::byte* source = registered_memory();
  measure(state, [source](std::size_t size_bytes) {
    two_pes().buffers().put(two_pes().descriptor(), 0, source, size_bytes);
  });
}
void by_attach(benchmark::State& state) {
  measure(state, [](std::size_t size_bytes) {
    two_pes().attached().put(two_pes().descriptor(), 0, plain_memory(), size_bytes);
  });
}
void by_staging(benchmark::State& state) {
  const AnsweringTime time(state);
  measure(state, [](std::size_t size_bytes) {
    two_pes().staged().put(two_pes().descriptor(), 0, plain_memory(), size_bytes);
  });
}
void heap_get(benchmark::State& state) {
  measure(state, [](std::size_t size_bytes) {
    two_pes().rma().get(plain_memory(), two_pes().heap(), size_bytes, 1);
  });
}
void registered_get(benchmark::State& state) {
  measure(state, [](std::size_t size_bytes) {
    two_pes().buffers().get(plain_memory(), two_pes().descriptor(), 0, size_bytes);
  });
}
void register_and_unregister(benchmark::State& state) {
  const auto size_bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> memory(size_bytes + 8192, std::byte{1});
  for (auto _ : state)
    two_pes().buffers().remove(two_pes().buffers().add(memory.data(), size_bytes));
}

/// What the owner's thread is busy with: PE 0 asks for a buffer that it has not opened yet. Beside
/// a thread that registers `range` bytes at the owner again and again, if that is not 0.
void first_use(benchmark::State& state) {
  const auto beside_bytes = static_cast<std::size_t>(state.range(0));
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    std::vector<std::byte> memory(beside_bytes + 8192, std::byte{1});
    while (beside_bytes != 0 && !stop)
      two_pes().owner().remove(two_pes().owner().add(memory.data(), beside_bytes));
  });
  std::size_t at = 0;
  const AnsweringTime time(state);
  for (auto _ : state) {
    state.PauseTiming();
    at = (at + 64) % max_bytes;
    const BufferHandle handle = two_pes().owner().add(two_pes().owned() + at, 64);
    const BufferDescriptor descriptor = two_pes().owner().describe(handle);
    state.ResumeTiming();
    two_pes().buffers().path_to(descriptor);
    state.PauseTiming();
    two_pes().owner().remove(handle);
    state.ResumeTiming();
  }
  stop = true;
  beside.join();
}

} // namespace

BENCHMARK(first_use)->Arg(0)->Arg(1 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(heap_to_heap)->Arg(8)->Arg(4096)->Arg(1 << 20)->Arg(4 << 20);
BENCHMARK(registered_to_heap)->Arg(8)->Arg(4096)->Arg(1 << 20)->Arg(4 << 20);
BENCHMARK(plain_to_registered)->Arg(8)->Arg(4096)->Arg(1 << 20)->Arg(4 << 20);
BENCHMARK(registered_to_registered)->Arg(1 << 20)->Arg(4 << 20);
BENCHMARK(by_attach)->Arg(8)->Arg(1 << 20);
BENCHMARK(by_staging)->Arg(8)->Arg(1 << 20);
BENCHMARK(heap_get)->Arg(1 << 20);
BENCHMARK(registered_get)->Arg(1 << 20);
BENCHMARK(register_and_unregister)->Arg(4096)->Arg(1 << 20);

BENCHMARK_MAIN();
