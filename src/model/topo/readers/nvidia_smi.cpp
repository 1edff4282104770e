// Reads the text of `nvidia-smi topo -m` into a Node.
#include "src/model/topo/readers/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/cpus.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/reader.h"

namespace shmemctl::smi {

namespace {

constexpr const char* fix_text = "pass the complete output of nvidia-smi topo -m";

Error table_error(const std::string& subject, std::size_t line, const std::string& problem) {
  return input_error(subject, "line " + std::to_string(line), problem, fix_text);
}

bool is_numbered(std::string_view label, std::string_view stem) {
  return starts_with(label, stem) && label.size() > stem.size() &&
         label.size() <= stem.size() + 6 &&
         label.find_first_not_of("0123456789", stem.size()) == std::string_view::npos;
}

/// The offset after a terminal control sequence (ECMA-48: CSI, OSC, two bytes) that begins at
/// `at`.
std::size_t skip_escape(std::string_view text, std::size_t at) {
  auto skip_while = [text](std::size_t from, char low, char high) {
    while (from < text.size() && text[from] >= low && text[from] <= high)
      ++from;
    return from;
  };
  ++at;
  if (at >= text.size())
    return at;
  if (text[at] == '[')
    return std::min(skip_while(at + 1, 0x20, 0x3f) + 1, text.size());
  if (text[at] == ']') {
    const std::size_t end = text.find_first_of("\a\x1b\n", at);
    return end == std::string_view::npos ? text.size() : end + (text[end] == '\a' ? 1 : 0);
  }
  return std::min(skip_while(at, 0x20, 0x2f) + 1, text.size());
}

/// Bytes of the blank that begins at `at` and is not ASCII's (Unicode's space separators); 0 if
/// there is none.
std::size_t wide_blank(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 5> blanks = {
      "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  const std::string_view rest = text.substr(at);
  for (const std::string_view blank : blanks)
    if (starts_with(rest, blank))
      return blank.size();
  if (rest.size() < 3 || !starts_with(rest, "\xe2\x80"))
    return 0;
  const auto last = static_cast<unsigned char>(rest[2]);
  return last >= 0x80 && last <= 0x8a ? 3 : 0; // U+2000 to U+200A
}

/// Bytes of the byte order mark or the zero-width space that begins at `at`; 0 if there is none.
std::size_t no_width(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  return starts_with(rest, "\xef\xbb\xbf") || starts_with(rest, "\xe2\x80\x8b") ? 3 : 0;
}

/// Up to `limit` words of a line.
std::vector<std::string> split_words(std::string_view line, std::size_t limit) {
  std::vector<std::string> words;
  line = trim(line);
  while (!line.empty() && words.size() < limit) {
    const std::size_t end = std::min(line.find_first_of(" \t\r\v\f"), line.size());
    words.emplace_back(line.substr(0, end));
    line = trim(line.substr(end));
  }
  return words;
}

/// A cell of the matrix. Releases before NODE existed wrote SOC for SYS.
std::optional<Distance> parse_cell(const std::string& word) {
  return parse_distance(word == "SOC" ? "SYS" : word);
}

/// The values of `nvidia-smi topo -p2p`, which looks alike but means something else.
bool is_p2p_status(std::string_view word) {
  static constexpr std::array<std::string_view, 8> words = {"OK", "CHS", "GNS", "TNS",
                                                            "NS", "DR",  "CNS", "U"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Reads the table line by line.
class TableParser {
public:
  explicit TableParser(const std::string& subject) : subject_(subject) {}

  /// @param cut the text ends here without the end of the line
  void line(std::size_t number, std::string_view text, bool cut) {
    const std::vector<std::string> start = split_words(text, 2);
    if (start.empty())
      return;
    cut_ = cut;
    if (table_.nics_found == 0 && start.size() > 1 && start[1] == "NICs")
      hidden_nics(number, text);
    if (state_ == State::search)
      return search(number, text, start);
    if (state_ != State::done && begins_another(start)) {
      table_.notes.push_back("line " + std::to_string(number) +
                             ": another matrix, which is not read");
      state_ = State::done;
    }
    if (state_ == State::rows)
      row_or_legend(number, text, start);
    if (state_ != State::done)
      legend(number, start);
  }

  Table finish(std::size_t lines) {
    if (untitled_text_ > 0)
      table_.notes.push_back("line " + std::to_string(untitled_text_) +
                             ": the text after the cells has no title and is not read");
    if (state_ == State::search && p2p_line_ > 0)
      throw table_error(subject_, p2p_line_, "this matrix is of topo -p2p, not of topo -m or -mp");
    if (state_ == State::search)
      throw table_error(subject_,
                        candidate_line_ > 0 ? candidate_line_ : std::max<std::size_t>(lines, 1),
                        candidate_line_ > 0 ? "the matrix ends after its header"
                                            : "the text ends without a matrix (a line of GPU0, "
                                              "GPU1, ... and one line per device)");
    return std::move(table_);
  }

private:
  enum class State { search, rows, legend, done };

  static bool is_header(const std::vector<std::string>& start) {
    return is_gpu_label(start[0]) && (start.size() < 2 || !parse_cell(start[1])) &&
           (start.size() < 2 || !is_p2p_status(start[1]));
  }

  bool begins_another(const std::vector<std::string>& start) const {
    const bool titles = is_header(start) && (start.size() < 2 || is_gpu_label(start[1]) ||
                                             is_nic_label(start[1]) || start[1] == "CPU");
    return titles && !table_.rows.empty();
  }

  void search(std::size_t number, std::string_view text, const std::vector<std::string>& start) {
    if (is_header(start)) {
      candidate_ = std::string(text.substr(0, max_line_bytes));
      candidate_line_ = number;
      return;
    }
    const bool row = candidate_line_ > 0 && is_gpu_label(start[0]) && start.size() > 1;
    if (row && has_p2p_status(text)) {
      p2p_line_ = number;
    } else if (row) {
      header(candidate_line_, candidate_);
      state_ = State::rows;
      row_or_legend(number, text, start);
      return;
    }
    candidate_line_ = 0;
  }

  static bool has_p2p_status(std::string_view text) {
    const std::vector<std::string> words = split_words(text, 3);
    return std::any_of(words.begin() + 1, words.end(),
                       [](const std::string& word) { return is_p2p_status(word); });
  }

  /// "4 NICs found in the topology, only displaying 2 in the matrix."
  void hidden_nics(std::size_t number, std::string_view text) {
    const std::vector<std::string> words = split_words(text, 16);
    const std::optional<long long> found = parse_integer(words[0]);
    const bool said = words.size() > 2 && words[2] == "found" &&
                      std::find(words.begin(), words.end(), "displaying") != words.end();
    if (!said || !found || *found < 1 || *found > 100'000)
      return;
    table_.nics_found = static_cast<int>(*found);
    table_.nics_found_line = number;
  }

  void header(std::size_t number, const std::string& text) {
    table_.header_line = number;
    constexpr std::size_t affinity_words = 7;
    const std::vector<std::string> words = split_words(text, max_devices + affinity_words + 1);
    std::size_t at = 0;
    for (; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word == "CPU" || word == "NUMA" || word == "GPU")
        break; // "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
      if (!titles_.insert(word).second)
        throw table_error(subject_, number, "two columns are titled " + word);
      table_.columns.push_back(word);
    }
    if (table_.columns.size() > max_devices)
      throw table_error(subject_, number, "more than " + std::to_string(max_devices) + " columns");
    const std::string& last = table_.columns.back();
    if (at == words.size() && last.size() <= 3 &&
        (starts_with("GPU", last) || starts_with("NIC", last)))
      throw table_error(subject_, number, "the header line is cut off: it ends with " + last);
    affinity_titles(words, at);
  }

  /// A truncated or unknown title leaves the columns from there on without a title.
  void affinity_titles(const std::vector<std::string>& words, std::size_t at) {
    struct Title {
      Affinity affinity;
      std::vector<std::string> words;
    };
    static const std::vector<Title> titles = {{Affinity::cpus, {"CPU", "Affinity"}},
                                              {Affinity::numa, {"NUMA", "Affinity"}},
                                              {Affinity::gpu_numa, {"GPU", "NUMA", "ID"}}};
    while (at < words.size()) {
      const auto title = std::find_if(titles.begin(), titles.end(), [&](const Title& candidate) {
        return words.size() - at >= candidate.words.size() &&
               std::equal(candidate.words.begin(), candidate.words.end(),
                          words.begin() + static_cast<std::ptrdiff_t>(at));
      });
      if (title == titles.end())
        return;
      table_.affinities.push_back(title->affinity);
      at += title->words.size();
    }
  }

  void row_or_legend(std::size_t number, std::string_view text,
                     const std::vector<std::string>& start) {
    const std::string& label = start[0];
    const bool cells = start.size() > 1 && parse_cell(start[1]);
    if (label == "Legend:") {
      state_ = State::legend;
      return;
    }
    const bool titled = titles_.count(label) != 0;
    const bool seen = seen_.count(label) != 0;
    if (!titled && !(cells && (is_gpu_label(label) || is_nic_label(label))))
      return; // a line of other text
    if (seen && !cells)
      return;
    if (seen)
      throw table_error(subject_, number, "a second row of " + label);
    untitled_ += titled ? 0 : 1;
    if (titles_.size() + untitled_ > max_devices)
      throw table_error(subject_, number, "more than " + std::to_string(max_devices) + " devices");
    table_.rows.push_back(row(number, text));
    seen_.insert(label);
  }

  Row row(std::size_t number, std::string_view text) {
    const std::vector<std::string> words = split_words(text, 2 * max_devices);
    Row row;
    row.line = number;
    row.label = words[0];
    std::size_t at = 1;
    for (; at < words.size(); ++at) {
      const std::optional<Distance> cell = parse_cell(words[at]);
      if (!cell)
        break;
      row.cells.push_back(*cell);
    }
    // The last word of a text that ends within a line may be truncated: NV1 of NV18.
    if (cut_ && at == words.size() && !row.cells.empty() &&
        row.cells.back().path == PathClass::nvlink)
      row.cells.pop_back();
    const bool short_of_cells = row.cells.size() < table_.columns.size();
    if (short_of_cells && at < words.size() && !may_be_affinity(words[at]))
      throw table_error(subject_, number,
                        "the cell of " + row.label + " and " + table_.columns[row.cells.size()] +
                            " reads " + printable(words[at], 20) +
                            ", not X, NV<n>, PIX, PXB, PHB, NODE or SYS");
    if (row.cells.size() > table_.columns.size())
      throw table_error(subject_, number,
                        "row " + row.label + " has " + std::to_string(row.cells.size()) +
                            " cells, the header " + std::to_string(table_.columns.size()) +
                            " columns");
    affinities(text, words, at, row);
    return row;
  }

  static bool may_be_affinity(const std::string& word) {
    return word == "N/A" || word.find_first_not_of("0123456789-,") == std::string::npos;
  }

  /// Fields separated by tabs if the text has kept its tabs (an affinity can be empty), else by
  /// blanks: then their number must equal that of the titles.
  void affinities(std::string_view text, const std::vector<std::string>& words, std::size_t at,
                  Row& row) {
    if (!is_gpu_label(row.label))
      return;
    if (table_.affinities.empty()) {
      if (at < words.size() && untitled_text_ == 0)
        untitled_text_ = row.line;
      return;
    }
    const std::size_t after = table_.columns.size() + 1;
    const bool whole = row.cells.size() == table_.columns.size();
    if (whole && static_cast<std::size_t>(std::count(text.begin(), text.end(), '\t')) >= after)
      return by_tabs(split(text.substr(0, max_line_bytes), '\t'), after, row);
    const std::size_t count = words.size() - at;
    row.affinities_damaged = count != 0 && count != table_.affinities.size();
    if (count == table_.affinities.size())
      for (std::size_t i = 0; i < count; ++i)
        row.affinities[table_.affinities[i]] = words[at + i];
  }

  /// nvidia-smi puts two tabs before the last column, so its value is the first non-empty field.
  void by_tabs(const std::vector<std::string>& fields, std::size_t at, Row& row) const {
    for (const Affinity affinity : table_.affinities) {
      if (affinity == Affinity::gpu_numa)
        while (at + 1 < fields.size() && trim(fields[at]).empty())
          ++at;
      row.affinities[affinity] = at < fields.size() ? std::string(trim(fields[at])) : "";
      ++at;
    }
  }

  void legend(std::size_t number, const std::vector<std::string>& start) {
    if (start.size() < 2 || start[0].back() != ':')
      return;
    const std::string title = start[0].substr(0, start[0].size() - 1);
    if (!is_nic_label(title) || table_.names.size() == max_devices)
      return;
    const auto [entry, added] = table_.names.emplace(title, start[1]);
    if (!added && entry->second != start[1])
      throw table_error(subject_, number,
                        "the legend calls " + title + " both " + entry->second + " and " +
                            start[1]);
  }

  /// No line of a matrix of max_devices devices is longer.
  static constexpr std::size_t max_line_bytes = 64 * max_devices;

  const std::string& subject_;
  State state_ = State::search;
  std::string candidate_;
  std::size_t candidate_line_ = 0;
  std::size_t p2p_line_ = 0;
  std::set<std::string> titles_;  ///< titles of columns
  std::set<std::string> seen_;    ///< titles of rows
  std::size_t untitled_ = 0;      ///< rows without a column
  std::size_t untitled_text_ = 0; ///< line of the first text after cells that has no title
  bool cut_ = false;              ///< the line that is being read is incomplete
  Table table_;
};

} // namespace

bool is_gpu_label(const std::string& label) {
  return is_numbered(label, "GPU");
}

bool is_nic_label(const std::string& label) {
  return is_numbered(label, "NIC");
}

std::string plain_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at = skip_escape(text, at);
    } else if (const std::size_t blank = wide_blank(text, at); blank > 0) {
      out += ' ';
      at += blank;
    } else if (const std::size_t nothing = no_width(text, at); nothing > 0) {
      at += nothing;
    } else {
      out += text[at++];
    }
  }
  return out;
}

Table split_table(const std::string& text, const std::string& subject) {
  const std::string plain = plain_text(text);
  TableParser parser(subject);
  std::size_t number = 0;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find('\n', at), plain.size());
    parser.line(++number, std::string_view(plain).substr(at, end - at), end == plain.size());
    at = end + 1;
  }
  return parser.finish(number);
}

