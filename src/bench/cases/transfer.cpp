#include "src/bench/cases/transfer.h"

#include "src/bench/cases/case_makers.h"
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

/// Calls use(zero) with the unsigned type of that size: 1, 2, 4 or 8 bytes.
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

/// Of one element, from a variable.
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
  [[gnu::always_inline]] static void complete(Rma&) {} // blocking
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

/// What the processor does without the runtime.
struct Memcpy : TransferKind {
  static constexpr bool one_by_one = false, direct = true;
  [[gnu::always_inline]] static void issue(const Issue& at) {
    std::memcpy(at.slot + at.delta_bytes, at.source, at.size_bytes);
  }
  [[gnu::always_inline]] static void complete(Rma&) { full_fence(); }
};

} // namespace

const MakeCase by_host::put = create_by_memory<Transfer<Put>, by_host::registered_put>;
const MakeCase by_host::put_latency =
    create_by_memory<Transfer<PutLatency>, by_host::registered_put_latency>;
const MakeCase by_host::get = create_by_memory<Transfer<Get>, by_host::registered_get>;
const MakeCase by_host::get_latency =
    create_by_memory<Transfer<GetLatency>, by_host::registered_get_latency>;
const MakeCase by_host::put_element = create<Transfer<PutElement>>;
const MakeCase by_host::get_element = create<Transfer<GetElement>>;
const MakeCase by_host::put_signal = create<Transfer<PutSignal>>;
const MakeCase by_host::strided_put = create<Transfer<StridedPut>>;
const MakeCase by_host::memcpy_reference = create<Transfer<Memcpy>>;

} // namespace shmemctl::bench
