// Text: trimming, splitting, numbers, plurals, wildcards, nearest spelling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// Splits at every `separator`; keeps empty parts, so "" gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);
/// Splits at runs of white space; no empty parts.
std::vector<std::string> split_blanks(std::string_view text);
std::string_view trim(std::string_view text);
/// Removes the first line from `rest` and returns it without its line feed; "" at the end.
std::string_view take_line(std::string_view& rest);
/// Calls visit(line) for each line, without its line feed. Text after the last line feed is a line
/// too.
template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  while (!text.empty())
    visit(take_line(text));
}
std::string lower(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

/// Length of the valid UTF-8 sequence at `at` (RFC 3629: no overlong forms, no surrogates), or 0.
std::size_t utf8_sequence_length(std::string_view text, std::size_t at);
/// Offset of the first byte that is not UTF-8, if any.
std::optional<std::size_t> first_non_utf8(std::string_view text);
/// The position of an offset as "line 3, column 7" (both from 1; columns count bytes).
std::string position_of(std::string_view text, std::size_t offset);

/// Parses a whole string as a decimal integer (or, with base 16, hexadecimal with optional 0x);
/// empty if other characters follow or the value does not fit.
std::optional<long long> parse_integer(std::string_view text, int base = 10);
/// Parses a whole string as a finite decimal number.
std::optional<double> parse_number(std::string_view text);

/// Natural order: runs of digits by value ("mlx5_2" before "mlx5_10").
bool natural_less(std::string_view left, std::string_view right);

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one text
/// into the other: "form" is closer to "from" than to "force".
std::size_t edit_distance(std::string_view left, std::string_view right);

/// The candidate with the smallest edit distance to `word`, without regard to case, if that is at
/// most half of the length of `word` and at most 3; ties go to the first candidate.
std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates);
/// "did you mean NEAREST? ", with the trailing blank; "" if no candidate is near enough
/// (nearest_spelling()).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "1 row", "3 rows".
inline std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

/// Whether `name` matches `pattern`, in which * matches any text and ? any character.
bool matches_pattern(std::string_view name, std::string_view pattern);

/// The code point of the valid UTF-8 sequence of `length` bytes at `at`.
constexpr std::uint32_t utf8_character(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [text](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  if (length == 1)
    return byte(at);
  std::uint32_t character = byte(at) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    character = character << 6 | (byte(at + i) & 0x3f);
  return character;
}

/// Whether a terminal may interpret the character: controls (U+009B begins an escape sequence on
/// some terminals), marks that change the direction of writing, line separators, the byte order
/// mark.
constexpr bool is_hostile(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character <= 0x9f) || character == 0x61c ||
         character == 0x200e || character == 0x200f ||
         (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xfeff;
}

} // namespace shmemctl
