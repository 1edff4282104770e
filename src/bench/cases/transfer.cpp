#include "src/bench/cases/transfer.h"

#include "src/bench/case_table.h"
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

constexpr const char* group = "point to point";
const char* const data_verified =
    "Verified: the bytes of the last operation in each slot, which depend on the iteration and the "
    "sender, and that nothing beside them was written.";

CaseInfo info_of(std::string name, Metric metric, std::string measures, const std::string& how) {
  CaseInfo info;
  info.name = std::move(name);
  info.group = group;
  info.metric = metric;
  info.measures = std::move(measures);
  info.how = how + " " + data_verified;
  info.traffics = {Traffic::pair, Traffic::pairs, Traffic::all_to_all};
  info.bidirectional = true;
  return info;
}
/// Calls that reach memory of GPUs by the host's doing, too.
CaseInfo on_any_memory(CaseInfo info) {
  info.on_gpu_memory = true;
  return info;
}

CaseInfo element_info(std::string name, std::string measures, const std::string& how) {
  CaseInfo info = info_of(std::move(name), Metric::latency, std::move(measures), how);
  info.max_bytes = 8;
  info.only_bytes = {1, 2, 4, 8};
  return info;
}

} // namespace

std::vector<BenchCase> transfer_cases() {
  const std::string window =
      "A window of operations goes to one slot each (at most 8 MiB of slots, at least 2), then one "
      "quiet completes them; the window's operations are under way together.";
  CaseInfo strided =
      info_of("iput", Metric::latency, "time of a strided put until it is complete at the target",
              "Elements of 8 bytes go to every other element of the target, then "
              "quiet. Sizes count payload.");
  strided.element_bytes = strided.min_bytes = 8;
  strided.max_bytes = 64 << 10;
  CaseInfo rate = info_of("message-rate", Metric::rate, "small puts per second",
                          "Non-blocking puts. " + window);
  rate.max_bytes = 4 << 10;
  CaseInfo copy = info_of("memcpy", Metric::bandwidth,
                          "speed of the C library's memcpy into the peer's mapped memory",
                          "The same slots and windows as put, without the runtime: what put is "
                          "compared with. Only where the peer's memory is mapped.");
  copy.group = "reference";
  return {bench_case_of<Transfer<Put>>(on_any_memory(info_of(
              "put", Metric::bandwidth, "bandwidth of puts", "Non-blocking puts. " + window))),
          bench_case_of<Transfer<PutLatency>>(on_any_memory(info_of(
              "put-latency", Metric::latency, "time of a put until it is complete at the target",
              "Each put is followed by quiet."))),
          bench_case_of<Transfer<Get>>(on_any_memory(info_of(
              "get", Metric::bandwidth, "bandwidth of gets", "Non-blocking gets. " + window))),
          bench_case_of<Transfer<GetLatency>>(on_any_memory(
              info_of("get-latency", Metric::latency, "time of a get until the data is here",
                      "Each get is followed by quiet."))),
          bench_case_of<Transfer<PutElement>>(
              element_info("p", "time to store one element at the target, until it is complete",
                           "A put of one element from a variable, then quiet.")),
          bench_case_of<Transfer<GetElement>>(
              element_info("g", "time to fetch one element", "A blocking get of one element.")),
          bench_case_of<Transfer<PutSignal>>(info_of(
              "put-signal", Metric::latency,
              "time of a put with signal until both are complete at the target",
              "A put that sets a signal word behind the data, then quiet. The last signal is "
              "verified too.")),
          bench_case_of<Transfer<StridedPut>>(strided),
          bench_case_of<Transfer<Put>>(rate),
          bench_case_of<Transfer<Memcpy>>(copy)};
}

} // namespace shmemctl::bench