namespace {

/// The value of one cell, and its position.
struct Cell {
  Distance distance;
  std::size_t line = 0; ///< 0: not in the text
};

/// GPUs first; titles of columns, then labels that only rows have (a copy that lost columns).
std::vector<std::string> labels_of(const Table& table) {
  std::vector<std::string> all = table.columns;
  for (const Row& row : table.rows)
    if (std::find(table.columns.begin(), table.columns.end(), row.label) == table.columns.end())
      all.push_back(row.label);
  std::stable_partition(all.begin(), all.end(), is_gpu_label);
  return all;
}

class SquareBuilder {
public:
  SquareBuilder(const Table& table, const std::string& subject)
      : table_(table), subject_(subject), labels_(labels_of(table)),
        cells_(labels_.size(), std::vector<Cell>(labels_.size())) {
    for (std::size_t i = 0; i < labels_.size(); ++i)
      position_[labels_[i]] = i;
  }

  Square build() {
    for (const Row& row : table_.rows)
      place(row);
    Square square;
    square.labels = labels_;
    square.cells.assign(labels_.size(), std::vector<Distance>(labels_.size()));
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      square.cells[i][i] = Distance{PathClass::self, 0, ""};
      for (std::size_t j = 0; j < i; ++j)
        square.cells[i][j] = square.cells[j][i] = merged(i, j);
    }
    if (!lost_.empty())
      square.notes.push_back(note_of(lost_, "distances are not in the text and stay unknown"));
    if (!lost_nics_.empty())
      square.remarks.push_back(
          note_of(lost_nics_, "distances between NICs are not in the text and stay unknown"));
    if (!mirrored_.empty())
      square.notes.push_back(
          note_of(mirrored_, "cells are missing and were taken from the other half of the matrix"));
    return square;
  }

private:
  void place(const Row& row) {
    const std::size_t i = position_.at(row.label);
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      const std::size_t j = position_.at(table_.columns[column]);
      const bool self = row.cells[column].path == PathClass::self;
      if (self != (i == j))
        throw error(row.line, self ? "row " + row.label + " has its X in the column of " +
                                         table_.columns[column]
                                   : "row " + row.label + " has " + to_string(row.cells[column]) +
                                         " where its X must be");
      cells_[i][j] = Cell{row.cells[column], row.line};
    }
  }

  Distance merged(std::size_t i, std::size_t j) {
    const Cell& one = cells_[i][j];
    const Cell& other = cells_[j][i];
    if (one.line == 0 && other.line == 0) {
      const bool nics = !is_gpu_label(labels_[i]) && !is_gpu_label(labels_[j]);
      (nics ? lost_nics_ : lost_).emplace_back(j, i); // as in the upper half
      return Distance{std::nullopt, 0, "not in the text"};
    }
    if (one.line == 0)
      mirrored_.emplace_back(i, j);
    if (other.line == 0)
      mirrored_.emplace_back(j, i);
    const bool both = one.line > 0 && other.line > 0 && one.distance.path && other.distance.path;
    if (both && !(one.distance == other.distance))
      throw error(one.line, "the matrix contradicts itself: " + labels_[i] + "-" + labels_[j] +
                                " reads " + to_string(one.distance) + ", " + labels_[j] + "-" +
                                labels_[i] + " in line " + std::to_string(other.line) + " reads " +
                                to_string(other.distance));
    return one.line > 0 && (one.distance.path || other.line == 0) ? one.distance : other.distance;
  }

  /// "2 distances ... (GPU0-NIC1 in line 2, GPU1-NIC1 in line 3)"; names at most four.
  std::string note_of(const std::vector<std::pair<std::size_t, std::size_t>>& cells,
                      const std::string& what) const {
    constexpr std::size_t shown = 4;
    std::string text = std::to_string(cells.size()) + " " + what + " (";
    for (std::size_t at = 0; at < cells.size() && at < shown; ++at) {
      const std::size_t line = line_of(cells[at].first);
      text += (at > 0 ? ", " : "") + labels_[cells[at].first] + "-" + labels_[cells[at].second] +
              (line > 0 ? " in line " + std::to_string(line) : ", whose row is missing");
    }
    return text +
           (cells.size() > shown ? " and " + std::to_string(cells.size() - shown) + " more)" : ")");
  }

  std::size_t line_of(std::size_t index) const {
    for (const Row& row : table_.rows)
      if (row.label == labels_[index])
        return row.line;
    return 0;
  }

  Error error(std::size_t line, const std::string& problem) const {
    return input_error(subject_, "line " + std::to_string(line), problem, fix_text);
  }

  const Table& table_;
  const std::string& subject_;
  std::vector<std::string> labels_;
  std::map<std::string, std::size_t> position_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::pair<std::size_t, std::size_t>> lost_, lost_nics_, mirrored_;
};

} // namespace

