// host-to-device and device-to-host: copies by a copy engine between a PE's GPU and page-locked
// memory of its host. Nothing goes to another PE.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/stream_timer.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/pattern.h"
#include "src/instruments/bench/path.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/gpu/host_copies.h"

namespace shmemctl::bench {

namespace {

/// The memory on one side of the link: the source of the data that it sends, and the slot for the
/// data that it receives.
struct CopySide {
  std::size_t size_bytes = 0;
  bool sends = false, receives = false;

  /// Zeros after the slot, which a copy must not touch.
  static constexpr std::size_t guard_bytes = 64;

  std::size_t source_size_bytes() const { return sends ? source_bytes(size_bytes) : 0; }
  std::size_t slot_offset_bytes() const { return source_size_bytes(); }
  std::size_t slot_size_bytes() const {
    return receives ? (size_bytes + 63) / 64 * 64 + guard_bytes : 0;
  }
  std::size_t total_bytes() const { return source_size_bytes() + slot_size_bytes(); }
};

enum class CopyDirection { to_gpu, to_host };

template <CopyDirection copied>
class HostCopyCase final : public Case {
public:
  explicit HostCopyCase(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime&, const Point&) const override {
    return gpu_side().total_bytes();
  }

  std::string cannot_run(Runtime& runtime) const override {
    if (!runtime.gpu())
      return "it has no GPU";
    if (runtime.gpu()->info().heap_kind == "host")
      return "the GPU heap is memory of the host, so nothing is copied to or from the GPU";
    return "";
  }

  void prepare(Arena& arena) override {
    pe_ = arena.runtime.pe();
    seed_ = arena.seed;
    gpu_ = arena.runtime.gpu();
    on_gpu_ = arena.memory;
    copies_ = gpu_->make_host_copies(host_side().total_bytes());
    on_host_ = copies_->host_memory();
    if (host_side().sends)
      fill_pattern(on_host_, host_side().source_size_bytes(), seed_of(CopyDirection::to_gpu), pe_);
    if (gpu_side().sends) {
      std::vector<std::byte> source(gpu_side().source_size_bytes());
      fill_pattern(source.data(), source.size(), seed_of(CopyDirection::to_host), pe_);
      gpu_->copy(on_gpu_, source.data(), source.size());
    }
    if (!point_.launch.graph)
      return;
    graph_.emplace(gpu_->info().device);
    graph_->capture(gpu_->stream(), [this] { enqueue(0, variants); });
  }

  bool measures() const override { return true; }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    copies_->begin();
    const std::uint64_t end = first + count;
    // The graph contains the copies with numbers 0, 1, ... `variants` - 1.
    while (graph_ && first % variants == 0 && end - first >= variants) {
      graph_->launch_graph(gpu_->stream());
      first += variants;
    }
    if (first < end)
      enqueue(first, end - first);
    copies_->end();
    gpu_->wait(gpu_->stream(), "copies between the GPU and its host");
    duration_ns_ = copies_->elapsed_ns();
  }

  std::optional<double> last_duration_ns() const override { return duration_ns_; }
  // CUDA events have a resolution of half a microsecond, and an interval between two includes about
  // one more.
  std::optional<TimerQuality> timer() const override { return TimerQuality{500, 1000}; }
  std::uint64_t bytes_per_iteration() const override {
    return operations_per_iteration() * point_.size_bytes;
  }
  std::uint64_t operations_per_iteration() const override { return both_ways() ? 2 : 1; }
  std::uint64_t batch_multiple() const override { return point_.launch.graph ? variants : 1; }
  std::vector<std::string> carriers() const override { return {copy_engine_name}; }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    std::vector<std::byte> fetched(gpu_side().total_bytes());
    gpu_->copy(fetched.data(), on_gpu_, fetched.size());
    if (auto wrong = verify_side(gpu_side(), fetched.data(), CopyDirection::to_host,
                                 CopyDirection::to_gpu, iterations, "GPU"))
      return wrong;
    return verify_side(host_side(), on_host_, CopyDirection::to_gpu, CopyDirection::to_host,
                       iterations, "host");
  }

private:
  bool both_ways() const { return point_.direction == Direction::bi; }
  CopySide host_side() const {
    return {point_.size_bytes, copied == CopyDirection::to_gpu || both_ways(),
            copied == CopyDirection::to_host || both_ways()};
  }
  CopySide gpu_side() const {
    return {point_.size_bytes, copied == CopyDirection::to_host || both_ways(),
            copied == CopyDirection::to_gpu || both_ways()};
  }
  /// Different for the two directions, so that they move different bytes.
  std::uint64_t seed_of(CopyDirection direction) const {
    return seed_ + (direction == CopyDirection::to_gpu ? 0 : 0x9e3779b97f4a7c15U);
  }

