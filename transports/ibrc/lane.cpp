#include "transports/ibrc/lane.h"

#include <algorithm>

namespace shmemctl::ibrc {

namespace {} // namespace

const SegmentKey& Lane::segment_of(const RemoteAddress& address) const {
  const SegmentKey* segment = remote_.find(address.pe, address.region, address.offset_bytes);
  if (!segment)
    throw Error(ExitCode::unavailable,
                "offset " + std::to_string(address.offset_bytes) + " of region " +
                    std::to_string(address.region),
                "", "not registered by " + job_.name_of(address.pe),
                "use symmetric memory of that PE", {job_.host, job_.pe, {}, std::nullopt});
  return *segment;
}

Endpoint& Lane::usual_endpoint(int pe) {
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): asked of PEs that are connected only
  return queues_.endpoint(pe, number_ % queues_.rails_to(pe));
}

Endpoint& Lane::atomic_endpoint(int pe) {
  return requests_ ? usual_endpoint(pe) : queues_.endpoint(pe, 0);
}

Lane::RemoteWord Lane::remote_word(const Endpoint& endpoint, const RemoteAddress& address) const {
  const SegmentKey& segment = segment_of(address);
  return {segment.address + (address.offset_bytes - segment.offset_bytes),
          segment.keys[endpoint.peer_nic]};
}

void Lane::put(const RemoteAddress& target, const void* source, std::size_t size_bytes,
               bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  keep_behind_requests(target.pe);
  WorkChain chain;
  Endpoint& endpoint = usual_endpoint(target.pe);
  if (put_inline(endpoint, target, source, size_bytes, chain))
    return queues_.post(endpoint, chain, false);
  const Transfer whole = put_of(target, source, size_bytes, blocking);
  const bool striped = transfer(whole);
  if (whole.await)
    await(striped, target.pe, "put");
}

Lane::Transfer Lane::put_of(const RemoteAddress& target, const void* source, std::size_t size_bytes,
                            bool blocking) const {
  return Transfer::put(target, source, size_bytes, blocking, local_.is_device_memory(source));
}

void Lane::get(void* target, const RemoteAddress& source, std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  const std::lock_guard lock(mutex_);
  keep_behind_requests(source.pe);
  const Transfer whole = Transfer::get(target, source, size_bytes, blocking);
  const bool striped = transfer(whole);
  if (blocking)
    await(striped, source.pe, "get");
}

bool Lane::put_inline(Endpoint& endpoint, const RemoteAddress& target, const void* source,
                      std::size_t size_bytes, WorkChain& chain) {
  // A processor copies what goes inline.
  if (size_bytes > endpoint.queue_pair.inline_bytes() || local_.is_device_memory(source))
    return false;
  const SegmentKey& segment = segment_of(target);
  const std::uint64_t at = target.offset_bytes - segment.offset_bytes;
  if (size_bytes > segment.size_bytes - at)
    return false;
  Nic& nic = *job_.nics[endpoint.nic];
  chain.add_write({WorkKind::put, -1, static_cast<std::uint32_t>(size_bytes), nullptr}, source,
                  size_bytes, segment.address + at, segment.keys[endpoint.peer_nic], std::nullopt);
  nic.put_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// Into memory of a GPU one NIC writes: that another one's part has been acknowledged does not say
/// that it has passed all PCIe switches on its way to that GPU.
bool Lane::is_striped(const Transfer& whole) const {
  if (whole.direction == Direction::put && local_.is_device_region(whole.remote.region))
    return false;
  return whole.size_bytes >= striped_bytes && queues_.rails_to(whole.remote.pe) > 1;
}

bool Lane::transfer(const Transfer& whole) {
  WorkChain chain;
  if (!is_striped(whole)) {
    Endpoint& endpoint = usual_endpoint(whole.remote.pe);
    transfer_over(endpoint, whole, chain);
    queues_.post(endpoint, chain, whole.await);
    return false;
  }
  const int pe = whole.remote.pe;
  for_each_stripe(whole, queues_.rails_to(pe), [&](std::size_t rail, const Transfer& part) {
    Endpoint& endpoint = queues_.endpoint(pe, rail);
    transfer_over(endpoint, part, chain);
    queues_.post(endpoint, chain, whole.await);
  });
  return true;
}

/// Leaves the last requests in the chain, unposted.
void Lane::transfer_over(Endpoint& endpoint, const Transfer& part, WorkChain& chain) {
  Nic& nic = *job_.nics[endpoint.nic];
  auto& bytes = part.direction == Direction::put ? nic.put_bytes : nic.get_bytes;
  bytes.fetch_add(part.size_bytes, std::memory_order_relaxed);
  nic.operations.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t done = 0; done < part.size_bytes;) {
    Transfer piece = part.part(done, part.size_bytes - done);
    const SegmentKey& segment = segment_of(piece.remote);
    const LocalSegment* local = part.stage ? nullptr : local_.find(piece.local);
    const std::size_t here =
        local ? local->end - reinterpret_cast<std::uintptr_t>(piece.local) : Staging::slot_bytes;
    const std::uint64_t there =
        segment.offset_bytes + segment.size_bytes - piece.remote.offset_bytes;
    piece.size_bytes = std::min({piece.size_bytes, here, static_cast<std::size_t>(there),
                                 static_cast<std::size_t>(endpoint.max_message_bytes)});
    std::int16_t slot = -1;
    if (!local) {
      // Whoever waits for a slot must not hold others back.
      if (queues_.staging().empty())
        queues_.post(endpoint, chain, false);
      slot = queues_.take_slot();
    }
    add_piece(endpoint, chain, piece, segment, local, slot);
    done += piece.size_bytes;
    if (chain.full() && done < part.size_bytes)
      queues_.post(endpoint, chain, false);
  }
}

void Lane::add_piece(Endpoint& endpoint, WorkChain& chain, const Transfer& piece,
                     const SegmentKey& segment, const LocalSegment* local, std::int16_t slot) {
  const std::size_t device = job_.nics[endpoint.nic]->device_index;
  const std::uint32_t local_key =
      local ? local->local_key(device) : queues_.staging().local_key(device);
  std::byte* const place = local ? piece.local : queues_.staging().at(slot);
  const std::uint64_t address =
      segment.address + (piece.remote.offset_bytes - segment.offset_bytes);
  const std::uint32_t key = segment.keys[endpoint.peer_nic];
  Work work{WorkKind::put, slot, static_cast<std::uint32_t>(piece.size_bytes), nullptr};
  if (piece.direction == Direction::put) {
    if (!local)
      std::memcpy(place, piece.local, piece.size_bytes);
    chain.add_write(work, place, piece.size_bytes, address, key, local_key);
  } else {
    work.kind = WorkKind::get;
    work.copy_to = local ? nullptr : piece.local;
    chain.add_read(work, place, piece.size_bytes, address, key, local_key);
  }
}

void Lane::await(bool striped, int pe, const char* step) {
  if (!striped)
    return queues_.drain(usual_endpoint(pe), step);
  for (std::size_t rail = 0; rail < queues_.rails_to(pe); ++rail)
    queues_.drain(queues_.endpoint(pe, rail), step);
}

void Lane::fence() {
  const std::lock_guard lock(mutex_);
  queues_.fence();
  if (requests_)
    requests_->fence();
}

void Lane::quiet() {
  const std::lock_guard lock(mutex_);
  if (requests_)
    requests_->quiet();
  queues_.quiet();
}

void Lane::progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock())
    queues_.poll();
}

} // namespace shmemctl::ibrc
