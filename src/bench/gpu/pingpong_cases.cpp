// Ping-pongs of kernels, and messages that go around.
#include <bit>
#include <cstring>

#include "kernels/bench/pingpong.h"
#include "src/bench/case_table.h"
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
  std::optional<LeastTraffic> least_traffic(const std::vector<int>& gpu_of_pe) const override {
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

CaseInfo info_of(std::string name, std::string measures, const std::string& how) {
  CaseInfo info;
  info.name = std::move(name);
  info.group = "point to point";
  info.metric = Metric::latency;
  info.measures = std::move(measures);
  info.how = how;
  info.traffics = {Traffic::pair, Traffic::pairs};
  info.initiator = Initiator::gpu;
  info.launch = one_caller(CallScope::thread);
  return info;
}

} // namespace

std::vector<BenchCase> stream_pingpong_cases() {
  const std::string each =
      " and the stream waits for the answer. Half of a round trip is reported.";
  CaseInfo signal = info_of("signal-pingpong", "half round trip of a signal of a stream",
                            "Each PE's stream sets the other's signal word," + each +
                                " Verified: the last signal.");
  signal.sized = false;
  return {stream_case(bench_case_of<GpuPingPong<PingPongKernel::put_signal>>(
              info_of("put-signal-pingpong", "half round trip of a put with signal of a stream",
                      "Each PE's stream puts with a signal to the other," + each +
                          " Verified: the last payload and signal."))),
          stream_case(bench_case_of<GpuPingPong<PingPongKernel::signal>>(signal))};
}

std::vector<BenchCase> gpu_pingpong_cases() {
  const std::string half = " Half of a round trip is reported.";
  const std::string last = half + " Verified: the last payload and the number of messages.";
  CaseInfo signal = info_of("signal-pingpong", "half round trip of a signal",
                            "Each PE's kernel sets the other's signal word and waits for its own." +
                                half + " Verified: the number of messages.");
  CaseInfo store =
      info_of("store-pingpong", "half round trip of a bare store",
              "One store to the other's mapped memory and a loop of acquiring loads, without the "
              "API: what the ping-pongs are compared with." +
                  half + " Verified: the number of messages.");
  store.group = "reference";
  for (CaseInfo* info : {&signal, &store}) {
    info->sized = false;
    info->launch.scopes = {CallScope::thread};
  }
  CaseInfo ring = info_of(
      "wait-forward", "time of a hop of a message that goes around all PEs",
      "PE 0 puts with a signal to PE 1; each PE waits for the signal and puts on what has come. "
      "The time of a round by the number of PEs. Verified: the last payload and the number of "
      "messages on every PE.");
  ring.traffics = {Traffic::collective};
  return {bench_case_of<GpuPingPong<PingPongKernel::put>>(
              info_of("put-pingpong", "half round trip of a put",
                      "The receiver waits for the payload itself if it is one word of 1, 2, 4 or 8 "
                      "bytes; otherwise for a signal that is set behind a fence." +
                          last)),
          bench_case_of<GpuPingPong<PingPongKernel::put_signal>>(
              info_of("put-signal-pingpong", "half round trip of a put with signal",
                      "The receiver waits for the signal, which with a payload of 8 bytes lies "
                      "right behind it, so that both are one store." +
                          last)),
          bench_case_of<GpuPingPong<PingPongKernel::signal>>(signal),
          bench_case_of<GpuPingPong<PingPongKernel::store>>(store), bench_case_of<GpuRing>(ring)};
}

} // namespace shmemctl::bench
