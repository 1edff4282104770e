// The texts of /proc/PID that inspect reads.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "src/instruments/inspect/process.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::inspect;
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::set<std::pair<std::string, std::uint64_t>> seen;
  for (const MappedFile& file : parse_maps(text)) {
    require(!file.path.empty() && file.path[0] == '/' && file.inode != 0);
    require(seen.emplace(file.device, file.inode).second);
  }
  if (const auto stat = parse_stat(text))
    require(stat->parent >= 0);
  for (const TcpConnection& connection : parse_tcp(text))
    require(!connection.local.empty() && !connection.state.empty());
  for (const auto& variable : parse_environment(text))
    require(!variable.first.empty() && variable.first.find('=') == std::string::npos);
  parse_words(text);
  parse_status(text);
  return 0;
}
