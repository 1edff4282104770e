// Result rows of a report as text, and heat maps of pairs.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "reports/json_view.h"
#include "reports/pair_matrix.h"
#include "reports/port_names.h"
#include "reports/report.h"
#include "reports/result_table.h"
#include "reports/text.h"
#include "src/base/statistics.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Rows that are printed unless --verbose asks for all.
constexpr std::size_t max_rows = 1000;

bool has_failed(const ResultRow& row) {
  return row.status == RowStatus::fail || row.verified == Verified::failed;
}

/// The rows to print, in their order: if there are too many, failed ones take precedence.
ResultRows rows_to_print(const std::vector<ResultRow>& all, const TextStyle& style,
                         std::size_t& left_out) {
  ResultRows rows;
  std::size_t failed = 0;
  for (const ResultRow& row : all)
    if (style.verbose || !is_link_row(row)) {
      rows.push_back(&row);
      failed += has_failed(row) ? 1 : 0;
    }
  left_out = 0;
  if (style.verbose || rows.size() <= max_rows)
    return rows;
  std::size_t room_for_failed = std::min(failed, max_rows);
  std::size_t room_for_others = max_rows - room_for_failed;
  ResultRows printed;
  for (const ResultRow* row : rows) {
    std::size_t& room = has_failed(*row) ? room_for_failed : room_for_others;
    if (room == 0)
      continue;
    --room;
    printed.push_back(row);
  }
  left_out = rows.size() - printed.size();
  return printed;
}

} // namespace

std::string results_text(const std::vector<ResultRow>& all, const TextStyle& style) {
  std::size_t left_out = 0;
  const ResultRows rows = rows_to_print(all, style, left_out);
  if (rows.empty())
    return "";
  return result_blocks_text(rows, style) + (left_out > 0
                                                ? "... and " + counted(left_out, "more row") +
                                                      ": --verbose has all, and so has report csv\n"
                                                : "");
}

std::string phases_text(const std::vector<PhaseRow>& phases, const TextStyle& style) {
  Table table({{"phase"}, {"time [ms]", Align::right}, {"slowest"}});
  for (const PhaseRow& phase : phases)
    table.add({safe_text(phase.name), fmt::format("{:.3f}", phase.time_ms),
               "PE " + std::to_string(phase.slowest_pe)});
  return table.empty() ? "" : table.text(style);
}

std::string counters_text(const Report& report, const TextStyle& style) {
  PortNames names;
  names.learn(report.hotspots);
  Table table({{"host"}, {"NIC"}, {"counter"}, {"change", Align::right}});
  for (const NicCounter& counter : report.nic_counters) {
    if (counter.delta && *counter.delta == 0 && !style.verbose)
      continue;
    table.add({safe_text(counter.host),
               safe_text(names.name(counter.host, counter.device, std::to_string(counter.port))),
               safe_text(counter.counter), counter.delta ? std::to_string(*counter.delta) : "?"});
  }
  return table.empty() ? "" : table.text(style);
}

namespace {

/// A sweep over many sizes has a picture for each; more than this number are not useful.
constexpr std::size_t max_maps = 16;
/// Labels of rows are cut to this many columns.
constexpr int widest_label = 16;
constexpr std::size_t columns_per_tick = 8;

constexpr int levels = 5, failed = levels, unknown = -1;
constexpr std::array<const char*, levels + 1> shades = {"·", "░", "▒", "▓", "█", "!"};
constexpr std::array<const char*, levels + 1> ascii_shades = {".", ":", "+", "*", "#", "!"};
/// Upper end of each level, as a multiple of the median; the last has none.
constexpr std::array<double, levels - 1> times_worse = {1.1, 1.25, 1.5, 2};

const char* shade(int level, const TextStyle& style) {
  return level == unknown ? " "
                          : (style.utf8 ? shades : ascii_shades)[static_cast<std::size_t>(level)];
}

Colour colour_of(int level) {
  return level <= 1 ? Colour::green : level <= 3 ? Colour::yellow : Colour::red;
}

/// The ends of the levels, in the matrix's unit.
class Scale {
public:
  explicit Scale(const PairMatrix& matrix) : low_is_bad_(matrix.low_is_bad) {
    std::vector<double> values;
    for (const PairCell& cell : matrix.cells)
      if (cell.value)
        values.push_back(*cell.value);
    if (values.empty())
      return;
    std::sort(values.begin(), values.end());
    median_ = quantile(values, 0.5);
    for (std::size_t i = 0; i < ends_.size(); ++i)
      ends_[i] = !matrix.of_median ? values.back() * static_cast<double>(i + 1) / levels
                 : low_is_bad_     ? median_ / times_worse[i]
                                   : median_ * times_worse[i];
  }

