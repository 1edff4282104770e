// Counter files and recorded `ethtool -S` texts: any bytes give counts that fit, or reasons.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/instruments/hotspots/counters.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check(const shmemctl::CounterText& text) {
  require(text.value.has_value() == text.problem.empty());
  require(!text.value || *text.value <= static_cast<std::uint64_t>(INT64_MAX));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(shmemctl::parse_counter_text(text));
  for (const shmemctl::NamedCounter& counter : shmemctl::parse_ethtool_text(text)) {
    require(!counter.name.empty());
    check(counter.text);
  }
  return 0;
}
