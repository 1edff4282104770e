// Finds which of many literals occur in a text, in one pass over it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::explain {

/// An Aho-Corasick automaton as a table: one look-up for each byte of the text, however many
/// literals there are. All bytes that no literal contains share a column, so that the table of a
/// few hundred literals stays in a core's second-level cache.
class LiteralSearch {
public:
  /// @param literals each of them is not empty; find() reports their positions in this vector
  explicit LiteralSearch(const std::vector<std::string>& literals);

  /// Calls `hit(position of the literal)` for each occurrence, ordered by the end of the
  /// occurrences.
  template <class Hit>
  void find(std::string_view text, Hit&& hit) const {
    std::uint32_t state = 0;
    for (const char byte : text) {
      state = next_[state * columns_ + column_[static_cast<unsigned char>(byte)]];
      if (state >= first_output_state_)
        for (const std::uint32_t literal : outputs_[state - first_output_state_])
          hit(literal);
    }
  }

private:
  std::array<std::uint8_t, 256> column_{};
  std::size_t columns_ = 1;
  std::vector<std::uint32_t> next_; ///< state * columns_ + column -> state
  /// States that end a literal come last, so that one comparison finds them.
  std::uint32_t first_output_state_ = 1;
  std::vector<std::vector<std::uint32_t>> outputs_;
};

} // namespace shmemctl::explain
