// The requests of the model checker, and the setup of a run.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/proxy/proxy_drain.h"
#include "tests/unit/runtime/proxy/model_context.h"

namespace shmemctl::test {

struct ModelRequest {
  enum Kind : std::uint8_t { none, put, value, fetch, get, quiet };
  Kind kind = none;
  /// Number of the request among those of the producer in this ring.
  std::uint8_t producer = 0, index = 0;
  std::uint32_t result = ~0u;
  std::uint8_t result_tag = 0;
};

/// Every word of a request carries its producer, so that a mixture of two is detected.
template <unsigned SequenceBits, unsigned Words = 2>
struct ModelTraits {
  using Request = ModelRequest;
  using Sequence = ProxySequence<SequenceBits, 1>;
  static constexpr unsigned counter_bits = SequenceBits + 1;
  static constexpr unsigned words = Words;
  static constexpr unsigned result_words = 2;
  static constexpr unsigned result_tag_bits = 1;
  static constexpr unsigned largest_batch = 2;

  static void encode(const Request& request, std::uint64_t (&payload)[words]) {
    for (std::uint64_t& word : payload)
      word = request.producer << 3 | request.index << 5;
    payload[0] |= request.kind;
    payload[1] |= ((request.result + 1) & 3) | request.result_tag << 2;
  }
  static Request decode(const std::uint64_t (&payload)[words]) {
    for (const std::uint64_t word : payload)
      if (word >> 3 != payload[0] >> 3)
        throw Violation("a request is a mixture of two");
    return {static_cast<ModelRequest::Kind>(payload[0] & 7),
            static_cast<std::uint8_t>(payload[0] >> 3 & 3),
            static_cast<std::uint8_t>(payload[0] >> 5),
            static_cast<std::uint32_t>(payload[1] & 3) - 1,
            static_cast<std::uint8_t>(payload[1] >> 2 & 1)};
  }
  static bool orders_memory(const Request& request) { return request.kind == ModelRequest::put; }
  static bool is_quiet(const Request& request) { return request.kind == ModelRequest::quiet; }
  static bool awaits_data(const Request& request) { return request.kind == ModelRequest::get; }
};

/// Scripts: p put, v put of a value in the request, b two puts reserved at once, f fetch (waits for
/// its value), g get (the same, of many at a time), q quiet of all rings. Capitals go to ring 1.
struct ModelSetting {
  std::vector<std::string> scripts;
  unsigned capacity_log2 = 1;
  std::uint64_t first = 0;
  bool stop_at_any_time = false; ///< otherwise when all producers are done
  bool keeps_completed = false;  ///< producers keep their copy of `completed` between requests
  int sink_fails_at = -1;        ///< at which delivery
  ProxyDrainLimits limits = {2, 2};
  unsigned rings = 1;
  /// Quiet skips idle rings; numbers must not wrap then.
  bool looks_at_quieted = false;
};

template <class Traits>
struct RightParts {
  using Shape = Traits;
  using Atomics = ModelAtomics<Traits::counter_bits>;
  using Producer = FifoProducer<Traits, Atomics>;
  using Consumer = FifoConsumer<Traits, Atomics>;
};

} // namespace shmemctl::test
