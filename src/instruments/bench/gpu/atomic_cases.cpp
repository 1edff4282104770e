// Atomics of kernels.
#include <algorithm>
#include <cstring>

#include "kernels/bench/atomics.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

/// Which threads update which words at the peer. Only one thread updates a word.
enum class Adders {
  one_thread,  ///< one thread, one word, one operation after another
  own_words,   ///< every thread of the grid updates its own word
  whole_array, ///< the grid updates every word of an array
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

} // namespace

SHMEMCTL_CASE(atomic_fetch_by_gpu, GpuAtomic<AtomicKernel::fetch, Adders::one_thread>);
SHMEMCTL_CASE(atomic_set_by_gpu, GpuAtomic<AtomicKernel::set, Adders::one_thread>);
SHMEMCTL_CASE(atomic_swap_by_gpu, GpuAtomic<AtomicKernel::swap, Adders::one_thread>);
SHMEMCTL_CASE(atomic_compare_swap_by_gpu,
              GpuAtomic<AtomicKernel::compare_swap, Adders::one_thread>);
SHMEMCTL_CASE(atomic_fetch_add_by_gpu, GpuAtomic<AtomicKernel::fetch_add, Adders::one_thread>);
SHMEMCTL_CASE(atomic_add_by_gpu, GpuAtomic<AtomicKernel::add, Adders::one_thread>);
SHMEMCTL_CASE(atomic_rate_by_gpu, GpuAtomic<AtomicKernel::add, Adders::own_words>);
SHMEMCTL_CASE(atomic_bandwidth_by_gpu, GpuAtomic<AtomicKernel::add, Adders::whole_array>);

} // namespace shmemctl::bench
