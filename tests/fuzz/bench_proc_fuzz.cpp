// What the bench reads below /proc, the list of --pin, and what PEs send one another about both.
#include <cstdint>
#include <cstdlib>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/instruments/bench/interference.h"
#include "src/instruments/bench/pinning.h"
#include "src/instruments/bench/verification.h"
#include "src/model/topo/cpus.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// Either understood, or refused with an Error.
template <class Parse>
void survive(Parse&& parse) {
  try {
    parse();
  } catch (const shmemctl::Error& error) {
    require(!error.fix().empty());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::bench;
  using shmemctl::to_bytes, shmemctl::value_of_pe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const int cpu : {-1, 0, 1, 10})
    if (const auto ticks = parse_cpu_ticks(text, cpu))
      require(ticks->busy + ticks->idle + ticks->steal >= ticks->steal);
  parse_schedstat(text);
  parse_involuntary_switches(text);
  if (const auto cpus = shmemctl::parse_pin_list(text)) {
    require(!cpus->empty() && cpus->size() <= static_cast<std::size_t>(shmemctl::max_cpus));
    for (const int cpu : *cpus)
      require(cpu >= 0 && cpu < shmemctl::max_cpus);
  }
  survive([&] { // what was understood is understood again
    const PinState state = value_of_pe<PinState>(text, 0, "CPUs");
    require(value_of_pe<PinState>(to_bytes(state), 0, "CPUs").allowed == state.allowed);
  });
  survive([&] {
    const auto found = value_of_pe<Interference>(text, 0, "interference counters");
    interference_finding("bench", {found});
    require(value_of_pe<Interference>(to_bytes(found), 0, "interference counters").switches ==
            found.switches);
  });
  survive([&] {
    const auto verdict = value_of_pe<PeVerdict>(text, 0, "verification result");
    require(value_of_pe<PeVerdict>(to_bytes(verdict), 0, "verification result").wrong.has_value() ==
            verdict.wrong.has_value());
    merge_verdicts({verdict});
  });
  return 0;
}
