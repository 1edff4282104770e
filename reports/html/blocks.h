// The content of a page: sections of blocks, as JSON that the page's script draws. Every text in it
// is safe_text().
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl::html {

/// How a column of a table is drawn.
enum class ColumnKind {
  text,
  number,
  size,   ///< bytes: 4K
  share,  ///< 0.25: 25%
  status, ///< pass, fail, ...: coloured
  code    ///< to be pasted
};

struct PageColumn {
  std::string name;
  ColumnKind kind = ColumnKind::text;
};

/// A table has at most this many rows, and says how many were omitted.
inline constexpr std::size_t max_table_rows = 20'000;

/// A table under its title.
class TableBlock {
public:
  TableBlock(std::string title, std::vector<PageColumn> columns);
  /// A cell is a string, a number, or null if it is unknown; missing cells are null.
  void add(std::vector<nlohmann::json> row);
  /// The block is hidden until the reader opens it.
  void fold() { folded_ = true; }
  bool empty() const { return n_rows_ == 0; }
  nlohmann::json block() const;

private:
  std::string title_;
  std::vector<PageColumn> columns_;
  nlohmann::json rows_ = nlohmann::json::array();
  std::size_t n_rows_ = 0;
  bool folded_ = false;
};

/// A cell of safe text; a cell of a number is null if it is unknown or not finite.
nlohmann::json cell(const std::string& text);
nlohmann::json cell(const std::optional<double>& number);
/// A value of a document: a number stays a number, any other scalar becomes safe text, anything
/// else null.
nlohmann::json cell(const nlohmann::json& value);

/// A paragraph.
nlohmann::json note_block(const std::string& text);

/// {"id", "title", "blocks"}; null if there is no block.
nlohmann::json section(const std::string& id, const std::string& title, nlohmann::json blocks);

/// `value` with four significant digits: enough for a picture, and short as text.
double rounded(double value);

} // namespace shmemctl::html
