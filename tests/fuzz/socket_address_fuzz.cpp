// Any bytes as a socket address, and as an address that another host wrote.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/bootstrap/launcher_variables.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// What was accepted has one text, which is accepted again.
void check(SocketAddress (*parse)(const std::string&), const std::string& text) {
  try {
    const SocketAddress address = parse(text);
    require(SocketAddress::parse(address.text()).text() == address.text());
    require(address.port() >= 0 && address.port() <= 65535);
    require(same_host_address(address, address.with_port(1)));
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && !error.fix().empty());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(&SocketAddress::parse, text);
  check(&parse_foreign_address, text);
  try {
    const HostAndPort parsed = parse_session_id(text);
    require(parsed.port >= 1 && parsed.port <= 65535 && !parsed.host.empty());
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage);
  }
  return 0;
}