Square square_of(const Table& table, const std::string& subject) {
  return SquareBuilder(table, subject).build();
}

} // namespace shmemctl::smi

namespace shmemctl {

namespace {

/// A Linux cpulist: "0-15,64-79", ascending.
bool is_cpulist(const std::string& text) {
  int last = -1;
  for (const std::string& range : split(text, ',')) {
    const std::optional<CpuSet> cpus = parse_cpulist(range);
    if (!cpus || cpus->empty() || cpus->first() <= last)
      return false;
    last = cpus->last();
  }
  return true;
}

bool is_absent(const std::string& affinity) {
  return affinity.empty() || affinity == "N/A";
}

const smi::Row* row_of(const smi::Table& table, const std::string& label) {
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&label](const smi::Row& r) { return r.label == label; });
  return row == table.rows.end() ? nullptr : &*row;
}

std::string line_origin(const smi::Row& row, const std::string& column) {
  return "line " + std::to_string(row.line) + ", " + column;
}

std::string affinity_of(const smi::Row& row, smi::Affinity column) {
  const auto field = row.affinities.find(column);
  return field == row.affinities.end() ? "" : field->second;
}

const char* title_of(smi::Affinity column) {
  switch (column) {
  case smi::Affinity::cpus:
    return "CPU Affinity";
  case smi::Affinity::numa:
    return "NUMA Affinity";
  case smi::Affinity::gpu_numa:
    return "GPU NUMA ID";
  }
  return "";
}

