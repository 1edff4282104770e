// Operations on streams, launched one by one and from a CUDA graph.
#include <gtest/gtest.h>

#include "kernels/on_stream.h"
#include "kernels/on_stream_launch.h"
#include "tests/gpu/device_kernels.h"
#include "tests/gpu/device_world.h"
#include "tests/gpu/share.h"
#include "tests/gpu/stream_litmus.h"

namespace shmemctl::test {
namespace {

/// Where things lie in the heap: a MiB for each.
enum Place : std::size_t {
  source,
  put_target,
  get_target,
  gathered,
  exchanged,
  exchanged_v,
  spread,
  summed,
  scattered,
  words,
  places
};
constexpr std::size_t place_bytes = std::size_t{4} << 20;
constexpr std::size_t large = (std::size_t{1} << 20) + 4; // by copy engines
constexpr std::size_t part = 100000;                      // of collectives
constexpr std::size_t numbers = 5000;

class StreamPe {
public:
  explicit StreamPe(GpuPe& me) : me_(me), job_(me.job) {
    require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  }
  ~StreamPe() { cudaStreamDestroy(stream_); }
  StreamPe(const StreamPe&) = delete;
  StreamPe& operator=(const StreamPe&) = delete;

  /// Everything once, into the stream.
  void enqueue(std::size_t size_bytes) {
    const int n = me_.job.n_pes, next = (me_.job.pe + 1) % n, before = (me_.job.pe + n - 1) % n;
    auto* const signal = reinterpret_cast<std::uint64_t*>(at(words));
    on_stream::barrier(job_, GpuPe::world, stream_);
    on_stream::put_signal(job_, at(put_target), at(source), size_bytes, signal, 1,
                          device::SignalOp::set, next, stream_);
    on_stream::wait_until(job_, signal, device::Compare::equal, 1, before, stream_);
    require_cuda(cudaMemsetAsync(signal, 0, 8, stream_), "reset of the signal");
    on_stream::get(job_, at(get_target), at(source), size_bytes, before, stream_);
    on_stream::put(job_, at(words) + 64, at(source), 9, next, stream_);
    on_stream::signal(job_, signal + 1, 1, device::SignalOp::add, next, stream_);
    on_stream::quiet(job_, stream_);
    on_stream::fcollect(job_, GpuPe::world, at(gathered), at(source), part, stream_);
    on_stream::fcollect(job_, GpuPe::world, at(words) + 1024, at(source), 24, stream_);
    on_stream::alltoall(job_, GpuPe::world, at(exchanged), at(source), part, stream_);
    // Sizes, places in the source, places in the dest: as much as lists() says.
    auto* const numbers_here = reinterpret_cast<const std::uint64_t*>(at(words) + lists_at);
    on_stream::alltoallv(job_, GpuPe::world, at(exchanged_v), at(source),
                         {numbers_here, numbers_here + n, numbers_here + 2 * n}, stream_);
    on_stream::sync(job_, GpuPe::world, stream_);
    on_stream::broadcast(job_, GpuPe::world, at(spread), at(source), part, 1, stream_);
    on_stream::reduce(job_, GpuPe::world, at(summed), at(source), numbers,
                      on_stream::NumberType::int32, device::ReduceOp::sum, stream_);
    on_stream::reducescatter(job_, GpuPe::world, at(scattered), at(source), numbers,
                             on_stream::NumberType::int64, device::ReduceOp::max, stream_);
    on_stream::barrier(job_, GpuPe::world, stream_);
  }
  void fill(unsigned seed) {
    me_.store(source * place_bytes, bytes_of(me_.job.pe, seed));
    const std::vector<std::uint64_t> numbers_here = lists();
    std::vector<std::uint8_t> bytes(numbers_here.size() * 8);
    std::memcpy(bytes.data(), numbers_here.data(), bytes.size());
    me_.store(words * place_bytes + lists_at, bytes);
    me_.barrier();
  }
  void finish() {
    require_cuda(cudaStreamSynchronize(stream_), "stream");
    me_.synchronize();
  }
  void compare(unsigned seed, std::size_t size_bytes) {
    const int n = me_.job.n_pes, before = (me_.job.pe + n - 1) % n;
    std::vector<std::vector<std::uint8_t>> all;
    for (int pe = 0; pe < n; ++pe)
      all.push_back(bytes_of(pe, seed));
    const auto& left = all[static_cast<std::size_t>(before)];
    same(put_target, 0, left, 0, size_bytes, "put");
    same(get_target, 0, left, 0, size_bytes, "get");
    same(words, 64, left, 0, 9, "small put");
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      same(gathered, pe * part, all[pe], 0, part, "fcollect");
      same(words, 1024 + pe * 24, all[pe], 0, 24, "small fcollect");
      same(exchanged, pe * part, all[pe], static_cast<std::size_t>(me_.job.pe) * part, part,
           "alltoall");
      same(exchanged_v, pe * part, all[pe], static_cast<std::size_t>(me_.job.pe) * 3,
           exchanged_bytes(static_cast<int>(pe), me_.job.pe), "alltoallv");
    }
    same(spread, 0, all[1], 0, part, "broadcast");
    compare_sums(all);
    me_.barrier();
  }
  cudaStream_t stream() const { return stream_; }

private:
  std::byte* at(std::size_t place) const { return me_.job.heap + place * place_bytes; }
  static constexpr std::size_t lists_at = std::size_t{1} << 20;
  /// Bytes of alltoallv: nothing to itself, and odd sizes.
  static std::size_t exchanged_bytes(int from, int to) {
    return from == to ? 0 : part - static_cast<std::size_t>(from) * 777;
  }
  std::vector<std::uint64_t> lists() const {
    const int n = me_.job.n_pes;
    std::vector<std::uint64_t> all;
    for (int to = 0; to < n; ++to)
      all.push_back(exchanged_bytes(me_.job.pe, to));
    for (int to = 0; to < n; ++to)
      all.push_back(static_cast<std::uint64_t>(to) * 3);
    for (int to = 0; to < n; ++to)
      all.push_back(static_cast<std::uint64_t>(me_.job.pe) * part);
    return all;
  }
  static std::vector<std::uint8_t> bytes_of(int pe, unsigned seed) {
    std::vector<std::uint8_t> bytes(large);
    std::uint64_t state = seed * 1000u + static_cast<unsigned>(pe) + 1;
    for (std::uint8_t& byte : bytes) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::uint8_t>(state >> 56);
    }
    return bytes;
  }
  void same(std::size_t place, std::size_t offset, const std::vector<std::uint8_t>& expected,
            std::size_t from, std::size_t size_bytes, const std::string& what) {
    const std::vector<std::uint8_t> found = me_.load(place * place_bytes + offset, size_bytes);
    require(std::equal(found.begin(), found.end(),
                       expected.begin() + static_cast<std::ptrdiff_t>(from)),
            what);
  }
  template <class T>
  static T number(const std::vector<std::uint8_t>& bytes, std::size_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  void compare_sums(const std::vector<std::vector<std::uint8_t>>& all) {
    const auto sums = me_.load(summed * place_bytes, numbers * 4);
    const auto mine = me_.load(scattered * place_bytes, numbers * 8);
    const std::size_t first = static_cast<std::size_t>(me_.job.pe) * numbers;
    for (std::size_t i = 0; i < numbers; ++i) {
      std::uint32_t sum = 0;
      std::int64_t most = INT64_MIN;
      for (const std::vector<std::uint8_t>& bytes : all) {
        sum += number<std::uint32_t>(bytes, i);
        most = std::max(most, number<std::int64_t>(bytes, first + i));
      }
      require(number<std::uint32_t>(sums, i) == sum, "reduce");
      require(number<std::int64_t>(mine, i) == most, "reducescatter");
    }
  }

  GpuPe& me_;
  on_stream::Job job_;
  cudaStream_t stream_ = nullptr;
};

void run(const std::function<void(GpuPe&)>& body) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  EXPECT_EQ(run_gpu_pes(2, places * place_bytes, body), "");
}

