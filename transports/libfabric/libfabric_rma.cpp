// Puts and gets: split where registrations, messages or buffers end; staged where local memory is
// not registered and has to be.
#include <algorithm>
#include <cstring>

#include "transports/libfabric/libfabric_transport.h"
#include "transports/shm/words.h"

namespace shmemctl::fabric {

namespace {

/// From here on a transfer is shared out among endpoints, if there are several.
constexpr std::size_t stripe_bytes = std::size_t{256} << 10;

bool is_word(std::uint64_t offset_bytes, std::size_t size_bytes) {
  return (size_bytes == 2 || size_bytes == 4 || size_bytes == 8) && offset_bytes % size_bytes == 0;
}

RemoteAddress behind(RemoteAddress address, std::size_t bytes) {
  address.offset_bytes += bytes;
  return address;
}

} // namespace

LibfabricTransport::Way LibfabricTransport::way_by(std::size_t rail_index, int context,
                                                   const char* step) {
  return {rail_index, *rails_[rail_index], state_of(context), step};
}

LibfabricTransport::Way LibfabricTransport::way(int context, const char* step) {
  return way_by(static_cast<std::size_t>(context) % rails_.size(), context, step);
}

std::byte* LibfabricTransport::own_memory(const RemoteAddress& address) const {
  if (address.pe != setup_.pe || memory_.devices().has(address.region))
    return nullptr;
  const RegionView& region = memory_.region(static_cast<std::size_t>(address.region));
  return region.base ? region.base + address.offset_bytes : nullptr;
}

template <class Part>
void LibfabricTransport::in_stripes(int context, const char* step, std::size_t size_bytes,
                                    bool of_gpu, Part&& part) {
  const std::size_t count = rails_.size();
  // The order of two NICs' writes in a GPU is nobody's promise.
  if (count == 1 || size_bytes < 2 * stripe_bytes || of_gpu)
    return part(way(context, step), std::size_t{0}, size_bytes);
  const std::size_t each = (size_bytes / count + 4095) / 4096 * 4096;
  for (std::size_t i = 0, at = 0; at < size_bytes; ++i, at += each)
    part(way_by(i % count, context, step), at, std::min(each, size_bytes - at));
}

void LibfabricTransport::put(int context, const RemoteAddress& target, const void* source,
                             std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  if (std::byte* const own = own_memory(target))
    return copy_to_shared(own, source, size_bytes);
  check_peer(target.pe);
  const bool of_gpu = memory_.devices().has(target.region) || memory_.devices().hold(source);
  if (!of_gpu && provider_.profile.words_may_tear && is_word(target.offset_bytes, size_bytes)) {
    std::uint64_t value = 0;
    std::memcpy(&value, source, size_bytes);
    return put_word(way(context, "put"), target,
                    {AtomicOp::set, static_cast<std::uint8_t>(size_bytes), value});
  }
  const auto* const bytes = static_cast<const std::byte*>(source);
  in_stripes(context, "put", size_bytes, of_gpu,
             [&](const Way& way, std::size_t at, std::size_t part_bytes) {
               put_on(way, behind(target, at), bytes + at, part_bytes, blocking);
             });
}

/// By message: the target's poller stores it at once, and answers later (Rail::received).
void LibfabricTransport::put_word(const Way& way, const RemoteAddress& target,
                                  const AtomicRequest& word) {
  Operation& operation = take(way, OperationKind::request, target.pe);
  operation.is_atomic = true;
  post_staged(way, operation, target, word, MessageKind::atomic);
}

void LibfabricTransport::put_on(const Way& way, const RemoteAddress& target,
                                const std::byte* source, std::size_t size_bytes, bool blocking,
                                const std::uint64_t* immediate, std::uint32_t* writes) {
  for (std::size_t at = 0; at < size_bytes;) {
    at += put_part(way, behind(target, at), source + at, size_bytes - at, blocking, immediate);
    if (writes)
      ++*writes;
  }
}

/// Writes as much as can go at once, and returns how much that was.
std::size_t LibfabricTransport::put_part(const Way& way, const RemoteAddress& target,
                                         const std::byte* source, std::size_t size_bytes,
                                         bool blocking, const std::uint64_t* immediate) {
  const Promises& promises = way.rail.endpoint().promises();
  RemotePart remote =
      memory_.remote(way.rail_index, target, std::min(size_bytes, promises.max_message_bytes));
  void* descriptor = nullptr;
  std::uint64_t flags = 0;
  const bool of_gpu = memory_.devices().hold(source); // no processor copies it
  bool staged = blocking && !of_gpu && remote.size_bytes <= way.rail.pool().bounce_bytes();
  if (remote.size_bytes <= promises.inject_bytes && !of_gpu) {
    flags = FI_INJECT;
    staged = false;
  } else if ((promises.local_registration || of_gpu) && !staged) {
    const LocalPart local = memory_.local(way.rail_index, source, remote.size_bytes);
    remote.size_bytes = local.size_bytes;
    descriptor = local.descriptor;
    staged = !local.registered;
  }
  Operation& operation = take(way, OperationKind::write, target.pe);
  if (staged) {
    std::byte* buffer = operation.payload;
    if (remote.size_bytes > Operation::payload_bytes) {
      try {
        buffer = operation.bounce = take_bounce(way, target.pe);
      } catch (...) {
        way.rail.pool().give(operation);
        throw;
      }
      remote.size_bytes = std::min(remote.size_bytes, way.rail.pool().bounce_bytes());
    }
    std::memcpy(buffer, source, remote.size_bytes);
    source = buffer;
    descriptor = way.rail.pool().descriptor();
  }
  const std::size_t written = remote.size_bytes;
  const bool waited = blocking && !staged && flags == 0;
  operation.waited = waited;
  post(way, operation,
       [&] { return way.rail.write(operation, source, descriptor, remote, flags, immediate); });
  if (waited) {
    wait_operation(way, operation);
    way.rail.pool().give(operation);
  }
  return written;
}

void LibfabricTransport::get(int context, void* target, const RemoteAddress& source,
                             std::size_t size_bytes, bool blocking) {
  if (size_bytes == 0)
    return;
  if (std::byte* const own = own_memory(source))
    return copy_from_shared(target, own, size_bytes);
  check_peer(source.pe);
  auto* const bytes = static_cast<std::byte*>(target);
  const bool of_gpu = memory_.devices().has(source.region) || memory_.devices().hold(target);
  in_stripes(context, "get", size_bytes, of_gpu,
             [&](const Way& way, std::size_t at, std::size_t part_bytes) {
               get_on(way, bytes + at, behind(source, at), part_bytes, blocking);
             });
}

void LibfabricTransport::get_on(const Way& way, std::byte* target, const RemoteAddress& source,
                                std::size_t size_bytes, bool blocking) {
  for (std::size_t at = 0; at < size_bytes;)
    at += get_part(way, target + at, behind(source, at), size_bytes - at, blocking);
}

std::size_t LibfabricTransport::get_part(const Way& way, std::byte* target,
                                         const RemoteAddress& source, std::size_t size_bytes,
                                         bool blocking) {
  const Promises& promises = way.rail.endpoint().promises();
  RemotePart remote =
      memory_.remote(way.rail_index, source, std::min(size_bytes, promises.max_message_bytes));
  void* descriptor = nullptr;
  bool staged = false;
  if (promises.local_registration || memory_.devices().hold(target)) {
    const LocalPart local = memory_.local(way.rail_index, target, remote.size_bytes);
    remote.size_bytes = local.size_bytes;
    descriptor = local.descriptor;
    staged = !local.registered;
  }
  Operation& operation = take(way, OperationKind::read, source.pe);
  std::byte* buffer = target;
  if (staged) {
    buffer = operation.payload;
    if (remote.size_bytes > Operation::payload_bytes) {
      try {
        buffer = operation.bounce = take_bounce(way, source.pe);
      } catch (...) {
        way.rail.pool().give(operation);
        throw;
      }
      remote.size_bytes = std::min(remote.size_bytes, way.rail.pool().bounce_bytes());
    }
    operation.copy_to = target;
    descriptor = way.rail.pool().descriptor();
  }
  const std::size_t read = remote.size_bytes;
  operation.waited = blocking;
  post(way, operation, [&] { return way.rail.read(operation, buffer, descriptor, remote); });
  if (blocking) {
    wait_operation(way, operation);
    way.rail.pool().give(operation);
  }
  return read;
}

} // namespace shmemctl::fabric
