#include "reports/table.h"

#include <algorithm>
#include <cstdint>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// A message of a report is never longer; a hostile one is cut.
constexpr std::size_t longest_text = 2000;

struct Range {
  std::uint32_t first, last;
};

template <std::size_t N>
bool within(std::uint32_t character, const Range (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [character](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

bool takes_no_column(std::uint32_t character) {
  static const Range ranges[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                 {0x610, 0x61a},   {0x64b, 0x65f},   {0x1ab0, 0x1aff},
                                 {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                                 {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
  return within(character, ranges);
}

bool takes_two_columns(std::uint32_t character) {
  static const Range ranges[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf},
                                 {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                                 {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                 {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  return within(character, ranges);
}

/// Calls `each(offset, length, character)`; a byte that is not UTF-8 counts as itself.
template <class Each>
void for_each_character(const std::string& text, Each each) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text, at);
    each(at, std::max<std::size_t>(length, 1),
         length == 0 ? 0xfffd : utf8_character(text, at, length));
    at += std::max<std::size_t>(length, 1);
  }
}

std::string padded(const std::string& text, int width, Align align) {
  const auto blanks = static_cast<std::size_t>(std::max(0, width - display_width(text)));
  return align == Align::left ? text + std::string(blanks, ' ') : std::string(blanks, ' ') + text;
}

std::string without_blanks_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

} // namespace

int display_width(const std::string& text) {
  int width = 0;
  for_each_character(text, [&width](std::size_t, std::size_t, std::uint32_t character) {
    width += takes_no_column(character) ? 0 : takes_two_columns(character) ? 2 : 1;
  });
  return width;
}

std::string safe_text(const std::string& text) {
  return printable(text, longest_text);
}

std::string wrapped(const std::string& line, int width, int indent) {
  if (width <= indent + 10 || display_width(line) <= width)
    return line;
  std::string out;
  std::string current;
  bool first = true;
  for (const std::string& word : split(line, ' ')) {
    if (!first && display_width(current) + 1 + display_width(word) > width &&
        current.find_first_not_of(' ') != std::string::npos) {
      out += without_blanks_at_end(current) + "\n";
      current = std::string(static_cast<std::size_t>(indent), ' ') + word;
    } else {
      current += (first ? "" : " ") + word;
    }
    first = false;
  }
  return out + current;
}

std::string coloured(const std::string& text, Colour colour, const TextStyle& style) {
  if (!style.color)
    return text;
  const char* code = "1";
  switch (colour) {
  case Colour::red:
    code = "31";
    break;
  case Colour::yellow:
    code = "33";
    break;
  case Colour::green:
    code = "32";
    break;
  case Colour::blue:
    code = "34";
    break;
  case Colour::bold:
    break;
  }
  return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
}

void Table::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<int> Table::widths() const {
  std::vector<int> widths = widths_;
  widths.resize(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    widths[i] = std::max(widths[i], display_width(columns_[i].header));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  return widths;
}

template <class Cell>
std::string Table::line(const std::vector<int>& widths, const Cell& cell) const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out += (i > 0 ? "  " : "") + padded(cell(i), widths[i], columns_[i].align);
  return without_blanks_at_end(out);
}

std::string Table::rows_text() const {
  const std::vector<int> all = widths();
  std::string out;
  for (const auto& row : rows_)
    out += line(all, [&](std::size_t i) { return row[i]; }) + "\n";
  return out;
}

std::string Table::text(const TextStyle& style) const {
  const std::string header = line(widths(), [&](std::size_t i) { return columns_[i].header; });
  return coloured(header, Colour::bold, style) + "\n" + rows_text();
}

} // namespace shmemctl