std::optional<int> node_number(const std::string& text) {
  const std::optional<long long> number = parse_integer(text);
  return number && *number >= 0 && *number < 65536 ? std::optional<int>(static_cast<int>(*number))
                                                   : std::nullopt;
}

bool fits(const smi::Row& row, smi::Affinity column) {
  const std::string text = affinity_of(row, column);
  if (row.affinities_damaged)
    return false;
  if (is_absent(text))
    return true;
  return column == smi::Affinity::gpu_numa ? node_number(text).has_value() : is_cpulist(text);
}

/// One damaged field means that the column was cut, or merged with its neighbour: fields that still
/// look intact may be wrong.
class Columns {
public:
  Columns(const smi::Table& table, std::vector<std::string>& notes) {
    for (const smi::Affinity column : table.affinities) {
      const auto bad =
          std::find_if(table.rows.begin(), table.rows.end(), [column](const smi::Row& row) {
            return smi::is_gpu_label(row.label) && !fits(row, column);
          });
      if (bad == table.rows.end())
        continue;
      damaged_.insert(column);
      notes.push_back(std::string("the ") + title_of(column) +
                      " column is damaged and was not used (line " + std::to_string(bad->line) +
                      ")");
    }
  }

  /// The field as a value of its kind; unknown, with the reason, if it is empty or damaged.
  template <class T, class Parse>
  Fact<T> read(const smi::Row& row, smi::Affinity column, Parse parse) const {
    if (damaged_.count(column) != 0)
      return unknown<T>(std::string("the ") + title_of(column) + " column is damaged");
    const std::string text = affinity_of(row, column);
    if (is_absent(text))
      return unknown<T>(std::string("nvidia-smi gives no ") + title_of(column));
    if (std::optional<T> value = parse(text))
      return known(std::move(*value), line_origin(row, title_of(column)));
    return unknown<T>(std::string("nvidia-smi gives the ") + title_of(column) + " " +
                      printable(text, 40));
  }

private:
  std::set<smi::Affinity> damaged_;
};

