// A catalogue of any bytes: entries that are whole, or one error of usage.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/instruments/explain/catalogue.h"

namespace {

using namespace shmemctl;
using namespace shmemctl::explain;

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Catalogue catalogue;
  try {
    catalogue.add(text, "fuzz");
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && !error.fix().empty());
    return 0;
  }
  for (const Message& message : catalogue.messages()) {
    require(!message.id.empty() && !message.cause.empty() && !message.fix.empty());
    require(!message.patterns.empty());
    for (const LinePattern& pattern : message.patterns)
      require(pattern.anchor().size() >= 4);
  }
  const Recogniser recogniser(catalogue, {"word"});
  std::uint64_t seen = 0;
  recogniser.recognise(text, seen);
  return 0;
}
