#include "transports/shm/shm.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "transports/region_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shmemctl {

namespace {

/// The size from which copies use non-temporal stores: half of the L3 cache, 1 to 32 MiB. If source
/// and target together do not fit into that cache, a cached copy reads the target's lines in vain
/// and writes every line back to memory. Smaller cached copies are faster (3 times at 4 MiB on a
/// Zen 4 with 32 MiB of cache) and leave the data in the cache for its reader.
std::size_t non_temporal_bytes() {
  static const std::size_t threshold = [] {
    constexpr long mib = 1 << 20;
    const long cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return static_cast<std::size_t>(cache_bytes > 0 ? std::clamp(cache_bytes / 2, mib, 32 * mib)
                                                    : 8 * mib);
  }();
  return threshold;
}

#if defined(__x86_64__) && !defined(SHMEMCTL_THREAD_SANITIZER)
/// The size is a multiple of 64-byte lines; the target is aligned to a line.
void stream_lines(std::byte* target, const std::byte* source, std::size_t size_bytes) {
  for (std::size_t at = 0; at < size_bytes; at += 64)
    for (std::size_t word = 0; word < 64; word += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + at + word),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at + word)));
  _mm_sfence();
}

bool copy_streaming(void* target, const void* source, std::size_t size_bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  const std::size_t body = (size_bytes - head) / 64 * 64;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, size_bytes - head - body);
  return true;
}
#else
bool copy_streaming(void*, const void*, std::size_t) {
  return false;
}
#endif

class ShmTransport final : public Transport {
public:
  const char* name() const override { return "shm"; }
  std::string local_info() override { return {}; }

  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override {
    if (me.machine_id != peer.machine_id)
      return {0, "on another machine"};
    if (me.node_id != peer.node_id)
      return {0, "on another virtual node"};
    return {can_load_store | can_put | can_get | can_atomics | can_put_signal,
            "shared memory of one machine"};
  }

  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView& region) override {
    regions_.set(region);
    return {};
  }

  void put(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool) override {
    copy_to_shared(at(target), source, size_bytes);
  }

  void get(int, void* target, const RemoteAddress& source, std::size_t size_bytes, bool) override {
    copy_from_shared(target, at(source), size_bytes);
  }

  std::uint64_t atomic(int, const RemoteAddress& target, const AtomicRequest& request) override {
    return execute_atomic(at(target), request);
  }

  void put_signal(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t signal_value, SignalOp op,
                  bool) override {
    if (size_bytes > 0)
      copy_to_shared(at(target), source, size_bytes);
    signal_shared(at(signal), signal_value, op);
  }

  void fence(int) override { order_fence(); }
  void quiet(int) override { full_fence(); }
  bool is_load_store() const override { return true; }

private:
  std::byte* at(const RemoteAddress& address) const {
    return mapped_address(regions_, address, "shm");
  }

  RegionTable regions_;
};

} // namespace

void copy_block_to_shared(void* target, const void* source, std::size_t size_bytes) {
  if (target == source)
    return;
  if (size_bytes < non_temporal_bytes() || !copy_streaming(target, source, size_bytes))
    std::memcpy(target, source, size_bytes);
}

std::unique_ptr<Transport> make_shm_transport() {
  return std::make_unique<ShmTransport>();
}

} // namespace shmemctl