Gpu gpu_of(const smi::Table& table, const std::string& label, int index, const Columns& columns) {
  Gpu gpu;
  gpu.index = index;
  gpu.vendor = "nvidia";
  gpu.name = unknown<std::string>("nvidia-smi topo does not report names");
  gpu.uuid = unknown<std::string>("nvidia-smi topo does not report UUIDs");
  const long long number = parse_integer(label.substr(3)).value_or(index);
  gpu.driver_index = number == index ? unknown<int>("the same as the index")
                                     : known(static_cast<int>(number), "title " + label);
  const smi::Row* row = row_of(table, label);
  if (row == nullptr) {
    const std::string reason = "the text lacks the row of " + label;
    gpu.numa = gpu.memory_numa = unknown<int>(reason);
    gpu.cpus = gpu.numa_affinity = unknown<std::string>(reason);
    return gpu;
  }
  const auto list = [](const std::string& text) { return std::optional<std::string>(text); };
  const auto several = [](const std::string& text) {
    return node_number(text) ? std::nullopt : std::optional<std::string>(text);
  };
  gpu.numa = columns.read<int>(*row, smi::Affinity::numa, node_number);
  gpu.numa_affinity = columns.read<std::string>(*row, smi::Affinity::numa, several);
  gpu.memory_numa = columns.read<int>(*row, smi::Affinity::gpu_numa, node_number);
  gpu.cpus = columns.read<std::string>(*row, smi::Affinity::cpus, list);
  return gpu;
}