/// A device of sm_90 runs code that was made for sm_80, too, which does not wait in itself.
TEST(Streams, OnlyCodeThatWaitsComesAhead) {
  const auto made_for = [](int ptx, int binary) {
    cudaFuncAttributes code{};
    code.ptxVersion = ptx;
    code.binaryVersion = binary;
    return is_sm_90_code(code);
  };
  EXPECT_TRUE(made_for(90, 90));
  EXPECT_TRUE(made_for(90, 100));
  EXPECT_FALSE(made_for(80, 80));
  EXPECT_FALSE(made_for(80, 90)); // compiled from its PTX when it was loaded
}

TEST(Streams, DoWhatIsAsked) {
  run([](GpuPe& me) {
    StreamPe streams(me);
    for (const std::size_t size : {std::size_t{8}, std::size_t{5001}, large}) {
      const auto seed = static_cast<unsigned>(size);
      streams.fill(seed);
      streams.enqueue(size);
      streams.finish();
      streams.compare(seed, size);
    }
  });
}

/// A call that a kernel refuses is reported, although its return value is not read.
TEST(Streams, CollectivesThatCannotBeAreReported) {
  run([](GpuPe& me) {
    const on_stream::Job job(me.job);
    WaitReport& report = *me.job.report;
    if (me.job.pe == 1) { // PE 1 is not a member of the team of even PEs
      on_stream::reduce(job, GpuPe::even, me.job.heap, me.job.heap, 4, on_stream::NumberType::uint8,
                        device::ReduceOp::sum, nullptr);
      require_cuda(cudaDeviceSynchronize(), "kernel");
      require(report.state == WaitReport::written && report.kind == WaitKind::no_member &&
                  report.expected == GpuPe::even,
              "who is no member says so");
      report.state = WaitReport::none;
      on_stream::reduce(job, GpuPe::ends, me.job.heap, me.job.heap, 4,
                        on_stream::NumberType::float32, device::ReduceOp::bit_xor, nullptr);
      require_cuda(cudaDeviceSynchronize(), "kernel");
      require(report.state == WaitReport::written && report.kind == WaitKind::no_reduction,
              "bits of floats are not reduced");
      report.state = WaitReport::none;
    }
    me.barrier();
  });
}

