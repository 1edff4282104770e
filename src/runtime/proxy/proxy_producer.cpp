#include "src/runtime/proxy/proxy_producer.h"

#include <algorithm>
#include <array>

namespace shmemctl {

namespace {

Error stopped() {
  return {ExitCode::unavailable, "proxy", "accept a request", "it has been stopped",
          "communicate before the runtime ends"};
}

} // namespace

ProxyProducer::ProxyProducer(ProxyChannel& channel, int context)
    : channel_(channel), context_(static_cast<std::uint8_t>(context)) {
  for (unsigned ring = 0; ring < channel.n_fifos(); ++ring) {
    const ProxyFifoView& view = channel.view(ring);
    rings_.push_back(
        {ProxyChannel::Producer(view, HostAtomics::load_acquire(view.completed)), std::nullopt});
  }
}

ProxyProducer::~ProxyProducer() {
  for (unsigned ring = 0; ring < rings_.size(); ++ring)
    if (rings_[ring].result)
      channel_.memory(ring).release_result(*rings_[ring].result);
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

inline std::uint64_t ProxyProducer::reserve(unsigned ring, std::size_t count) {
  if (channel_.condition(ring) != ProxyChannel::Condition::well) [[unlikely]]
    channel_.throw_failure();
  std::uint64_t first = 0;
  if (!rings_[ring].ring.reserve(count, first)) [[unlikely]]
    throw stopped();
  return first;
}

void ProxyProducer::wait_for_room(unsigned ring, std::uint64_t sequence) {
  try {
    ProxyWait wait(channel_, ring, "posting to the proxy's full ring");
    rings_[ring].ring.wait_for_room(sequence, wait);
  } catch (const Error& error) {
    // The slot stays empty, so the proxy thread cannot pass it.
    channel_.fail(error, ProxyChannel::Condition::stuck, ring);
    throw;
  }
}

inline void ProxyProducer::fill(unsigned ring, std::uint64_t sequence,
                                const ProxyRequest& request) {
  if (!rings_[ring].ring.has_room(sequence)) [[unlikely]]
    wait_for_room(ring, sequence);
  rings_[ring].ring.write(sequence, request);
}

void ProxyProducer::post_to(unsigned ring, std::span<const ProxyRequest> requests) {
  const std::size_t capacity = channel_.options().capacity;
  while (!requests.empty()) {
    const std::size_t count = std::min(requests.size(), capacity);
    const std::uint64_t first = reserve(ring, count);
    for (std::size_t i = 0; i < count; ++i)
      fill(ring, ProxyTraits::Sequence::plus(first, i), requests[i]);
    requests = requests.subspan(count);
  }
}

void ProxyProducer::post_to_all(const ProxyRequest& request) {
  for (unsigned ring = 0; ring < rings_.size(); ++ring)
    if (!rings_[ring].ring.is_quiet()) // otherwise no request is outstanding
      post_to(ring, std::span(&request, 1));
}

void ProxyProducer::post(std::span<const ProxyRequest> requests) {
  if (rings_.size() == 1)
    return post_to(0, requests);
  const auto for_all = [](const ProxyRequest& request) {
    return request.pe == -1 && (request.op == ProxyOp::fence || request.op == ProxyOp::quiet);
  };
  while (!requests.empty()) {
    if (for_all(requests.front())) {
      post_to_all(requests.front());
      requests = requests.subspan(1);
      continue;
    }
    const unsigned ring = channel_.fifo_of(requests.front().pe);
    std::size_t count = 1;
    while (count < requests.size() && !for_all(requests[count]) &&
           channel_.fifo_of(requests[count].pe) == ring)
      ++count;
    post_to(ring, requests.first(count));
    requests = requests.subspan(count);
  }
}

ProxyMemory::Result ProxyProducer::begin(unsigned ring, ProxyRequest request) {
  Ring& side = rings_[ring];
  if (!side.result)
    side.result = channel_.memory(ring).claim_result();
  request.result = side.result->number;
  request.result_tag = side.ring.next_tag(side.result->last_tag);
  const std::uint64_t sequence = reserve(ring, 1);
  // The slot is not reused until the result has arrived, so that a late result is not taken for
  // that of another request.
  side.result.reset();
  fill(ring, sequence, request);
  return {request.result, request.result_tag};
}

ProxyChannel::Producer::Answer ProxyProducer::end(unsigned ring, const ProxyMemory::Result& asked,
                                                  ProxyWait& wait) {
  const auto answer = rings_[ring].ring.wait_for_result(asked.number, asked.last_tag, wait);
  rings_[ring].result = asked;
  return answer;
}

std::uint64_t ProxyProducer::ask(const ProxyRequest& request, const char* step) {
  const unsigned ring = channel_.fifo_of(request.pe);
  const ProxyMemory::Result asked = begin(ring, request);
  ProxyWait wait(channel_, ring, step);
  const auto answer = end(ring, asked, wait);
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
  if (pe == -1)
    post_to_all(request);
  else
    post(request);
}

void ProxyProducer::quiet() {
  ProxyRequest request;
  request.op = ProxyOp::quiet;
  request.context = context_;
  std::array<ProxyMemory::Result, max_proxy_threads> asked;
  std::optional<Error> refused;
  ProxyWait wait(channel_, 0, "quiet");
  const auto post_one = [&](unsigned ring) {
    if (refused)
      return false;
    if (rings_[ring].ring.is_quiet()) {
      if (channel_.condition(ring) != ProxyChannel::Condition::well) [[unlikely]]
        channel_.throw_failure();
      return false;
    }
    try {
      asked[ring] = begin(ring, request);
    } catch (const Error& error) {
      if (ring == 0)
        throw;
      refused = error; // the other rings' results still arrive
      return false;
    }
    return true;
  };
  const auto wait_for_one = [&](unsigned ring) {
    wait.go_on_with(ring);
    return end(ring, asked[ring], wait).ok;
  };
  const bool ok = quiet_fifos(channel_.n_fifos(), post_one, wait_for_one);
  if (refused)
    throw *refused;
  if (!ok)
    channel_.throw_failure();
}

} // namespace shmemctl
