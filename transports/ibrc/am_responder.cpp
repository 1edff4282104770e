#include "transports/ibrc/am_responder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/base/log.h"
#include "transports/verbs/poll_completions.h"

namespace shmemctl::ibrc {

namespace {

constexpr std::uint32_t completions_per_peer = 64, max_completions = 1 << 16;
constexpr int word_bytes = 8;
constexpr std::size_t describe_endpoint = Endpoint::depth;

} // namespace

AmResponder::AmResponder(JobView& job, const RegionTable& regions, std::uint32_t credits,
                         std::size_t n_peers)
    : job_(job), regions_(regions), layout_{credits},
      words_(n_peers * describe_endpoint * word_bytes, "memory for answers"),
      peers_(static_cast<std::size_t>(job.n_pes)) {
  for (const UsedDevice& used : job.devices) {
    verbs::Device& device = *used.device;
    const auto most = static_cast<std::uint32_t>(std::max(device.attributes().max_cqe, 1));
    Completions completions;
    completions.capacity = static_cast<std::uint32_t>(
        std::min<std::size_t>({most, n_peers * completions_per_peer, max_completions}));
    completions.queue = verbs::own(
        device.functions().create_cq(device.context(), static_cast<int>(completions.capacity),
                                     nullptr, nullptr, 0),
        device.functions().destroy_cq);
    if (!completions.queue)
      throw Error(ExitCode::unavailable, "CQ", "create", std::strerror(errno),
                  "raise the limit of locked memory: ulimit -l unlimited",
                  {job.host, job.pe, device.name(), std::nullopt});
    completions_.push_back(std::move(completions));
    handles_.push_back(verbs::register_memory(device, words_.data(), words_.size_bytes(),
                                              verbs::MemoryKind::host, {}, "memory for answers"));
  }
}

Endpoint& AmResponder::add_peer(int pe, std::size_t port, std::size_t peer_port) {
  const UsedDevice& used = job_.devices[job_.nics[port]->device_index];
  auto endpoint = std::make_unique<Endpoint>(
      rc::EndpointPath{pe, 0, port, peer_port},
      verbs::QueuePair(*used.device, completions_[job_.nics[port]->device_index].queue.get(),
                       Endpoint::depth, word_bytes, used.receive_target()));
  endpoint->number = static_cast<std::uint32_t>(endpoints_.size());
  endpoints_.push_back(endpoint.get());
  Peer& peer = peers_[static_cast<std::size_t>(pe)];
  peer.endpoint = std::move(endpoint);
  return *peer.endpoint;
}

bool AmResponder::set_place(int pe, const ReplyAddress& place) {
  Peer& peer = peers_[static_cast<std::size_t>(pe)];
  if (!peer.endpoint || place.credits != layout_.credits ||
      peer.endpoint->peer_port >= place.keys.size() || place.address % word_bytes != 0)
    return false;
  peer.address = place.address;
  peer.key = place.keys[peer.endpoint->peer_port];
  return true;
}

void AmResponder::add_source(std::size_t device, std::uint32_t queue_pair, int pe,
                             std::size_t qp_set) {
  const auto same = [&](const auto& each) { return each->pe == pe && each->qp_set == qp_set; };
  auto found = std::find_if(sources_.rbegin(), sources_.rend(), same);
  if (found == sources_.rend()) {
    auto source = std::make_unique<Source>();
    source->pe = pe;
    source->qp_set = qp_set;
    source->outcomes.resize(layout_.credits);
    sources_.push_back(std::move(source));
    found = sources_.rbegin();
  }
  by_queue_pair_[{device, queue_pair}] = found->get();
}

void AmResponder::on_message(std::size_t device, std::uint32_t queue_pair, const void* bytes,
                             std::size_t size_bytes) {
  const auto found = by_queue_pair_.find({device, queue_pair});
  if (found == by_queue_pair_.end())
    return; // other queue pairs receive no messages
  Source& source = *found->second;
  const bool room = source.carried_out - source.answered < layout_.credits;
  const Outcome outcome =
      room ? carry_out(regions_, bytes, size_bytes) : Outcome{0, Refusal::too_many, false};
  if (outcome.refusal != Refusal::none && source.refused == 0)
    source.refused = refused_word(source.carried_out, outcome.refusal);
  if (room)
    source.outcomes[source.carried_out++ % layout_.credits] = outcome;
  if (!source.listed) {
    source.listed = true;
    unanswered_.push_back(&source);
  }
}

void AmResponder::send() {
  std::erase_if(unanswered_, [&](Source* source) {
    source->listed = !answer(*source);
    return !source->listed;
  });
}

bool AmResponder::answer(Source& source) {
  const Peer& peer = peers_[static_cast<std::size_t>(source.pe)];
  Endpoint& endpoint = *peer.endpoint;
  if (!endpoint.orders_writes)
    return answer_in_steps(source, peer);
  while (source.answered < source.carried_out ||
         (source.refused != 0 && !source.refusal_reported)) {
    if (endpoint.failure) {
      source.answered = source.carried_out;
      return true;
    }
    WorkChain chain;
    const std::uint64_t end = fill(chain, source, peer);
    if (!post(endpoint, chain))
      return static_cast<bool>(endpoint.failure);
    source.refusal_reported = source.refused != 0;
    source.answered = end;
  }
  return true;
}

/// Writes the count that announces values only when the values are acknowledged, and the next
/// values only when that count is. Does not block: returns false while a WRITE is in flight.
bool AmResponder::answer_in_steps(Source& source, const Peer& peer) {
  Endpoint& endpoint = *peer.endpoint;
  while (source.answered < source.carried_out ||
         (source.refused != 0 && !source.refusal_reported)) {
    if (endpoint.failure) {
      source.answered = source.carried_out;
      return true;
    }
    if (endpoint.in_flight() > 0)
      return false;
    WorkChain chain;
    if (source.values_sent == source.answered) {
      const std::uint64_t end = fill_values(chain, source, peer);
      if (chain.size() > 0 && !post(endpoint, chain))
        return static_cast<bool>(endpoint.failure);
      source.values_sent = end;
      source.refusal_reported = source.refused != 0;
      if (end == source.answered || endpoint.in_flight() > 0)
        continue;
    }
    add_word(chain, endpoint, {block_of(source, peer) + ReplyBlock::done_at, peer.key},
             source.values_sent);
    if (!post(endpoint, chain))
      return static_cast<bool>(endpoint.failure);
    source.answered = source.values_sent;
  }
  return true;
}

/// Appends the values first, then the refusal, then the count. Since the QP keeps the order of
/// WRITEs, a requester that reads the count can also read the rest.
std::uint64_t AmResponder::fill(WorkChain& chain, const Source& source, const Peer& peer) const {
  const std::uint64_t end = fill_values(chain, source, peer);
  add_word(chain, *peer.endpoint, {block_of(source, peer) + ReplyBlock::done_at, peer.key}, end);
  return end;
}

std::uint64_t AmResponder::fill_values(WorkChain& chain, const Source& source,
                                       const Peer& peer) const {
  const std::uint64_t block = block_of(source, peer);
  std::uint64_t end = source.answered;
  for (; end < source.carried_out && chain.size() + 2 < WorkChain::capacity; ++end) {
    const Outcome& outcome = source.outcomes[end % layout_.credits];
    if (outcome.wants_value)
      add_word(chain, *peer.endpoint, {block + layout_.value_at(end), peer.key}, outcome.value);
  }
  if (source.refused != 0 && !source.refusal_reported)
    add_word(chain, *peer.endpoint, {block + ReplyBlock::refused_at, peer.key}, source.refused);
  return end;
}

void AmResponder::add_word(WorkChain& chain, const Endpoint& endpoint,
                           const rc::RdmaAddress& remote, std::uint64_t value) const {
  // There is one slot per request that the QP can hold, so no word in flight is modified.
  const std::uint32_t position = endpoint.posted + static_cast<std::uint32_t>(chain.size());
  std::byte* const word =
      words_.data() +
      (endpoint.number * describe_endpoint + position % describe_endpoint) * word_bytes;
  const bool is_inline = endpoint.queue_pair.inline_bytes() >= word_bytes;
  std::optional<std::uint32_t> local_key;
  if (!is_inline)
    local_key = handles_[job_.nics[endpoint.port]->device_index]->lkey;
  // Without room in the queue, the HCA may still read the slot, and post() will refuse the chain.
  if (endpoint.in_flight() + chain.size() < Endpoint::depth)
    std::memcpy(word, &value, sizeof value);
  chain.add_write({WorkKind::signal, -1, word_bytes, nullptr}, word, word_bytes, remote, local_key);
}

bool AmResponder::post(Endpoint& endpoint, WorkChain& chain) {
  Completions& completions = completions_of(endpoint);
  const auto count = static_cast<std::uint32_t>(chain.size());
  if (endpoint.in_flight() + count > Endpoint::depth ||
      completions.in_flight + count > completions.capacity)
    return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_send_wr& request = chain.request(i);
    request.wr_id = std::uint64_t{endpoint.number} << 32 | (endpoint.posted + i);
    request.next = i + 1 < count ? &chain.request(i + 1) : nullptr;
  }
  chain.request(count - 1).send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  const int error_number = ::ibv_post_send(endpoint.queue_pair.get(), &chain.request(0), &refused);
  if (error_number != 0) {
    give_up(endpoint, std::strerror(error_number));
    return false;
  }
  endpoint.posted += count;
  completions.in_flight += count;
  return true;
}