  double median() const { return median_; }
  int level_of(const PairCell& cell) const {
    if (!cell.value)
      return failed;
    int level = 0;
    for (const double end : ends_)
      level += is_worse(*cell.value, end) ? 1 : 0;
    return level;
  }
  bool is_worse(double value, double than) const {
    return low_is_bad_ ? value < than : value > than;
  }
  std::string legend(const std::string& unit, const TextStyle& style) const {
    std::string out;
    for (int level = 0; level < levels; ++level) {
      const double end = ends_[static_cast<std::size_t>(std::min(level, levels - 2))];
      const char* const words =
          level == levels - 1 ? (low_is_bad_ ? "below" : "above") : (low_is_bad_ ? "from" : "to");
      out += fmt::format("{} {} {}  ", shade(level, style), words, view::decimal(end, 3));
    }
    return out + "[" + unit + "]";
  }

private:
  bool low_is_bad_;
  double median_ = 0;
  std::array<double, levels - 1> ends_{};
};

/// The printed picture: each cell is the worst of a block of fold x fold pairs.
struct Picture {
  std::size_t fold = 1, size = 0;
  std::vector<int> level; ///< size x size
  const PairCell* worst = nullptr;
  std::size_t failures = 0;
};

bool is_worse(const PairCell& cell, const PairCell* than, const Scale& scale) {
  if (!than || !than->value)
    return !than;
  return !cell.value || scale.is_worse(*cell.value, *than->value);
}

Picture picture_of(const PairMatrix& matrix, const Scale& scale, std::size_t max_columns) {
  Picture picture;
  const std::size_t count = matrix.labels.size();
  picture.fold = (count + max_columns - 1) / max_columns;
  picture.size = (count + picture.fold - 1) / picture.fold;
  picture.level.assign(picture.size * picture.size, unknown);
  for (const PairCell& cell : matrix.cells) {
    int& level = picture.level[cell.row / picture.fold * picture.size + cell.column / picture.fold];
    level = std::max(level, scale.level_of(cell));
    picture.failures += cell.value ? 0 : 1;
    if (is_worse(cell, picture.worst, scale))
      picture.worst = &cell;
  }
  return picture;
}

std::string cut(const std::string& label) {
  std::string safe = safe_text(label);
  if (display_width(safe) <= widest_label)
    return safe;
  std::string out;
  for (std::size_t at = 0; at < safe.size();) {
    std::size_t end = at + 1;
    while (end < safe.size() && (static_cast<unsigned char>(safe[end]) & 0xc0) == 0x80)
      ++end;
    if (display_width(out + safe.substr(at, end - at)) > widest_label - 2)
      break;
    out += safe.substr(at, end - at);
    at = end;
  }
  return out + "..";
}

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

/// Labels above every eighth column, if there is room after the previous one.
std::string header_of(const PairMatrix& matrix, const Picture& picture, int label_width,
                      int cell_width) {
  std::string line = blanks(label_width);
  int at = label_width;
  for (std::size_t column = 0; column < picture.size; column += columns_per_tick) {
    const int column_start = label_width + 1 + static_cast<int>(column) * cell_width;
    if (column_start <= at)
      continue;
    const std::string label = cut(matrix.labels[column * picture.fold]);
    line += blanks(column_start - at) + label;
    at = column_start + display_width(label);
  }
  return line;
}

/// Adjacent cells of one level are coloured together.
std::string cells_of(const Picture& picture, std::size_t row, int cell_width,
                     const TextStyle& style) {
  std::string line, same;
  int level = unknown;
  const auto flush = [&] {
    line += level == unknown ? same : coloured(same, colour_of(level), style);
    same.clear();
  };
  for (std::size_t column = 0; column < picture.size; ++column) {
    const int here = picture.level[row * picture.size + column];
    if (here != level)
      flush();
    level = here;
    for (int i = 0; i < cell_width; ++i)
      same += shade(level, style);
  }
  flush();
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string worst_line(const PairMatrix& matrix, const Picture& picture, const Scale& scale) {
  const PairCell& worst = *picture.worst;
  const std::string pair = matrix.row_is + " " + safe_text(matrix.labels[worst.row]) + " " +
                           matrix.column_is + " " + safe_text(matrix.labels[worst.column]);
  if (!worst.value)
    return counted(picture.failures, "pair") + " failed (!), the first " + pair;
  return fmt::format("worst: {}: {} {} (median {})", pair, view::decimal(*worst.value, 4),
                     safe_text(matrix.unit), view::decimal(scale.median(), 4));
}

std::string map_text(const PairMatrix& matrix, const TextStyle& style) {
  const Scale scale(matrix);
  int label_width = 0;
  for (const std::string& label : matrix.labels)
    label_width = std::max(label_width, display_width(cut(label)));
  const int width = style.layout_width();
  const int room = std::max(width - label_width - 1, 1);
  const int cell_width = 2 * matrix.labels.size() <= static_cast<std::size_t>(room) ? 2 : 1;
  const Picture picture = picture_of(matrix, scale, static_cast<std::size_t>(room / cell_width));
  std::string out =
      wrapped(safe_text(matrix.title), width, 4) + "\n" +
      wrapped("rows: " + matrix.row_is + ", columns: " + matrix.column_is +
                  (picture.fold > 1
                       ? fmt::format("; each cell is the worst of {0} x {0} pairs", picture.fold)
                       : ""),
              width, 4) +
      "\n" + header_of(matrix, picture, label_width, cell_width) + "\n";
  for (std::size_t row = 0; row < picture.size; ++row) {
    const std::string label = cut(matrix.labels[row * picture.fold]);
    out += blanks(label_width - display_width(label)) + label + " " +
           cells_of(picture, row, cell_width, style) + "\n";
  }
  return out + wrapped(scale.legend(safe_text(matrix.unit), style), width, 4) + "\n" +
         wrapped(worst_line(matrix, picture, scale), width, 4) + "\n";
}

} // namespace

std::string heat_maps_text(const Report& report, const TextStyle& style) {
  const std::vector<PairMatrix> matrices = pair_matrices(report);
  std::string out;
  for (std::size_t i = 0; i < matrices.size() && i < max_maps; ++i)
    out += (i > 0 ? "\n" : "") + map_text(matrices[i], style);
  if (matrices.size() > max_maps)
    out += fmt::format("\n... and {} more heat maps: the JSON report has their numbers\n",
                       matrices.size() - max_maps);
  return out;
}

} // namespace shmemctl
