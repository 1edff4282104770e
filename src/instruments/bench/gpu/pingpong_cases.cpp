// Ping-pongs of kernels.
#include <bit>

#include "kernels/bench/pingpong.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/gpu/gpu_case.h"
#include "src/instruments/bench/gpu/message_buffers.h"

namespace shmemctl::bench {

namespace {

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
    const Routes own_routes = routes_of(one_way, pe(), n_pes());
    role_ = !own_routes.to.empty()     ? PingPongRole::asks
            : !own_routes.from.empty() ? PingPongRole::answers
                                       : PingPongRole::none;
    if (role_ != PingPongRole::none)
      peer_ = role_ == PingPongRole::asks ? own_routes.to[0] : own_routes.from[0];
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
  /// The flag after message `number`. Messages of streams depend only on their number modulo
  /// `variants`.
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
  /// A put of this size is one store, so that its receiver can wait for the payload itself.
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

} // namespace

SHMEMCTL_CASE(put_pingpong_by_gpu, GpuPingPong<PingPongKernel::put>);
SHMEMCTL_CASE(put_signal_pingpong_by_gpu, GpuPingPong<PingPongKernel::put_signal>);
SHMEMCTL_CASE(signal_pingpong_by_gpu, GpuPingPong<PingPongKernel::signal>);
SHMEMCTL_CASE(store_pingpong_by_gpu, GpuPingPong<PingPongKernel::store>);

} // namespace shmemctl::bench
