#include "transports/ibrc/endpoints.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "transports/ibrc/failure.h"
#include "transports/verbs/device_share.h"
#include "transports/verbs/poll_completions.h"
#include "transports/verbs/status.h"

namespace shmemctl::ibrc {

namespace {

constexpr std::uint32_t max_cq_completions = 1 << 16;
constexpr int wanted_inline_bytes = 256;
constexpr std::size_t results_bytes = 2 * sizeof(std::uint64_t);
/// Transfers of this size and above are always signalled: a completion costs little in comparison,
/// and frees resources early.
constexpr std::size_t always_signalled_bytes = 4096;
/// A request is signalled if fewer than signalled_when_below are in flight, so that a quiet after a
/// single operation needs no flush. In a stream, one in max_unsignalled is signalled.
constexpr std::uint32_t signalled_when_below = 4, max_unsignalled = 8;

std::uint64_t name_of(const Endpoint& endpoint, std::uint32_t position) {
  return std::uint64_t{endpoint.number} << 32 | position;
}

} // namespace

Endpoints::Endpoints(JobView& job, const rc::LocalMemory& local, std::size_t endpoints)
    : job_(job), staging_(local, results_bytes), meters_(job.nics.size()), endpoints_(job.n_pes) {
  for (const UsedDevice& used : job.devices) {
    verbs::Device& device = *used.device;
    const auto most =
        static_cast<std::uint32_t>(std::clamp(device.attributes().max_cqe, 1, 1 << 30));
    const std::size_t useful =
        std::min<std::size_t>(endpoints * Endpoint::depth, max_cq_completions);
    Completions completions;
    completions.capacity = std::min(most, static_cast<std::uint32_t>(useful));
    const auto count = static_cast<int>(completions.capacity);
    completions.queue =
        verbs::own(device.functions().create_cq(device.context(), count, nullptr, nullptr, 0),
                   device.functions().destroy_cq);
    if (!completions.queue) {
      const verbs::Refusal refused = verbs::refusal(
          device.name(), errno, "raise the limit of locked memory: ulimit -l unlimited");
      throw Error(ExitCode::unavailable, "CQ", "create", refused.message, refused.fix,
                  {job.host, job.pe, device.name(), std::nullopt});
    }
    completions_.push_back(std::move(completions));
  }
}

Endpoint& Endpoints::add(int pe, std::size_t port, std::size_t peer_port) {
  const std::size_t device_index = job_.nics[port]->device_index;
  auto endpoint = std::make_unique<Endpoint>(
      rc::EndpointPath{pe, paths_to(pe), port, peer_port},
      verbs::QueuePair(*job_.devices[device_index].device, completions_[device_index].queue.get(),
                       Endpoint::depth, wanted_inline_bytes,
                       job_.devices[device_index].receive_target()));
  endpoint->number = static_cast<std::uint32_t>(endpoints_.size());
  return endpoints_.add(pe, std::move(endpoint));
}

template <class Done>
void Endpoints::wait(Done&& done, const char* step, int peer) {
  Wait waiting(*job_.health, job_.timeout_s, {step, peer, true}, wait_backoff);
  while (!done()) {
    if (poll())
      waiting.progressed();
    else if (waiting.pause())
      check_events();
  }
}

void Endpoints::check_events() {
  for (const UsedDevice& used : job_.devices)
    used.events->poll();
}

void Endpoints::post(Endpoint& endpoint, WorkChain& chain, bool signalled) {
  const std::size_t count = chain.size();
  if (count == 0)
    return;
  if (endpoint.failure)
    throw Error(*endpoint.failure);
  await_fenced(endpoint, chain);
  make_room(endpoint, count);
  if (endpoint.fence_due) {
    chain.request(0).send_flags |= IBV_SEND_FENCE;
    endpoint.fence_due = false;
  }
  Completions& completions = completions_of(endpoint);
  endpoints_.activate(endpoint);
  for (std::size_t i = 0; i < count; ++i) {
    ibv_send_wr& request = chain.request(i);
    const std::uint32_t position = endpoint.posted + static_cast<std::uint32_t>(i);
    request.wr_id = name_of(endpoint, position);
    request.next = i + 1 < count ? &chain.request(i + 1) : nullptr;
    endpoint.work(position) = chain.work(i);
    if (ThroughputMeter::concerns(chain.work(i).size_bytes))
      meters_[endpoint.port].begin();
    signalled = signalled || wants_signal(endpoint, completions, chain.work(i));
  }
  if (signalled)
    chain.request(count - 1).send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  const int error_number = ::ibv_post_send(endpoint.queue_pair.get(), &chain.request(0), &refused);
  if (error_number != 0) [[unlikely]]
    refuse(endpoint, chain, refused, error_number);
  endpoint.posted += static_cast<std::uint32_t>(count);
  endpoint.unsignalled = signalled ? 0 : endpoint.unsignalled + static_cast<std::uint32_t>(count);
  completions.in_flight += static_cast<std::uint32_t>(count);
  chain.clear();
}

bool Endpoints::wants_signal(const Endpoint& endpoint, const Completions& completions,
                             const Work& work) const {
  return endpoint.in_flight() < signalled_when_below ||
         endpoint.unsignalled + 1 >= max_unsignalled || work.staging_slot >= 0 ||
         work.size_bytes >= always_signalled_bytes ||
         completions.in_flight > completions.capacity / 2;
}

void Endpoints::make_room(Endpoint& endpoint, std::size_t requests) {
  const Completions& completions = completions_of(endpoint);
  const auto wanted = static_cast<std::uint32_t>(requests);
  const auto fits = [&] {
    return endpoint.in_flight() + wanted <= Endpoint::depth &&
           completions.in_flight + wanted <= completions.capacity;
  };
  if (endpoint.in_flight() >= Endpoint::depth / 2)
    poll();
  if (!fits())
    wait(fits, "transfer", endpoint.pe);
  if (endpoint.failure)
    throw Error(*endpoint.failure);
}

/// Waits for requests that were posted before a fence on other QPs to the same PE; also on this QP,
/// if the chain's WRITEs or READs might be executed before them.
void Endpoints::await_fenced(const Endpoint& endpoint, const WorkChain& chain) {
  const bool own = !endpoint.orders_writes && chain.has_transfer();
  const std::vector<Endpoint*>& paths = endpoints_.to(endpoint.pe);
  if (paths.size() == 1 && !own)
    return;
  for (Endpoint* other : paths) {
    const std::uint32_t position = other->fenced;
    if ((other == &endpoint && !own) || other->has_retired(position))
      continue;
    request_completion(*other);
    wait([&] { return other->dead || other->has_retired(position); }, "fence", other->pe);
  }
}

void Endpoints::request_completion(Endpoint& endpoint) {
  if (endpoint.unsignalled == 0 || endpoint.in_flight() == 0 || endpoint.failure)
    return;
  make_room(endpoint, 1);
  WorkChain chain;
  ibv_send_wr* refused = nullptr;
  if (const int error_number = post_flush(endpoint, chain, &refused); error_number != 0)
      [[unlikely]]
    refuse(endpoint, chain, refused, error_number);
}

int Endpoints::post_flush(Endpoint& endpoint, WorkChain& chain, ibv_send_wr** refused) {
  chain.add_flush();
  // Needs no fence, since its completion covers only requests that were posted earlier.
  ibv_send_wr& request = chain.request(0);
  request.wr_id = name_of(endpoint, endpoint.posted);
  request.send_flags = IBV_SEND_SIGNALED;
  endpoint.work(endpoint.posted) = Work{};
  const int error_number = ::ibv_post_send(endpoint.queue_pair.get(), &request, refused);
  if (error_number != 0)
    return error_number;
  ++endpoint.posted;
  endpoint.unsignalled = 0;
  ++completions_of(endpoint).in_flight;
  return 0;
}

void Endpoints::discard_from(WorkChain& chain, std::size_t first) {
  for (std::size_t i = first; i < chain.size(); ++i)
    if (const std::int16_t slot = chain.work(i).staging_slot; slot >= 0)
      staging_.release(slot);
  chain.clear();
}

void Endpoints::refuse(Endpoint& endpoint, WorkChain& chain, const ibv_send_wr* refused,
                       int error_number) {
  // Requests before the refused one in the chain have been posted.
  const auto before =
      static_cast<std::uint32_t>(refused ? (refused->wr_id & 0xffffffffu) - endpoint.posted : 0);
  const std::uint32_t accepted = before < chain.size() ? before : 0;
  endpoint.posted += accepted;
  endpoint.unsignalled += accepted;
  completions_of(endpoint).in_flight += accepted;
  endpoint.failure = post_failure(job_, endpoint, chain.work(accepted), error_number);
  for (std::size_t i = accepted; i < chain.size(); ++i)
    if (ThroughputMeter::concerns(chain.work(i).size_bytes))
      meters_[endpoint.port].end(*job_.nics[endpoint.port], 0);
  discard_from(chain, accepted);
  // Without a flush, the completion of unsignalled requests in flight would never be reported.
  WorkChain flush;
  ibv_send_wr* again = nullptr;
  if (endpoint.unsignalled > 0)
    endpoint.dead = post_flush(endpoint, flush, &again) != 0;
  if (!failure_)
    failure_ = endpoint.failure;
  throw Error(*endpoint.failure);
}

void Endpoints::fail(Endpoint& endpoint, const Error& failure) {
  // Requests in flight must complete, and no flush can be posted after the failure is set.
  request_completion(endpoint);
  endpoint.failure = failure;
  if (!failure_)
    failure_ = failure;
}

void Endpoints::drain(Endpoint& endpoint, const char* step) {
  request_completion(endpoint);
  const std::uint32_t position = endpoint.posted;
  wait([&] { return endpoint.dead || endpoint.has_retired(position); }, step, endpoint.pe);
  if (endpoint.failure)
    throw Error(*endpoint.failure);
}

std::int16_t Endpoints::take_slot() {
  if (staging_.empty())
    wait([&] { return !staging_.empty(); }, "transfer", -1);
  return staging_.take();
}

void Endpoints::fence() {
  for (Endpoint* endpoint : endpoints_.active()) {
    endpoint->fenced = endpoint->posted;
    endpoint->fence_due = true;
  }
}

void Endpoints::quiet() {
  for (Endpoint* endpoint : endpoints_.active())
    request_completion(*endpoint);
  for (Endpoint* endpoint : endpoints_.active())
    wait([&] { return endpoint->dead || endpoint->in_flight() == 0; }, "quiet", endpoint->pe);
  endpoints_.deactivate_all();
  if (failure_)
    throw Error(*failure_);
}

bool Endpoints::poll() {
  bool any = false;
  const Endpoint* failed = nullptr;
  for (Completions& completions : completions_) {
    if (completions.in_flight == 0)
      continue;
    std::array<ibv_wc, 16> batch;
    const int count =
        verbs::poll_completions(completions.queue.get(), batch, [this] { return job_.where(); });
    for (int i = 0; i < count; ++i)
      if (!take(completions, batch[static_cast<std::size_t>(i)]) && !failed)
        failed = &endpoints_[batch[static_cast<std::size_t>(i)].wr_id >> 32];
    any = any || count > 0;
  }
  if (failed) [[unlikely]]
    throw_failure(*failed);
  return any;
}

bool Endpoints::take(Completions& completions, const ibv_wc& completion) {
  Endpoint& endpoint = endpoints_[completion.wr_id >> 32];
  const auto position = static_cast<std::uint32_t>(completion.wr_id);
  if (completion.status == IBV_WC_SUCCESS) [[likely]] {
    completions.in_flight -= retire(endpoint, position + 1, true);
    return true;
  }
  if (endpoint.broken) {
    // Each request after the failed one is flushed, with a completion of its own.
    --completions.in_flight;
    return true;
  }
  check_events();
  endpoint.broken = true;
  if (!endpoint.failure) {
    endpoint.failure = completion_failure(job_, endpoint, endpoint.work(position), completion);
    endpoint.failure_status = completion.status;
  }
  if (!failure_)
    failure_ = endpoint.failure;
  completions.in_flight -= retire(endpoint, position + 1, false);
  retire(endpoint, endpoint.posted, false);
  return false;
}

void Endpoints::throw_failure(const Endpoint& endpoint) {
  // If the peer has ended, the job's first failure says more: await_cause() throws it.
  if (verbs::peer_may_be_gone(endpoint.failure_status))
    job_.health->await_cause(endpoint.pe);
  throw Error(*endpoint.failure);
}

std::uint32_t Endpoints::retire(Endpoint& endpoint, std::uint32_t end, bool success) {
  if (endpoint.has_retired(end))
    return 0;
  const std::uint32_t count = end - endpoint.retired;
  for (; endpoint.retired != end; ++endpoint.retired) {
    const Work& work = endpoint.work(endpoint.retired);
    if (ThroughputMeter::concerns(work.size_bytes))
      meters_[endpoint.port].end(*job_.nics[endpoint.port], success ? work.size_bytes : 0);
    if (work.staging_slot < 0)
      continue;
    if (work.copy_to && success)
      std::memcpy(work.copy_to, staging_.at(work.staging_slot), work.size_bytes);
    staging_.release(work.staging_slot);
  }
  if (endpoint.has_retired(endpoint.fenced))
    endpoint.fenced = end; // keeps `fenced` within half of the range of positions
  return count;
}

} // namespace shmemctl::ibrc
