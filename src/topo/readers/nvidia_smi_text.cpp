#include "src/topo/readers/nvidia_smi_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/distance.h"

namespace shmemctl::smi {

namespace {

constexpr const char* fix_text = "give the whole output of: nvidia-smi topo -m";

Error table_error(const std::string& subject, std::size_t line, const std::string& problem) {
  return input_error(subject, "line " + std::to_string(line), problem, fix_text);
}

bool is_numbered(std::string_view label, std::string_view stem) {
  return starts_with(label, stem) && label.size() > stem.size() &&
         label.size() <= stem.size() + 6 &&
         label.find_first_not_of("0123456789", stem.size()) == std::string_view::npos;
}

/// The offset behind a terminal control sequence (ECMA-48: CSI, OSC, two bytes) that begins at
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

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at = skip_escape(text, at);
    } else {
      out += text[at];
      ++at;
    }
  }
  return out;
}

/// Up to `limit` words of a line.
std::vector<std::string> words_of(std::string_view line, std::size_t limit) {
  std::vector<std::string> words;
  line = trim(line);
  while (!line.empty() && words.size() < limit) {
    const std::size_t end = std::min(line.find_first_of(" \t\r\v\f"), line.size());
    words.emplace_back(line.substr(0, end));
    line = trim(line.substr(end));
  }
  return words;
}

/// A word of a cell. Releases before NODE existed wrote SOC for what is SYS now.
std::optional<Distance> parse_cell(const std::string& word) {
  return parse_distance(word == "SOC" ? "SYS" : word);
}

/// The words of `nvidia-smi topo -p2p`, which looks alike and tells something else.
bool is_p2p_status(std::string_view word) {
  static constexpr std::array<std::string_view, 8> words = {"OK", "CHS", "GNS", "TNS",
                                                            "NS", "DR",  "CNS", "U"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Reads the table line by line.
class TableParser {
public:
  explicit TableParser(const std::string& subject) : subject_(subject) {}

  void line(std::size_t number, std::string_view text) {
    const std::vector<std::string> start = words_of(text, 2);
    if (start.empty())
      return;
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
    const std::vector<std::string> words = words_of(text, 3);
    return std::any_of(words.begin() + 1, words.end(),
                       [](const std::string& word) { return is_p2p_status(word); });
  }

  void header(std::size_t number, const std::string& text) {
    table_.header_line = number;
    for (const std::string& word : words_of(text, max_devices + 1)) {
      if (word == "CPU" || word == "NUMA" || word == "GPU")
        break; // "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
      if (!titles_.insert(word).second)
        throw table_error(subject_, number, "two columns are titled " + word);
      table_.columns.push_back(word);
    }
    if (table_.columns.size() > max_devices)
      throw table_error(subject_, number, "more than " + std::to_string(max_devices) + " columns");
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
      return; // other text
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

  Row row(std::size_t number, std::string_view text) const {
    const std::vector<std::string> words = words_of(text, 2 * max_devices);
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

  /// Fields by tab where the text has kept its tabs (an affinity can be empty), else by word.
  void affinities(std::string_view text, const std::vector<std::string>& words, std::size_t at,
                  Row& row) const {
    const std::size_t after = table_.columns.size() + 1;
    if (row.cells.size() == table_.columns.size() &&
        static_cast<std::size_t>(std::count(text.begin(), text.end(), '\t')) >= after) {
      const std::vector<std::string> fields = split(text.substr(0, max_line_bytes), '\t');
      row.cpus = fields.size() > after ? std::string(trim(fields[after])) : "";
      row.numa = fields.size() > after + 1 ? std::string(trim(fields[after + 1])) : "";
      return;
    }
    row.cpus = at < words.size() ? words[at] : "";
    row.numa = at + 1 < words.size() ? words[at + 1] : "";
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
  std::set<std::string> titles_; ///< of columns
  std::set<std::string> seen_;   ///< of rows
  std::size_t untitled_ = 0;     ///< rows without a column
  Table table_;
};

} // namespace

bool is_gpu_label(const std::string& label) {
  return is_numbered(label, "GPU");
}

bool is_nic_label(const std::string& label) {
  return is_numbered(label, "NIC");
}

Table split_table(const std::string& text, const std::string& subject) {
  const std::string plain = without_escapes(text);
  TableParser parser(subject);
  std::size_t number = 0;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find('\n', at), plain.size());
    parser.line(++number, std::string_view(plain).substr(at, end - at));
    at = end + 1;
  }
  return parser.finish(number);
}

} // namespace shmemctl::smi
