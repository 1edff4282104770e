// What the bench reads below /proc, and the list of --pin.
#include <cstdint>
#include <cstdlib>

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
    const PinState state = pin_state_from(text);
    require(pin_state_from(to_text(state)).allowed == state.allowed);
  });
  survive([&] {
    const Interference found = interference_from(text);
    interference_finding("bench", {found});
    require(interference_from(to_text(found)).switches == found.switches);
  });
  survive([&] {
    const PeVerdict verdict = pe_verdict_from(text);
    require(pe_verdict_from(to_text(verdict)).wrong.has_value() == verdict.wrong.has_value());
    merge_verdicts({verdict});
  });
  return 0;
}
