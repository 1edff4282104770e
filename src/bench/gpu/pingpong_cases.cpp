// Ping-pongs of kernels, and messages that go around.
#include <bit>
#include <cstring>

#include "kernels/bench/pingpong.h"
#include "src/bench/cases/case_makers.h"
#include "src/bench/cases/pattern.h"
#include "src/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

/// Where such a case's memory has what: the source, a slot for what comes, and its flag. Where data
/// and flag are one store (8 bytes), the flag lies right behind the data.
struct MessageBuffers {
  explicit MessageBuffers(std::size_t size) : size_bytes(size) {}
  std::size_t size_bytes;
  static constexpr std::size_t flag_line_bytes = 64;

  bool side_by_side() const { return size_bytes == 8; }
  std::size_t slot_offset_bytes() const { return source_bytes(size_bytes); }
  std::size_t flag_offset_bytes() const {
    return slot_offset_bytes() + (side_by_side() ? 8 : (size_bytes + 63) / 64 * 64);
  }
  std::size_t total_bytes() const { return flag_offset_bytes() + flag_line_bytes; }
};

/// What `messages` messages leave in a slot and its flag.
std::optional<WrongByte> verify_message(const std::vector<std::byte>& seen,
                                        const MessageBuffers& places, int pe, int writer,
                                        std::uint64_t seed, std::uint64_t messages,
                                        std::uint64_t flag_value, bool has_payload) {
  const std::size_t slot = places.slot_offset_bytes(), flag = places.flag_offset_bytes();
  std::uint64_t found = 0;
  std::memcpy(&found, seen.data() + flag - slot, sizeof found);
  if (found != flag_value)
    return WrongByte{pe, flag, flag_value, found,
                     "flag of the messages from PE " + std::to_string(writer)};
  if (!has_payload || messages == 0)
    return std::nullopt;
  const std::uint64_t last = messages - 1;
  auto difference = compare_pattern(seen.data(), places.size_bytes, seed, writer,
                                    last % variants * variant_step_bytes);
  if (!difference) {
    difference = compare_zero(seen.data() + places.size_bytes, flag - slot - places.size_bytes);
    if (difference)
      difference->offset_bytes += places.size_bytes;
  }
  if (!difference)
    return std::nullopt;
  return WrongByte{pe, slot + difference->offset_bytes, difference->expected, difference->found,
                   "payload of iteration " + std::to_string(last) + " from PE " +
                       std::to_string(writer)};
}

template <PingPongKernel kernel>
class GpuPingPong final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int) const override { return places().total_bytes(); }
  bool measures() const override { return role_ == PingPongRole::asks; }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  int latency_divisor() const override { return 2; }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (role_ == PingPongRole::none)
      return std::nullopt;
    const MessageBuffers at = places();
    return verify_message(
        fetched(at.slot_offset_bytes(), at.flag_offset_bytes() + 8 - at.slot_offset_bytes()), at,
        pe(), peer_, seed(), iterations, iterations == 0 ? 0 : flag_value(iterations - 1),
        has_payload() && !payload_is_flag());
  }

protected:
  void set_up() override {
    Point one_way = point();
    one_way.direction = Direction::uni;
    const Routes mine = routes_of(one_way, pe(), n_pes());
    role_ = !mine.to.empty()     ? PingPongRole::asks
            : !mine.from.empty() ? PingPongRole::answers
                                 : PingPongRole::none;
    if (role_ != PingPongRole::none)
      peer_ = role_ == PingPongRole::asks ? mine.to[0] : mine.from[0];
    fill(memory(), source_bytes(point().size_bytes), pe());
  }
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    const MessageBuffers at = places();
    return launch_pingpong(how, {kernel, role_, peer_, payload_is_flag(), flag_mask(), first, count,
                                 memory(), at.slot_offset_bytes(), at.flag_offset_bytes(),
                                 point().size_bytes});
  }
  bool needs_mapping() const override { return kernel == PingPongKernel::store; }

  void enqueue(const on_stream::Job& job, std::uint64_t number, void* stream) override {
    if (role_ == PingPongRole::asks)
      enqueue_message(job, number, stream);
    if (role_ != PingPongRole::none)
      on_stream::wait_until(job, flag(), device::Compare::equal, flag_value(number), peer_, stream);
    if (role_ == PingPongRole::answers)
      enqueue_message(job, number, stream);
  }

