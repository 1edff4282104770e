// Any bytes as the unique id of a job.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/bootstrap/uid.h"

namespace {
void require(bool holds) {
  if (!holds)
    std::abort();
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const UniqueId id = UniqueId::parse(text);
    require(!id.addresses.empty() && id.addresses.size() <= 32);
    const UniqueId again = UniqueId::parse(id.text());
    require(again.text() == id.text() && again.secret == id.secret);
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage);
    // 32 digits and colons around them: the secret must not be told.
    if (size > 60 && text.compare(0, 15, "shmemctl-uid-1:") == 0)
      require(error.message().find(text.substr(15, 32)) == std::string::npos);
  }
  return 0;
}
