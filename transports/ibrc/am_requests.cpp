#include "transports/ibrc/am_requests.h"

#include <atomic>
#include <cstring>

#include "transports/ibrc/failure.h"

namespace shmemctl::ibrc {

namespace {

/// Wait::pause() returns true every 50 ms, so a wait probes the peer every second.
constexpr int polls_between_probes = 20;
constexpr const char* atomic_step = "an atomic operation";

} // namespace

Requests::Requests(JobView& job, Endpoints& queues, MessageService& service, std::size_t qp_set)
    : job_(job), queues_(queues), service_(service), targets_(static_cast<std::size_t>(job.n_pes)) {
  for (int pe = 0; pe < job.n_pes; ++pe) {
    Target& each = target(pe);
    each.layout = service.memory().layout(pe);
    if (each.layout.credits == 0)
      continue;
    each.block = service.memory().block(pe, qp_set);
    each.asked.resize(each.layout.credits);
  }
}

/// Reads a word of the block, which the target writes by RDMA.
std::uint64_t Requests::word(const Target& target, std::size_t at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(target.block + at))
      .load(std::memory_order_acquire);
}

bool Requests::poll_replies(Target& target, Endpoint& endpoint) {
  const std::uint64_t done = word(target, ReplyBlock::done_at);
  if (done == target.done)
    return false;
  // The target writes the refusal before the number of done requests, and their order is kept.
  if (const std::uint64_t refusal = word(target, ReplyBlock::refused_at);
      refusal != 0 && !endpoint.failure)
    refused(target, endpoint, refusal);
  target.done = done;
  return true;
}

void Requests::refused(Target& target, Endpoint& endpoint, std::uint64_t refusal) {
  const Asked& asked = target.asked[(refusal >> 8) % target.layout.credits];
  queues_.fail(endpoint, message_refused(job_, endpoint, asked.region, asked.offset_bytes,
                                         to_string(static_cast<Refusal>(refusal & 0xff))));
}

template <class Done>
void Requests::wait(Target& target, Endpoint& endpoint, const char* step, Done&& done) {
  Wait waiting(*job_.health, job_.timeout_s, {step, endpoint.pe}, wait_backoff);
  for (int checks = 1;;) {
    if (poll_replies(target, endpoint))
      waiting.progressed();
    if (endpoint.failure)
      throw Error(*endpoint.failure);
    if (done())
      return;
    // The peer may be waiting for a reply of this PE.
    service_.serve();
    queues_.poll();
    if (waiting.pause() && checks++ % polls_between_probes == 0)
      probe(endpoint);
  }
}

void Requests::probe(Endpoint& endpoint) {
  queues_.check_events();
  if (endpoint.in_flight() > 0)
    return;
  WorkChain chain;
  chain.add_flush();
  queues_.post(endpoint, chain, true);
}

void Requests::reserve(Endpoint& endpoint) {
  Target& to = target(endpoint.pe);
  const auto room = [&] { return to.sent - to.done < to.layout.credits; };
  if (endpoint.failure || !room())
    wait(to, endpoint, atomic_step, room);
}

void Requests::add(WorkChain& chain, const Endpoint& endpoint, const RemoteAddress& address,
                   const AtomicRequest& request, bool wants_value, WorkKind kind) {
  Target& to = target(endpoint.pe);
  to.asked[to.sent % to.layout.credits] = {address.region, address.offset_bytes};
  const AtomicMessage::Bytes bytes = encode(AtomicMessage{
      request, static_cast<std::uint32_t>(address.region), address.offset_bytes, wants_value});
  std::byte* const place = to.block + to.layout.request_at(to.sent);
  std::memcpy(place, bytes.data(), bytes.size());
  std::optional<std::uint32_t> local_key;
  if (endpoint.queue_pair.inline_bytes() < bytes.size())
    local_key = service_.memory().local_key(job_.nics[endpoint.port]->device_index);
  chain.add_send({kind, -1, static_cast<std::uint32_t>(bytes.size()), nullptr}, place, bytes.size(),
                 local_key);
}

std::uint64_t Requests::post(Endpoint& endpoint, WorkChain& chain, bool signalled) {
  queues_.post(endpoint, chain, signalled);
  Target& to = target(endpoint.pe);
  to.endpoint = &endpoint;
  if (!to.active) {
    to.active = true;
    active_.push_back(&to);
  }
  return to.sent++;
}

std::uint64_t Requests::await_value(Endpoint& endpoint, std::uint64_t number) {
  Target& from = target(endpoint.pe);
  wait(from, endpoint, atomic_step, [&] { return from.done > number; });
  return word(from, from.layout.value_at(number));
}

void Requests::fence() {
  for (Target* each : active_)
    each->fenced = each->sent;
}

void Requests::await_fenced(Endpoint& endpoint) {
  Target& to = target(endpoint.pe);
  if (to.done < to.fenced)
    wait(to, *to.endpoint, "fence", [&] { return to.done >= to.fenced; });
}

void Requests::quiet() {
  for (Target* each : active_)
    wait(*each, *each->endpoint, "quiet", [&] { return each->done >= each->sent; });
  for (Target* each : active_)
    each->active = false;
  active_.clear();
}

} // namespace shmemctl::ibrc