Nic nic_of(const std::string& name) {
  Nic nic;
  nic.name = name;
  nic.rdma = known(true, "nvidia-smi topo lists RDMA devices only");
  const std::string silent = "nvidia-smi topo does not report";
  nic.driver = unknown<std::string>(silent);
  nic.numa = unknown<int>(silent);
  nic.firmware = unknown<std::string>(silent);
  nic.node_guid = unknown<std::string>(silent);
  nic.data_direct = unknown<PciAddress>(silent);
  if (Fact<LinkLayer> layer = link_layer_from_name(name)) {
    NicPort port;
    port.state = unknown<PortState>(silent);
    port.link_layer = std::move(layer);
    port.rate_Gbps = unknown<double>(silent);
    port.lid = unknown<int>(silent);
    port.active_mtu_bytes = unknown<int>(silent);
    port.netdev = unknown<std::string>(silent);
    nic.ports.push_back(std::move(port));
  }
  return nic;
}

void note_legend(const smi::Table& table, const smi::Square& square, Node& node) {
  for (const std::string& label : square.labels)
    if (!table.names.empty() && smi::is_nic_label(label) && table.names.count(label) == 0)
      node.notes.push_back("the NIC legend has no name for " + label);
  for (const auto& [title, name] : table.names)
    if (std::find(square.labels.begin(), square.labels.end(), title) == square.labels.end())
      node.notes.push_back("the NIC legend names " + title + " (" + printable(name, 60) +
                           "), which the matrix lacks");
}

