// A kernel log and a catalogue of messages: any bytes give events within the text, or one error of
// usage.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/instruments/doctor/kernel_log.h"

namespace {

using namespace shmemctl;
using namespace shmemctl::doctor;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void scan(const std::string& text, const std::vector<KernelMessage>& messages,
          const std::string& check) {
  const KernelEvents found = find_kernel_events(text, messages, check);
  require(found.events.size() <= 1000);
  std::size_t counted = 0;
  for (const KernelEvent& event : found.events) {
    require(event.message != nullptr && event.count > 0);
    counted += event.count;
  }
  require(counted <= found.lines);
  const CheckResult result = judge_kernel_events(found, "fuzz", Node{});
  require(!result.reason.empty() && result.reason.find('\n') == std::string::npos);
  require(result.evidence.find('\n') == std::string::npos);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* check : {"xid", "sxid", "nvrm", "nic", "link", "pcie", "iommu", "process"})
    scan(text, kernel_messages(), check);
  try {
    for (const KernelMessage& message : parse_kernel_messages(text, "fuzz")) {
      require(message.pattern.anchor().size() >= 4 && message.least > 0 && !message.source.empty());
      scan(text, {message}, message.check);
    }
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && !error.fix().empty());
  }
  return 0;
}