private:
  std::uint64_t* flag() const {
    return reinterpret_cast<std::uint64_t*>(memory() + places().flag_offset_bytes());
  }
  /// What message `number` leaves. A stream's messages depend on their number modulo `variants`.
  std::uint64_t flag_value(std::uint64_t number) const {
    return (by_stream() ? number % variants + 1 : number + 1) & flag_mask();
  }
  void enqueue_message(const on_stream::Job& job, std::uint64_t number, void* stream) const {
    if (has_payload())
      on_stream::put_signal(job, memory() + places().slot_offset_bytes(),
                            memory() + number % variants * variant_step_bytes, point().size_bytes,
                            flag(), flag_value(number), device::SignalOp::set, peer_, stream);
    else
      on_stream::signal(job, flag(), flag_value(number), device::SignalOp::set, peer_, stream);
  }

  MessageBuffers places() const { return MessageBuffers(has_payload() ? point().size_bytes : 1); }
  static bool has_payload() {
    return kernel == PingPongKernel::put || kernel == PingPongKernel::put_signal;
  }
  /// Such a put is one store, so that its receiver may wait for the payload itself.
  bool payload_is_flag() const {
    return kernel == PingPongKernel::put && point().size_bytes <= 8 &&
           std::has_single_bit(point().size_bytes);
  }
  std::uint64_t flag_mask() const {
    static_assert(std::endian::native == std::endian::little);
    return payload_is_flag() && point().size_bytes < 8
               ? (std::uint64_t{1} << 8 * point().size_bytes) - 1
               : ~std::uint64_t{0};
  }

  PingPongRole role_ = PingPongRole::none;
  int peer_ = -1;
};

class GpuRing final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int) const override { return places().total_bytes(); }
  bool measures() const override { return pe() == 0; }
  /// Of a round, of which a hop is one by the number of PEs: PE 0 alone measures.
  std::optional<LeastTraffic> min_traffic(const std::vector<int>& gpu_of_pe) const override {
    const auto size = static_cast<double>(point().size_bytes);
    double between_gpus = 0;
    for (std::size_t at = 0; at < gpu_of_pe.size(); ++at)
      if (gpu_of_pe[at] != gpu_of_pe[(at + 1) % gpu_of_pe.size()])
        between_gpus += size;
    return LeastTraffic{n_pes() * size, n_pes() * size, between_gpus, true};
  }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  int latency_divisor() const override { return n_pes(); }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    const MessageBuffers at = places();
    return verify_message(
        fetched(at.slot_offset_bytes(), at.flag_offset_bytes() + 8 - at.slot_offset_bytes()), at,
        pe(), 0, seed(), iterations, iterations, true);
  }

protected:
  void set_up() override { fill(memory(), source_bytes(point().size_bytes), pe()); }
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    const MessageBuffers at = places();
    return launch_ring(how, {first, count, memory(), at.slot_offset_bytes(), at.flag_offset_bytes(),
                             point().size_bytes});
  }

private:
  MessageBuffers places() const { return MessageBuffers(point().size_bytes); }
};

} // namespace

const MakeCase by_gpu::put_pingpong = create<GpuPingPong<PingPongKernel::put>>;
const MakeCase by_gpu::put_signal_pingpong = create<GpuPingPong<PingPongKernel::put_signal>>;
const MakeCase by_gpu::signal_pingpong = create<GpuPingPong<PingPongKernel::signal>>;
const MakeCase by_gpu::store_pingpong = create<GpuPingPong<PingPongKernel::store>>;
const MakeCase by_gpu::wait_forward = create<GpuRing>;

} // namespace shmemctl::bench
