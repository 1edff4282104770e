// Atomics of kernels.
#include <algorithm>
#include <cstring>

#include "kernels/bench/atomics.h"
#include "src/bench/case_table.h"
#include "src/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

/// Who works on which words at the peer, which nobody else touches.
enum class Adders {
  one_thread,  ///< one word, one operation after the other
  own_words,   ///< every thread of the grid to a word of its own
  whole_array, ///< the grid to every word of an array
};

template <AtomicKernel kernel, Adders adders>
class GpuAtomic final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int) const override { return (words() * word_bytes() + 127) / 128 * 128; }
  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override {
    return adders == Adders::whole_array && measures() ? words() * word_bytes() : 0;
  }
  std::uint64_t operations_per_iteration() const override { return measures() ? words() : 0; }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (wrong_fetch_)
      return wrong_fetch_;
    const std::vector<std::byte> seen = fetched(0, bytes_for(n_pes()));
    const std::uint64_t mask = word_bytes() == 4 ? UINT32_MAX : ~std::uint64_t{0};
    for (std::size_t at = 0; at < seen.size(); at += word_bytes()) {
      const bool used = !routes_.from.empty() && at / word_bytes() < words();
      const std::uint64_t expected = used ? atomic_after(kernel, iterations) & mask : 0;
      std::uint64_t found = 0;
      std::memcpy(&found, seen.data() + at, word_bytes());
      if (found != expected)
        return WrongByte{pe(), at, expected, found,
                         used ? "word after " + std::to_string(iterations) + " operations of PE " +
                                    std::to_string(routes_.from[0])
                              : "a word that nobody writes to"};
    }
    return std::nullopt;
  }

protected:
  void set_up() override { routes_ = routes(); }
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    const AtomicArguments arguments{kernel,
                                    first,
                                    count,
                                    memory(),
                                    static_cast<std::uint32_t>(word_bytes()),
                                    routes_.to.empty() ? -1 : routes_.to[0],
                                    words()};
    switch (adders) {
    case Adders::one_thread:
      return launch_atomic_latency(how, arguments);
    case Adders::own_words:
      return launch_atomic_rate(how, arguments);
    case Adders::whole_array:
      return launch_atomic_bandwidth(how, arguments);
    }
    return "no such kernel";
  }
  int max_resident_blocks(int device) const override {
    return max_atomic_blocks(device, point().launch.threads);
  }
  void launched() override { note_wrong_fetch(); }

private:
  std::size_t word_bytes() const {
    return adders == Adders::whole_array ? sizeof(std::uint64_t) : point().size_bytes;
  }
  std::uint64_t words() const {
    switch (adders) {
    case Adders::one_thread:
      return 1;
    case Adders::own_words:
      return static_cast<std::uint64_t>(std::max(point().launch.ctas, 1)) *
             static_cast<std::uint64_t>(std::max(point().launch.threads, 1));
    case Adders::whole_array:
      return point().size_bytes / word_bytes();
    }
    return 1;
  }
  void note_wrong_fetch() {
    if (adders != Adders::one_thread || wrong_fetch_ || routes_.to.empty() ||
        control().wrong_at == UINT64_MAX)
      return;
    wrong_fetch_ = WrongByte{routes_.to[0], 0, control().expected, control().found,
                             "value that iteration " + std::to_string(control().wrong_at) +
                                 " of PE " + std::to_string(pe()) + " fetched"};
  }

  Routes routes_;
  std::optional<WrongByte> wrong_fetch_;
};

CaseInfo info_of(std::string name, std::string measures, const std::string& how,
                 bool fetches = false) {
  CaseInfo info;
  info.name = std::move(name);
  info.group = "atomic";
  info.metric = Metric::latency;
  info.measures = std::move(measures);
  info.how = how + " Verified: the words, from the number of operations" +
             (fetches ? ", and every value fetched." : ".");
  info.element_bytes = info.min_bytes = 4;
  info.max_bytes = 8;
  info.only_bytes = {4, 8};
  info.traffics = {Traffic::pair, Traffic::pairs};
  info.bidirectional = true;
  info.initiator = Initiator::gpu;
  info.launch.scopes = {CallScope::thread};
  return info;
}

template <AtomicKernel kernel>
BenchCase latency_case(const char* op) {
  const std::string until =
      atomic_fetches(kernel) ? " until its result is here" : " until it is complete at the target";
  return bench_case_of<GpuAtomic<kernel, Adders::one_thread>>(
      info_of(std::string("atomic-") + op, std::string("time of an atomic ") + op + until,
              std::string("One thread, one operation after the other on one word of 4 or 8 bytes") +
                  (atomic_fetches(kernel) ? "." : ", each followed by quiet."),
              atomic_fetches(kernel)));
}

} // namespace

std::vector<BenchCase> gpu_atomic_cases() {
  CaseInfo rate = info_of("atomic-rate", "atomic adds per second",
                          "Every thread of the grid adds to a word of its own at the peer; one "
                          "quiet ends the launch. The words lie side by side.");
  rate.metric = Metric::rate;
  rate.launch = whole_grid(CallScope::thread);
  rate.launch.scopes = {CallScope::thread};
  CaseInfo array = info_of("atomic-bandwidth", "bandwidth of atomic adds to an array",
                           "The grid's threads add to every word of 8 bytes of an array at the "
                           "peer, neighbours to neighbours, one array after the other; one quiet "
                           "ends the launch. Sizes are those of the array.");
  array.metric = Metric::bandwidth;
  array.launch = rate.launch;
  array.only_bytes.clear();
  array.element_bytes = array.min_bytes = sizeof(std::uint64_t);
  array.max_bytes = std::size_t{4} << 20;
  return {latency_case<AtomicKernel::fetch>("fetch"),
          latency_case<AtomicKernel::set>("set"),
          latency_case<AtomicKernel::swap>("swap"),
          latency_case<AtomicKernel::compare_swap>("compare-swap"),
          latency_case<AtomicKernel::fetch_add>("fetch-add"),
          latency_case<AtomicKernel::add>("add"),
          bench_case_of<GpuAtomic<AtomicKernel::add, Adders::own_words>>(rate),
          bench_case_of<GpuAtomic<AtomicKernel::add, Adders::whole_array>>(array)};
}

} // namespace shmemctl::bench
