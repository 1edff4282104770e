#include "src/runtime/proxy/transport_sink.h"

#include <algorithm>
#include <bit>

#include "src/runtime/proxy/proxy.h"

namespace shmemctl {

static_assert(limits::max_contexts <= 64, "used_contexts_ has one bit for each");
static_assert(std::endian::native == std::endian::little, "values travel by their low bytes");

namespace {

[[gnu::cold]] Error bad_request(const ProxyRequest& request, std::size_t n_pes) {
  return {ExitCode::unavailable, "proxy", "perform a request",
          "it asks for operation " + std::to_string(static_cast<unsigned>(request.op)) + " of " +
              std::to_string(request.size_bytes) + " bytes to PE " + std::to_string(request.pe) +
              " of " + std::to_string(n_pes) + " on context " + std::to_string(request.context) +
              ", which is invalid",
          "check the arguments of the host or kernel call that made this request"};
}

bool word_size(std::uint64_t size_bytes) {
  return size_bytes <= 8 && std::has_single_bit(size_bytes);
}

void* local(const ProxyRequest& request) {
  return std::bit_cast<void*>(request.local);
}

} // namespace

TransportSink::TransportSink(std::vector<Transport*> transports_by_pe, ProxyChannel& channel,
                             unsigned ring)
    : transports_by_pe_(std::move(transports_by_pe)), channel_(channel), ring_(ring),
      serving_(channel.header(ring).serving) {
  for (Transport* transport : transports_by_pe_)
    if (transport &&
        std::find(transports_.begin(), transports_.end(), transport) == transports_.end())
      transports_.push_back(transport);
  const int each = static_cast<int>(channel.n_fifos());
  for (int context = proxy_context; context >= each - 1; context -= each)
    legal_contexts_ |= std::uint64_t{1} << context;
}

template <class Call>
bool TransportSink::guarded(Call&& call) noexcept {
  if (channel_.condition(ring_) != ProxyChannel::Condition::well) [[unlikely]]
    return false;
  try {
    call();
    return true;
  } catch (const Error& error) {
    channel_.fail(error);
  } catch (const std::exception& error) {
    channel_.fail(Error(ExitCode::unavailable, "proxy", "perform a request", error.what(),
                        "report this as a bug in shmemctl, with the command line"));
  }
  return false;
}

inline void TransportSink::serve(ProxyOp op, int pe) noexcept {
  HostAtomics::store_relaxed(&serving_, to_word({static_cast<std::uint32_t>(op), pe}));
}

ProxyOutcome TransportSink::execute(const ProxyRequest& request) noexcept {
  ProxyOutcome outcome;
  outcome.ok = guarded([&] { outcome.value = carry_out(request); });
  return outcome;
}

void TransportSink::begin(const ProxyRequest& request, unsigned number) noexcept {
  fetched_[number] = 0;
  guarded([&] {
    const int context = enter(request);
    void* const target =
        request.op == ProxyOp::get_value ? static_cast<void*>(&fetched_[number]) : local(request);
    Transport& transport = *transports_by_pe_[static_cast<std::size_t>(request.pe)];
    if (request.size_bytes > 0)
      (request.op == ProxyOp::get_value ? transport.for_host_memory() : transport)
          .get(context, target, {request.pe, request.region, request.offset_bytes},
               request.size_bytes, false);
  });
}

inline bool TransportSink::legal(const ProxyRequest& request) const {
  const auto pe = static_cast<std::size_t>(request.pe);
  if (request.context >= limits::max_contexts || (legal_contexts_ >> request.context & 1) == 0)
    return false;
  if (request.op == ProxyOp::fence)
    return request.pe == -1 || pe < transports_by_pe_.size();
  if (pe >= transports_by_pe_.size() || !transports_by_pe_[pe])
    return false;
  switch (request.op) {
  case ProxyOp::put:
  case ProxyOp::get:
  case ProxyOp::put_signal:
    return true;
  case ProxyOp::put_value:
  case ProxyOp::get_value:
    return word_size(request.size_bytes);
  case ProxyOp::atomic:
    return (request.size_bytes == 4 || request.size_bytes == 8) &&
           request.detail <= static_cast<std::uint8_t>(AtomicOp::bit_xor);
  default:
    return false;
  }
}

inline int TransportSink::enter(const ProxyRequest& request) {
  if (!legal(request)) [[unlikely]]
    throw bad_request(request, transports_by_pe_.size());
  serve(request.op, request.pe);
  const int context = static_cast<int>(request.context) - static_cast<int>(ring_);
  used_contexts_ |= std::uint64_t{1} << context;
  return context;
}

std::uint64_t TransportSink::carry_out(const ProxyRequest& request) {
  const int context = enter(request);
  if (request.op == ProxyOp::fence) {
    fence(request, context);
    return 0;
  }
  Transport& transport = *transports_by_pe_[static_cast<std::size_t>(request.pe)];
  const RemoteAddress address{request.pe, request.region, request.offset_bytes};
  const bool blocking = request.result != no_proxy_result;
  std::uint64_t value = 0;
  switch (request.op) {
  case ProxyOp::put:
    if (request.size_bytes > 0)
      transport.put(context, address, local(request), request.size_bytes, blocking);
    break;
  case ProxyOp::put_value: // blocking, because the value is in the request
    transport.for_host_memory().put(context, address, &request.operand, request.size_bytes, true);
    break;
  case ProxyOp::get:
    if (request.size_bytes > 0)
      transport.get(context, local(request), address, request.size_bytes, blocking);
    break;
  case ProxyOp::get_value:
    transport.for_host_memory().get(context, &value, address, request.size_bytes, true);
    break;
  case ProxyOp::atomic:
    value = atomic(transport, context, request);
    break;
  default:
    transport.put_signal(context, address, local(request), request.size_bytes,
                         {request.pe, signal_region(request.detail), request.compare},
                         request.operand,
                         signal_adds(request.detail) ? SignalOp::add : SignalOp::set, blocking);
  }
  return value;
}

std::uint64_t TransportSink::atomic(Transport& transport, int context,
                                    const ProxyRequest& request) {
  const RemoteAddress target{request.pe, request.region, request.offset_bytes};
  const AtomicRequest what{static_cast<AtomicOp>(request.detail),
                           static_cast<std::uint8_t>(request.size_bytes), request.operand,
                           request.compare};
  if (request.result != no_proxy_result)
    return transport.atomic(context, target, what);
  transport.post_atomic(context, target, what);
  return 0;
}

void TransportSink::fence(const ProxyRequest& request, int context) {
  if (request.pe >= 0 && transports_by_pe_[static_cast<std::size_t>(request.pe)]) {
    transports_by_pe_[static_cast<std::size_t>(request.pe)]->fence(context);
    return;
  }
  for (Transport* transport : transports_)
    transport->fence(context);
}

bool TransportSink::quiet() noexcept {
  serve(ProxyOp::quiet, -1);
  return guarded([&] {
    for (std::uint64_t left = used_contexts_; left != 0; left &= left - 1)
      for (Transport* transport : transports_)
        transport->quiet(std::countr_zero(left));
    used_contexts_ = 0;
  });
}

void TransportSink::progress() noexcept {
  if (transports_.empty())
    return;
  guarded([&] {
    for (Transport* transport : transports_)
      transport->progress();
  });
}

} // namespace shmemctl
