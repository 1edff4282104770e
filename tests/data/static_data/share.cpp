#include "share.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/runtime/memory/local_peers.h"
#include "src/runtime/memory/symmetric_region.h"

using namespace shmemctl;

namespace {

int my_pe = 0;
std::unique_ptr<LocalPeers> peers;
std::unique_ptr<HeapBacking> backing;
std::unique_ptr<StaticDataRegion> variables;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

} // namespace

void share_variables(int pe, const char* secret) {
  try {
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), secret, std::min(std::strlen(secret), bytes.size()));
    my_pe = pe;
    backing = make_host_backing({});
    variables = std::make_unique<StaticDataRegion>(*backing);
    peers = make_local_peers(bytes, {0, 1}, pe, {});
    variables->share(*peers, soon());
    require(variables->fingerprint().find("build ") == 0, "a fingerprint");
  } catch (const Error& error) {
    require(0, error.what());
  }
}

void unshare_variables(void) {
  variables.reset();
}

void* of_the_other(void* variable) {
  auto* at = static_cast<std::byte*>(variable);
  if (at < variables->base() || at >= variables->base() + variables->size_bytes())
    return nullptr;
  return variables->slot_base(1 - my_pe) + (at - variables->base());
}

void meet(void) {
  try {
    peers->exchange(-1, soon());
  } catch (const Error& error) {
    require(0, error.what());
  }
}

long shared_bytes(void) {
  // The one file without a name that is open here.
  long blocks = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    struct stat status {};
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.find("memfd:shmemctl") != std::string::npos &&
        ::stat(entry.path().c_str(), &status) == 0)
      blocks = std::max<long>(blocks, 0) + status.st_blocks;
  }
  require(blocks >= 0, "the file of the variables is open");
  return blocks * 512;
}

void name_of_pages(const void* address, char* name, unsigned long size_bytes) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  char line[1024];
  name[0] = '\0';
  while (maps && std::fgets(line, sizeof line, maps)) {
    unsigned long begin = 0, end = 0;
    int at = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &at) == 2 &&
        reinterpret_cast<unsigned long>(address) >= begin &&
        reinterpret_cast<unsigned long>(address) < end)
      std::snprintf(name, size_bytes, "%s", line + at);
  }
  if (maps)
    std::fclose(maps);
}

void require(int condition, const char* what) {
  if (condition)
    return;
  std::fprintf(stderr, "PE %d: not true: %s\n", my_pe, what);
  std::_Exit(1);
}
