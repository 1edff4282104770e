#include "src/instruments/bench/moe/buffer_layout.h"

#include <algorithm>
#include <cstring>

namespace shmemctl::moe {

namespace {

constexpr std::byte guard_byte{0xc5};
constexpr std::size_t line_bytes = 64;

} // namespace

std::size_t BufferLayout::add(const std::string& name, std::size_t size_bytes) {
  const std::size_t offset = (end_ + guard_bytes + line_bytes - 1) / line_bytes * line_bytes;
  parts_.push_back({name, offset, size_bytes});
  end_ = offset + size_bytes;
  return offset;
}

template <class Visit>
void BufferLayout::for_each_guard(Visit&& visit) const {
  std::size_t begin = 0;
  for (const Part& part : parts_) {
    visit(part.name, begin, part.offset);
    begin = part.offset + part.size_bytes;
  }
  visit(parts_.empty() ? "" : parts_.back().name, begin, size_bytes());
}

void BufferLayout::set_guards(std::byte* memory) const {
  for_each_guard([&](const std::string&, std::size_t begin, std::size_t end) {
    std::memset(memory + begin, static_cast<int>(guard_byte), end - begin);
  });
}

std::optional<std::string> BufferLayout::broken_guard(const std::byte* memory) const {
  std::optional<std::string> broken;
  for_each_guard([&](const std::string& name, std::size_t begin, std::size_t end) {
    if (!broken && std::any_of(memory + begin, memory + end,
                               [](std::byte byte) { return byte != guard_byte; }))
      broken = name;
  });
  return broken;
}

std::optional<std::size_t> first_written(const std::byte* begin, std::size_t size_bytes) {
  const auto* const end = begin + size_bytes;
  const auto* const found =
      std::find_if(begin, end, [](std::byte byte) { return byte != poison_byte; });
  return found == end ? std::nullopt
                      : std::optional<std::size_t>(static_cast<std::size_t>(found - begin));
}

} // namespace shmemctl::moe
