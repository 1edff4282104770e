#include "src/instruments/bench/cases/transfer.h"

#include "src/instruments/bench/cases/case_makers.h"
#include "transports/shm/atomics.h"
#include "transports/shm/shm.h"

namespace shmemctl::bench {

namespace {

struct Quiet : TransferKind {
  [[gnu::always_inline]] static void complete(Rma& rma) { rma.quiet(); }
};

struct PutLatency : Quiet {
  [[gnu::always_inline]] static void issue(const Issue& at) {
    at.rma.put(at.slot, at.source, at.size_bytes, at.pe, 0, false);
  }
};
struct Put : PutLatency {
  static constexpr bool one_by_one = false;
};

struct GetLatency : Quiet {
  static constexpr bool pulls = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    at.rma.get(at.slot, at.source, at.size_bytes, at.pe, 0, false);
  }
};
struct Get : GetLatency {
  static constexpr bool one_by_one = false;
};

/// Calls use(zero) with a zero of the unsigned type of that size: 1, 2, 4 or 8 bytes.
template <class Use>
[[gnu::always_inline]] inline void with_word(std::size_t size_bytes, Use&& use) {
  if (size_bytes == 8)
    use(std::uint64_t{});
  else if (size_bytes == 4)
    use(std::uint32_t{});
  else if (size_bytes == 2)
    use(std::uint16_t{});
  else
    use(std::uint8_t{});
}

/// Puts one element from a variable.
struct PutElement : Quiet {
  [[gnu::always_inline]] static void issue(const Issue& at) {
    with_word(at.size_bytes, [&](auto value) {
      std::memcpy(&value, at.source, sizeof value);
      at.rma.put_value(at.slot, value, at.pe);
    });
  }
};
struct GetElement : TransferKind {
  static constexpr bool pulls = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    with_word(at.size_bytes, [&](auto value) {
      value = at.rma.get_value<decltype(value)>(at.source, at.pe);
      std::memcpy(at.slot, &value, sizeof value);
    });
  }
  [[gnu::always_inline]] static void complete(Rma&) {} // the get itself blocks
};

struct PutSignal : Quiet {
  static constexpr bool signals = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    at.rma.put_signal(at.slot, at.source, at.size_bytes, at.signal, at.operation + 1, SignalOp::set,
                      at.pe, 0, false);
  }
};

struct StridedPut : Quiet {
  static constexpr int spread = 2;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    for (std::size_t done = 0; done < at.size_bytes; done += 8)
      at.rma.put(at.slot + 2 * done, at.source + done, 8, at.pe, 0, false);
  }
};

/// Copies with memcpy, without the runtime.
struct Memcpy : TransferKind {
  static constexpr bool one_by_one = false, direct = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    std::memcpy(at.slot + at.delta_bytes, at.source, at.size_bytes);
  }
  [[gnu::always_inline]] static void complete(Rma&) { full_fence(); }
};

/// Puts by the transport, without the runtime, which would translate addresses to remote addresses.
struct TransportPut : Quiet {
  static constexpr bool one_by_one = false, by_transport = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    at.transport->put(0, at.remote, at.source, at.size_bytes, false);
  }
};

} // namespace

SHMEMCTL_CASE_BY_MEMORY(put_by_host, Transfer<Put>, registered_put_by_host);
SHMEMCTL_CASE_BY_MEMORY(put_latency_by_host, Transfer<PutLatency>, registered_put_latency_by_host);
SHMEMCTL_CASE_BY_MEMORY(get_by_host, Transfer<Get>, registered_get_by_host);
SHMEMCTL_CASE_BY_MEMORY(get_latency_by_host, Transfer<GetLatency>, registered_get_latency_by_host);
SHMEMCTL_CASE(put_element_by_host, Transfer<PutElement>);
SHMEMCTL_CASE(get_element_by_host, Transfer<GetElement>);
SHMEMCTL_CASE(put_signal_by_host, Transfer<PutSignal>);
SHMEMCTL_CASE(strided_put_by_host, Transfer<StridedPut>);
SHMEMCTL_CASE(memcpy_reference_by_host, Transfer<Memcpy>);
SHMEMCTL_CASE(transport_put_by_host, Transfer<TransportPut>);

} // namespace shmemctl::bench
