// Any bytes as the unique id of a job.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

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
    // The secret must not be told. Only digits are one: other text may be the message's own words.
    const std::string secret = text.substr(std::min<std::size_t>(size, 15), 32);
    if (secret.size() == 32 && text.compare(0, 15, "shmemctl-uid-1:") == 0 &&
        secret.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos)
      require(error.message().find(secret) == std::string::npos);
  }
  return 0;
}
