#include "src/instruments/bringup/check_buffer.h"

#include <algorithm>

#include "src/base/round_up.h"

namespace shmemctl {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t guard_bytes = 64; ///< before and after a payload; must not change
constexpr std::size_t section_limit_bytes = std::size_t{1} << 20;

CheckSection make_section(std::size_t size_bytes, int n_pes) {
  CheckSection section;
  section.size_bytes = size_bytes;
  section.payload_bytes = guard_bytes + size_bytes % 8; // odd sizes at odd addresses
  section.stride_bytes = round_up(section.payload_bytes + size_bytes + guard_bytes, line_bytes);
  section.slots = std::clamp<std::size_t>(section_limit_bytes / section.stride_bytes, 1,
                                          static_cast<std::size_t>(n_pes));
  return section;
}

CheckSection make_cells(std::size_t cells, int n_pes) {
  CheckSection section;
  section.size_bytes = cells * line_bytes;
  section.stride_bytes = section.size_bytes;
  section.slots = static_cast<std::size_t>(n_pes);
  return section;
}

} // namespace

std::vector<std::size_t> CheckBuffer::default_sizes() {
  return {1, 8, 4096, (1 << 20) + 3};
}

CheckBuffer::CheckBuffer(int n_pes, const std::vector<std::size_t>& sizes) {
  const auto place = [this](CheckSection section) {
    section.begin_bytes = size_bytes_;
    size_bytes_ += section.total_bytes();
    return section;
  };
  for (const std::size_t size : sizes) {
    for (std::vector<CheckSection>* list : {&put, &get, &put_signal})
      list->push_back(place(make_section(size, n_pes)));
    for (std::vector<CheckSection>* list : {&staging, &landing})
      list->push_back(place(make_section(size, 1)));
  }
  signals = place(make_cells(sizes.size(), n_pes));
  atomics = place(make_cells(atomic_targets, n_pes));
}

std::size_t CheckBuffer::signal_offset(int source, std::size_t size_index) const {
  return signals.payload(source) + size_index * line_bytes;
}

std::size_t CheckBuffer::atomic_offset(int source, AtomicTarget cell) const {
  return atomics.payload(source) + static_cast<std::size_t>(cell) * line_bytes;
}

} // namespace shmemctl
