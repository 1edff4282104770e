#include "src/runtime/proxy/proxy_producer.h"

#include <algorithm>

namespace shmemctl {

namespace {

Error stopped() {
  return {ExitCode::unavailable, "proxy", "take a request", "it has been stopped",
          "communicate before the runtime ends"};
}

} // namespace

ProxyProducer::ProxyProducer(ProxyChannel& channel, int context)
    : channel_(channel), ring_(channel.view(), HostAtomics::load_acquire(channel.view().completed)),
      context_(static_cast<std::uint8_t>(context)) {}

ProxyProducer::~ProxyProducer() {
  if (result_)
    channel_.release_result(*result_);
}

ProxyRequest ProxyProducer::make(ProxyOp op, const RemoteAddress& target) const {
  ProxyRequest request;
  request.op = op;
  request.context = context_;
  request.region = static_cast<std::uint8_t>(target.region);
  request.pe = target.pe;
  request.offset_bytes = target.offset_bytes;
  return request;
}

inline std::uint64_t ProxyProducer::reserve(std::size_t count) {
  if (channel_.condition() != ProxyChannel::Condition::well) [[unlikely]]
    channel_.throw_failure();
  std::uint64_t first = 0;
  if (!ring_.reserve(count, first)) [[unlikely]]
    throw stopped();
  return first;
}

void ProxyProducer::wait_for_room(std::uint64_t sequence) {
  try {
    ProxyWait wait(channel_, "room in the proxy's ring");
    ring_.wait_for_room(sequence, wait);
  } catch (const Error& error) {
    // The slot stays empty, so the proxy thread cannot go past it.
    channel_.fail(error, ProxyChannel::Condition::stuck);
    throw;
  }
}

inline void ProxyProducer::fill(std::uint64_t sequence, const ProxyRequest& request) {
  if (!ring_.has_room(sequence)) [[unlikely]]
    wait_for_room(sequence);
  ring_.write(sequence, request);
}

void ProxyProducer::post(std::span<const ProxyRequest> requests) {
  const std::size_t capacity = channel_.options().capacity;
  while (!requests.empty()) {
    const std::size_t count = std::min(requests.size(), capacity);
    const std::uint64_t first = reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      fill(ProxyTraits::Sequence::plus(first, i), requests[i]);
    requests = requests.subspan(count);
  }
}

std::uint64_t ProxyProducer::ask(ProxyRequest request, const char* step) {
  if (!result_)
    result_ = channel_.claim_result();
  const ProxyChannel::Result result = *result_;
  request.result = result.number;
  request.result_tag = ring_.next_tag(result.last_tag);
  const std::uint64_t sequence = reserve(1);
  // Until the answer is there the result is nobody's: a late answer must not meet another request.
  result_.reset();
  fill(sequence, request);
  ProxyWait wait(channel_, step);
  const auto answer = ring_.wait_for_result(request.result, request.result_tag, wait);
  result_ = {request.result, request.result_tag};
  if (!answer.ok)
    channel_.throw_failure();
  return answer.value;
}

void ProxyProducer::put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                        bool blocking) {
  ProxyRequest request = make(ProxyOp::put, target);
  request.local = reinterpret_cast<std::uint64_t>(source);
  request.size_bytes = size_bytes;
  if (blocking)
    ask(request, "put");
  else
    post(request);
}

void ProxyProducer::get(void* target, const RemoteAddress& source, std::size_t size_bytes,
                        bool blocking) {
  ProxyRequest request = make(ProxyOp::get, source);
  request.local = reinterpret_cast<std::uint64_t>(target);
  request.size_bytes = size_bytes;
  if (blocking)
    ask(request, "get");
  else
    post(request);
}

void ProxyProducer::put_value(const RemoteAddress& target, std::uint64_t value,
                              unsigned size_bytes) {
  ProxyRequest request = make(ProxyOp::put_value, target);
  request.operand = value;
  request.size_bytes = size_bytes;
  post(request);
}

std::uint64_t ProxyProducer::get_value(const RemoteAddress& source, unsigned size_bytes) {
  ProxyRequest request = make(ProxyOp::get_value, source);
  request.size_bytes = size_bytes;
  return ask(request, "get");
}

namespace {

void fill_in(ProxyRequest& request, const AtomicRequest& atomic) {
  request.detail = static_cast<std::uint8_t>(atomic.op);
  request.size_bytes = atomic.size_bytes;
  request.operand = atomic.operand;
  request.compare = atomic.compare;
}

} // namespace

std::uint64_t ProxyProducer::atomic(const RemoteAddress& target, const AtomicRequest& atomic) {
  ProxyRequest request = make(ProxyOp::atomic, target);
  fill_in(request, atomic);
  return ask(request, "atomic operation");
}

void ProxyProducer::post_atomic(const RemoteAddress& target, const AtomicRequest& atomic) {
  ProxyRequest request = make(ProxyOp::atomic, target);
  fill_in(request, atomic);
  post(request);
}

void ProxyProducer::put_signal(const RemoteAddress& target, const void* source,
                               std::size_t size_bytes, const RemoteAddress& signal,
                               std::uint64_t signal_value, SignalOp op, bool blocking) {
  ProxyRequest request = make(ProxyOp::put_signal, target);
  request.detail = signal_detail(static_cast<std::uint8_t>(signal.region), op == SignalOp::add);
  request.local = reinterpret_cast<std::uint64_t>(source);
  request.size_bytes = size_bytes;
  request.operand = signal_value;
  request.compare = signal.offset_bytes;
  if (blocking)
    ask(request, "put with signal");
  else
    post(request);
}

void ProxyProducer::fence(int pe) {
  ProxyRequest request;
  request.op = ProxyOp::fence;
  request.context = context_;
  request.pe = pe;
  post(request);
}

void ProxyProducer::quiet() {
  ProxyRequest request;
  request.op = ProxyOp::quiet;
  request.context = context_;
  ask(request, "quiet");
}

} // namespace shmemctl
