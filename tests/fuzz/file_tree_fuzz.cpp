// Archives of any bytes, packed or not: a tree within the limits, or one error.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/base/file_tree.h"
#include "src/base/text.h"
#include "src/base/zstd.h"

namespace {

void check_tree(const shmemctl::FileTree& tree) {
  using namespace shmemctl;
  if (tree.entries().size() > archive_limits::max_entries)
    std::abort();
  for (const auto& [path, entry] : tree.entries()) {
    if (path.empty() || path.front() != '/' || path.size() > archive_limits::max_path_bytes + 1)
      std::abort();
    for (const std::string& part : split(path, '/'))
      if (part == "..")
        std::abort();
    if (!entry.names.empty() && entry.kind != FileEntry::Kind::folder)
      std::abort();
  }
  // What was read can be written, and reads back as the same.
  if (write_tar(read_tar(write_tar(tree), "again")) != write_tar(tree))
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (is_zstd(bytes)) {
      constexpr std::size_t max_bytes = 1U << 22; // the fuzzer's own memory is limited
      check_tree(read_tar(zstd_decompressed(bytes, "fuzz", max_bytes), "fuzz"));
    } else {
      check_tree(read_tar(bytes, "fuzz"));
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage || error.fix().empty())
      std::abort();
  }
  return 0;
}
