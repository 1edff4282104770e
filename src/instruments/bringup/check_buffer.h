// The layout of the pair check's symmetric memory, the same on every PE.
#pragma once

#include <cstddef>
#include <vector>

namespace shmemctl {

/// Slots for transfers of one size. Every source has its own slot if memory allows, so that bytes
/// which arrive at a wrong PE are not overwritten by those that belong there.
struct CheckSection {
  std::size_t begin_bytes = 0;
  std::size_t slots = 1, stride_bytes = 0;
  std::size_t size_bytes = 0;    ///< size of a transfer
  std::size_t payload_bytes = 0; ///< offset of the payload in a slot
  std::size_t slot_of(int source) const { return static_cast<std::size_t>(source) % slots; }
  std::size_t slot_begin(std::size_t slot) const { return begin_bytes + slot * stride_bytes; }
  std::size_t payload(int source) const { return slot_begin(slot_of(source)) + payload_bytes; }
  std::size_t total_bytes() const { return slots * stride_bytes; }
};

/// The words that atomics work on, each in its own cache line.
enum class AtomicTarget { add_8, add_4, swap_8, swap_4 };
inline constexpr int atomic_targets = 4;

class CheckBuffer {
public:
  /// Sizes of transfers: 1 byte, 8 bytes, 4 KiB, and 1 MiB + 3 bytes.
  static std::vector<std::size_t> default_sizes();

  CheckBuffer(int n_pes, const std::vector<std::size_t>& sizes);

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t n_sizes() const { return put.size(); }
  std::vector<CheckSection> put, get, put_signal; ///< by size
  std::vector<CheckSection> staging, landing;     ///< by size: sources of puts, and targets of gets
  CheckSection signals; ///< a slot for each source, with a signal for each size
  CheckSection atomics; ///< a slot for each source, with a word for each AtomicTarget

  std::size_t signal_offset(int source, std::size_t size_index) const;
  std::size_t atomic_offset(int source, AtomicTarget cell) const;

private:
  std::size_t size_bytes_ = 0;
};

} // namespace shmemctl