void AmResponder::poll() {
  for (Completions& completions : completions_) {
    std::array<ibv_wc, 16> batch;
    int count = 0;
    if (completions.in_flight > 0)
      count =
          verbs::poll_completions(completions.queue.get(), batch, [this] { return job_.where(); });
    for (int i = 0; i < count; ++i)
      take(completions, batch[static_cast<std::size_t>(i)]);
  }
}

void AmResponder::take(Completions& completions, const ibv_wc& completion) {
  Endpoint& endpoint = *endpoints_[completion.wr_id >> 32];
  const auto end = static_cast<std::uint32_t>(completion.wr_id) + 1;
  if (!endpoint.has_retired(end)) {
    completions.in_flight -= end - endpoint.retired;
    endpoint.retired = end;
  }
  if (completion.status != IBV_WC_SUCCESS && !endpoint.failure)
    give_up(endpoint,
            job_.device_of(*job_.nics[endpoint.port]).functions().wc_status_str(completion.status));
}

/// Sends the peer no more replies. A peer that has ended needs none; a peer that still runs will
/// time out and report that.
void AmResponder::give_up(Endpoint& endpoint, const std::string& why) {
  endpoint.failure.emplace(ExitCode::unavailable, job_.name_of(endpoint.pe), "send replies to it",
                           why, "check the first error of this job",
                           job_.where(*job_.nics[endpoint.port]));
  log(LogLevel::info, "ibrc", endpoint.failure->message());
}

} // namespace shmemctl::ibrc
