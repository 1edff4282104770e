// Small text functions that several folders need.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// Splits at every `separator`; keeps empty parts; "" gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);
/// Splits at runs of blanks and tabs; no empty parts.
std::vector<std::string> split_blanks(std::string_view text);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

/// Length of the valid UTF-8 sequence at `at` (RFC 3629: no overlong forms, no surrogates), or 0.
std::size_t utf8_sequence_length(std::string_view text, std::size_t at);
/// Offset of the first byte that is not UTF-8, or nothing.
std::optional<std::size_t> first_non_utf8(std::string_view text);
/// "line 3, column 7" (both from 1; columns count bytes) of an offset.
std::string position_of(std::string_view text, std::size_t offset);

/// A whole string as a decimal (or, with base 16, hexadecimal with optional 0x) integer; nothing
/// if anything is left over or it does not fit.
std::optional<long long> parse_integer(std::string_view text, int base = 10);
/// A whole string as a finite decimal number.
std::optional<double> parse_number(std::string_view text);

/// Compares names as a person would: runs of digits by value ("mlx5_2" before "mlx5_10").
bool natural_less(std::string_view left, std::string_view right);

/// The candidate with the smallest edit distance to `word`, if that is at most half of its
/// length (at least 1, at most 3); ties go to the first candidate.
std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates);

} // namespace shmemctl
