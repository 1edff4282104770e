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

  /// @param cut the text ends here without the end of the line
  void line(std::size_t number, std::string_view text, bool cut) {
    const std::vector<std::string> start = words_of(text, 2);
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
                             ": what stands behind the cells has no title and is not read");
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

  /// "4 NICs found in the topology, only displaying 2 in the matrix."
  void hidden_nics(std::size_t number, std::string_view text) {
    const std::vector<std::string> words = words_of(text, 16);
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
    const std::vector<std::string> words = words_of(text, max_devices + affinity_words + 1);
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
      throw table_error(subject_, number, "the line of titles is cut: it ends with " + last);
    affinity_titles(words, at);
  }

  /// A title that is cut, or that nobody knows, leaves the columns from there on without a title.
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

  Row row(std::size_t number, std::string_view text) {
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
    // The last word of a text that ends within a line may be the beginning of another: NV1 of NV18.
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

  /// Fields by tab where the text has kept its tabs (an affinity can be empty), else by word: then
  /// there must be as many as titles.
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

  /// nvidia-smi puts two tabs before the last column, so that is the first field with a word.
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
  std::set<std::string> titles_;  ///< of columns
  std::set<std::string> seen_;    ///< of rows
  std::size_t untitled_ = 0;      ///< rows without a column
  std::size_t untitled_text_ = 0; ///< line of the first text behind cells that has no title
  bool cut_ = false;              ///< the line that is being read has no end
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

} // namespace shmemctl::smi