TEST(Streams, GraphsDoItAgain) {
  run([](GpuPe& me) {
    StreamPe streams(me);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    require_cuda(cudaStreamBeginCapture(streams.stream(), cudaStreamCaptureModeThreadLocal),
                 "capture");
    streams.enqueue(large);
    require_cuda(cudaStreamEndCapture(streams.stream(), &graph), "end of the capture");
    require_cuda(cudaGraphInstantiate(&ready, graph, 0), "graph");
    for (unsigned seed = 1; seed <= 5; ++seed) {
      streams.fill(seed);
      require_cuda(cudaGraphLaunch(ready, streams.stream()), "launch of the graph");
      streams.finish();
      streams.compare(seed, large);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  });
}

/// Each PE's stream puts to the other PE, which checks every byte after the signal has arrived, and
/// answers. The signal comes with the put and by itself, in turn.
void expect_data_before_signals(GpuPe& me, std::size_t size_bytes, std::uint64_t rounds) {
  constexpr std::size_t out = 0, in = place_bytes, signals = 2 * place_bytes;
  const int peer = 1 - me.job.pe;
  const on_stream::Job job(me.job);
  auto* const signal = reinterpret_cast<std::uint64_t*>(me.job.heap + signals);
  auto* const answer = signal + 16; // written by the peer's kernel
  DeviceArray<StreamFindings> findings(1);
  cudaStream_t putting = nullptr, watching = nullptr;
  require_cuda(cudaStreamCreateWithFlags(&putting, cudaStreamNonBlocking), "stream");
  require_cuda(cudaStreamCreateWithFlags(&watching, cudaStreamNonBlocking), "stream");
  // Round 0; also what a first call loads, which a kernel that waits would hold up.
  require_cuda(cudaMemsetAsync(me.job.heap, 0, signals + place_bytes, putting), "clearing");
  on_stream::wait_until(job, signal, device::Compare::equal, 0, peer, putting);
  require_cuda(cudaStreamSynchronize(putting), "clearing");
  me.barrier();
  const StreamWatch watch{reinterpret_cast<const std::uint64_t*>(me.job.heap + in),
                          size_bytes / sizeof(std::uint64_t),
                          signal,
                          reinterpret_cast<std::uint64_t*>(job.address(answer, peer)),
                          rounds,
                          me.job.timeout_ns};
  require_cuda(launch_watch_stream(watching, watch, findings.data()), "watch");
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    require_cuda(
        cudaMemsetAsync(me.job.heap + out, static_cast<int>(round & 0xff), size_bytes, putting),
        "data of a round");
    if (round % 2 == 0) {
      on_stream::put_signal(job, me.job.heap + in, me.job.heap + out, size_bytes, signal, round,
                            device::SignalOp::set, peer, putting);
    } else {
      on_stream::put(job, me.job.heap + in, me.job.heap + out, size_bytes, peer, putting);
      on_stream::signal(job, signal, 1, device::SignalOp::add, peer, putting);
    }
    on_stream::wait_until(job, answer, device::Compare::equal, round, peer, putting);
  }
  me.synchronize();
  cudaStreamDestroy(putting);
  cudaStreamDestroy(watching);
  const StreamFindings seen = findings.values()[0];
  require(seen.looked == rounds, "rounds that came: " + std::to_string(seen.looked));
  require(seen.late == 0, "words behind their signal: " + std::to_string(seen.late));
}

/// Data of a put goes by a copy engine, its signal by a kernel; a small put with a signal is one
/// kernel. The signal comes after the data in each case.
TEST(Streams, DataComesBeforeItsSignal) {
  static_assert(on_stream::put_signal_copy_bytes == std::size_t{128} << 10);
  const std::uint64_t rounds = pes_take_turns() ? 100 : share_of(messages_of(20000) / 2);
  run([rounds](GpuPe& me) {
    for (const std::size_t size :
         {std::size_t{8}, std::size_t{16} << 10, std::size_t{128} << 10, std::size_t{1} << 20})
      expect_data_before_signals(me, size,
                                 size > on_stream::put_signal_copy_bytes ? rounds / 4 + 1 : rounds);
  });
}

} // namespace
} // namespace shmemctl::test
