// ELF files of any bytes: nothing is read beyond them, and there is an end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/instruments/libraries/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::libraries;
  std::uint64_t read_bytes = 0;
  const ReadAt read_at = [&](std::uint64_t offset, std::size_t count) {
    if (offset >= size)
      return std::string();
    const auto at = static_cast<std::size_t>(offset);
    const std::size_t there = std::min(count, size - at);
    read_bytes += there;
    return std::string(reinterpret_cast<const char*>(data) + at, there);
  };
  const ElfFacts facts = read_elf(read_at);
  if (facts.texts.size() > 8192) // the sections that are looked at
    std::abort();
  constexpr std::uint64_t most = 1U << 20;
  read_bytes = 0;
  each_text(read_at, facts.texts, 3, most, [](std::string_view text) {
    if (text.size() < 3 || text.size() > 4096 || text.find('\0') != std::string_view::npos)
      std::abort();
  });
  if (read_bytes > most)
    std::abort();
  return 0;
}