  struct Ends {
    std::byte* to;
    const std::byte* from;
  };
  Ends ends_of(CopyDirection direction, std::uint64_t number) const {
    const std::size_t variant = number % variants * variant_step_bytes;
    if (direction == CopyDirection::to_gpu)
      return {on_gpu_ + gpu_side().slot_offset_bytes(), on_host_ + variant};
    return {on_host_ + host_side().slot_offset_bytes(), on_gpu_ + variant};
  }

  void enqueue(std::uint64_t first, std::uint64_t count) {
    if (both_ways())
      copies_->fork();
    for (std::uint64_t number = first; number < first + count; ++number) {
      const Ends own = ends_of(copied, number);
      copies_->start(own.to, own.from, point_.size_bytes);
      if (!both_ways())
        continue;
      const Ends other = ends_of(
          copied == CopyDirection::to_gpu ? CopyDirection::to_host : CopyDirection::to_gpu, number);
      copies_->start_beside(other.to, other.from, point_.size_bytes);
    }
    if (both_ways())
      copies_->join();
  }

  /// @param bytes memory of that side, whose data it sends in direction `sent` and receives in
  /// direction `received`
  std::optional<WrongByte> verify_side(const CopySide& side, const std::byte* bytes,
                                       CopyDirection sent, CopyDirection received,
                                       std::uint64_t iterations, const std::string& whose) const {
    const auto wrong = [&](const Difference& difference, std::size_t at, const std::string& what) {
      return WrongByte{pe_, at + difference.offset_bytes, difference.expected, difference.found,
                       what + " in memory of the " + whose};
    };
    if (side.sends)
      if (const auto difference =
              compare_pattern(bytes, side.source_size_bytes(), seed_of(sent), pe_, 0))
        return wrong(*difference, 0, "source of the copies");
    if (!side.receives)
      return std::nullopt;
    const std::size_t slot = side.slot_offset_bytes();
    const std::size_t copied_bytes = iterations == 0 ? 0 : side.size_bytes;
    if (iterations > 0) {
      const std::uint64_t last = iterations - 1;
      if (const auto difference = compare_pattern(bytes + slot, side.size_bytes, seed_of(received),
                                                  pe_, last % variants * variant_step_bytes))
        return wrong(*difference, slot, "copy " + std::to_string(last));
    }
    if (const auto difference =
            compare_zero(bytes + slot + copied_bytes, side.slot_size_bytes() - copied_bytes))
      return wrong(*difference, slot + copied_bytes, "what lies after the copies");
    return std::nullopt;
  }

  Point point_;
  int pe_ = 0;
  std::uint64_t seed_ = 0;
  PeGpu* gpu_ = nullptr;
  std::byte *on_gpu_ = nullptr, *on_host_ = nullptr;
  std::unique_ptr<HostCopies> copies_;
  std::optional<StreamTimer> graph_; ///< with --graph: the copies with numbers 0 to `variants` - 1
  std::optional<double> duration_ns_;
};

} // namespace

SHMEMCTL_CASE(host_to_device_by_gpu, HostCopyCase<CopyDirection::to_gpu>);
SHMEMCTL_CASE(device_to_host_by_gpu, HostCopyCase<CopyDirection::to_host>);

} // namespace shmemctl::bench