/// The number in a NIC's title, if it differs from the NIC's position.
Fact<int> number_of(const std::string& label, int position) {
  if (!smi::is_nic_label(label))
    return unknown<int>("the title is a device's name");
  const int number = static_cast<int>(parse_integer(label.substr(3)).value_or(position));
  return number == position ? unknown<int>("the same as the position")
                            : known(number, "title " + label);
}

/// Releases that show only some NICs say so above the matrix.
void note_hidden(const smi::Table& table, Node& node) {
  const auto shown = static_cast<int>(node.nics.size());
  if (table.nics_found <= shown)
    return;
  node.hidden_nics = std::min(table.nics_found - shown, topo_limits::max_devices);
  node.notes.push_back("line " + std::to_string(table.nics_found_line) + ": the matrix shows " +
                       std::to_string(shown) + " of " + std::to_string(table.nics_found) +
                       " NICs, so which NIC a PE uses is unknown");
}

} // namespace

Node read_nvidia_smi(const std::string& text, const std::string& subject) {
  if (const std::optional<std::size_t> bad = first_non_utf8(text))
    throw input_error(subject, position_of(text, *bad), "not UTF-8",
                      "pass the output of nvidia-smi topo -m as text");
  const smi::Table table = smi::split_table(text, subject);
  smi::Square square = smi::square_of(table, subject);

  Node node;
  node.format = "nvidia-smi";
  node.notes = table.notes;
  node.notes.insert(node.notes.end(), square.notes.begin(), square.notes.end());
  node.remarks = square.remarks;
  const Columns columns(table, node.notes);
  std::set<std::string> names;
  for (const std::string& label : square.labels) {
    if (smi::is_gpu_label(label)) {
      node.gpus.push_back(gpu_of(table, label, static_cast<int>(node.gpus.size()), columns));
      continue;
    }
    const auto named = table.names.find(label);
    const std::string& name = named == table.names.end() ? label : named->second;
    if (!names.insert(name).second)
      throw input_error(subject, "line " + std::to_string(table.header_line),
                        "two NICs are named " + printable(name, 60),
                        "pass the complete output of nvidia-smi topo -m");
    Nic nic = nic_of(name);
    nic.unnamed = named == table.names.end() && smi::is_nic_label(label);
    nic.source_number = number_of(label, static_cast<int>(node.nics.size()));
    node.nics.push_back(std::move(nic));
  }
  note_hidden(table, node);
  note_legend(table, square, node);
  node.recorded = std::move(square.cells);
  normalize(node);
  return node;
}

} // namespace shmemctl
