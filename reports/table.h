// Aligned tables for terminals.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shmemctl {

/// How a report is printed.
struct TextStyle {
  bool color = false;
  int width = 0; ///< columns of the terminal; 0: lines are never broken
  /// Like `width`, for output that is laid out in any case: without a terminal, 80.
  int layout_width() const { return width > 0 ? width : 80; }
  bool verbose = false;
  bool utf8 = true;       ///< false: ASCII marks
  bool heat_maps = false; ///< pairs of PEs, of hosts and of GPUs as pictures
  bool gigabits = false;  ///< bandwidth of results in Gb/s
  bool p999 = false;      ///< results with a column for p99.9
};

enum class Align { left, right };
struct Column {
  std::string header;
  Align align = Align::left;
};

/// Rows under a header; every cell must be safe to print (safe_text()).
class Table {
public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Missing cells are empty, cells beyond the columns are dropped.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  /// Sets the minimum width of each column, for rows that are printed one by one.
  void set_widths(std::vector<int> widths) { widths_ = std::move(widths); }
  /// One line per row, two blanks between columns, none at a line's end; header in bold if `color`.
  std::string text(const TextStyle& style) const;
  /// The rows without the header.
  std::string rows_text() const;

private:
  template <class Cell>
  std::string line(const std::vector<int>& widths, const Cell& cell) const;
  /// The width of each column, for its cells and its header.
  std::vector<int> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int> widths_; ///< minimum widths; may be empty
};

/// The number of columns that UTF-8 text takes on a terminal: combining marks take none, East Asian
/// wide characters and emoji two.
int display_width(const std::string& text);

/// Text from a document, safe to print: printable() with the maximum length of a message.
std::string safe_text(const std::string& text);

/// Breaks a line at blanks so that it fits `width` (0: never); further lines begin with `indent`
/// blanks.
std::string wrapped(const std::string& line, int width, int indent);

enum class Colour { red, yellow, green, blue, bold };
/// `text` in colour if the style has any.
std::string coloured(const std::string& text, Colour colour, const TextStyle& style);

} // namespace shmemctl
