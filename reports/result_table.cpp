#include "reports/result_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "reports/json_view.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr double bits_per_byte = 8;
/// The width of a value, with few exceptions: "0.002527", "1000.4", "100.0%".
constexpr int value_width = 8, size_width = 6;

std::string parameter(const ResultRow& row, const std::string& name) {
  const json& value = view::member(row.params, name.c_str());
  if (name == "size_bytes" && value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return format_size_bytes(value.get<std::uint64_t>());
  const std::optional<std::string> text = view::scalar(value);
  return text ? safe_text(*text) : "-";
}

bool has_parameter(const ResultRow& row, const std::string& name) {
  return row.params.is_object() && row.params.contains(name);
}

/// Whether the engine chooses this parameter by the time of an operation, so that it is not an
/// independent variable.
bool is_chosen(const std::string& name) {
  return name == "batch";
}

std::string label_of(const std::string& name) {
  if (name == "size_bytes")
    return "size";
  if (name == "first_pe")
    return "from";
  return name == "second_pe" ? "to" : safe_text(name);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string optional_number(const std::optional<double>& value) {
  return value ? view::decimal(*value) : "-";
}

std::string verdict(const ResultRow& row) {
  if (row.status == RowStatus::skip)
    return "skipped";
  if (row.status == RowStatus::fail && row.verified != Verified::failed)
    return std::string(to_string(row.status)) + ", " + to_string(row.verified);
  return to_string(row.verified);
}

/// Distinct texts with the cases of their rows, both in order of appearance.
using CasesOf = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// @param text_of returns a row's text; "" if it has none
template <class TextOf>
CasesOf cases_of(const ResultRows& rows, const TextOf& text_of) {
  CasesOf all;
  for (const ResultRow* row : rows) {
    const std::string text = text_of(*row);
    if (text.empty())
      continue;
    auto at = std::find_if(all.begin(), all.end(),
                           [&text](const auto& known) { return known.first == text; });
    if (at == all.end())
      at = all.insert(at, {text, {}});
    if (!contains(at->second, row->case_name))
      at->second.push_back(row->case_name);
  }
  return all;
}

/// Why a row is not simply "passed".
std::string reason_of(const ResultRow& row) {
  if (row.reason.empty() && row.status == RowStatus::pass && row.verified == Verified::unchecked)
    return "not verified";
  if (row.reason.empty())
    return "";
  if (row.status == RowStatus::skip)
    return "skipped: " + row.reason;
  if (row.status == RowStatus::fail || row.verified == Verified::failed)
    return "failed: " + row.reason;
  return (row.verified == Verified::unchecked ? "not verified: " : "") + row.reason;
}

/// "put, get: words"
std::string lines_of(const CasesOf& texts, const TextStyle& style) {
  std::string out;
  for (const auto& [text, cases] : texts)
    out += wrapped(safe_text(join(cases, ", ") + ": " + text), style.width, 4) + "\n";
  return out;
}

/// "put: cores used: host 1.00, proxy 0.42": the maximum over all rows, if other threads than the
/// one that measures use CPU time.
std::string cores_text(const ResultRows& rows, const TextStyle& style) {
  constexpr double least = 0.01;
  std::string out;
  for (std::size_t first = 0; first < rows.size();) {
    std::map<std::string, double> most;
    std::size_t end = first;
    for (; end < rows.size() && rows[end]->case_name == rows[first]->case_name; ++end)
      for (const auto& [name, share] : rows[end]->cores)
        most[name] = std::max(most[name], share);
    std::vector<std::string> words;
    bool others = false;
    for (const auto& [name, share] : most) {
      others = others || (name != "host" && share >= least);
      words.push_back(fmt::format("{} {:.2f}", name, share));
    }
    if (others || (style.verbose && !words.empty()))
      out += safe_text(rows[first]->case_name + ": cores used: " + join(words, ", ")) + "\n";
    first = end;
  }
  return out;
}

} // namespace

ResultColumns::ResultColumns(const ResultRows& rows, const TextStyle& style)
    : style_(style), unit_(rows.front()->unit) {
  for (const std::string& name : parameter_names(rows)) {
    const std::string first = parameter(*rows.front(), name);
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const ResultRow* row) { return parameter(*row, name) != first; }))
      varying_.push_back(name);
  }
  // Readers look rows up by their size.
  if (has_parameter(*rows.front(), "size_bytes") && !contains(varying_, "size_bytes"))
    varying_.insert(varying_.begin(), "size_bytes");
  for (const ResultRow* row : rows) {
    case_ = case_ || row->case_name != rows.front()->case_name;
    run_ = run_ || row->run;
    one_unit_ = one_unit_ && row->unit == unit_;
    choose_values(*row);
  }
  leave_out();
  set_constants(*rows.front());
}

ResultColumns::ResultColumns(const ResultRow& row, const std::vector<std::string>& varying,
                             const TextStyle& style)
    : style_(style), unit_(row.unit) {
  for (const std::string& name : varying)
    if (has_parameter(row, name))
      varying_.push_back(name);
  // Parameters that the engine chooses differ from row to row; as constants they would begin a new
  // table at each row.
  if (style.verbose)
    for (const std::string& name : parameter_names({&row}))
      if (is_chosen(name) && !contains(varying_, name))
        varying_.push_back(name);
  run_ = row.run.has_value();
  choose_values(row);
  leave_out();
  set_constants(row);
}

void ResultColumns::choose_values(const ResultRow& row) {
  times_ = times_ || row.stats;
  // p99.9 has a column even if there are too few samples for it
  p999_ = p999_ || (row.stats && style_.p999);
  rates_ = rates_ || row.rate_Mops;
  bandwidth_ = bandwidth_ || row.bandwidth_GBps;
  bus_ = bus_ || row.busbw_GBps;
  wires_ = wires_ || row.wire_GBps;
  counted_ = counted_ || row.counted_GBps;
  lows_ = lows_ || (row.windows && row.windows->min_GBps);
  shares_ = shares_ || row.link_fraction;
  if (row.link_fraction && row.limited_by && !contains(limits_, *row.limited_by))
    limits_.push_back(*row.limited_by);
}

/// Without `verbose`, drops columns that say least beside the others, to stay within 100 columns.
void ResultColumns::leave_out() {
  if (!style_.verbose) {
    varying_.erase(std::remove_if(varying_.begin(), varying_.end(), is_chosen), varying_.end());
    rates_ = rates_ && !((p999_ || lows_) && bandwidth_);
    bandwidth_ = bandwidth_ && !bus_;
    hides_window_ = p999_ && lows_;
    if (hides_window_)
      varying_.erase(std::remove(varying_.begin(), varying_.end(), "window"), varying_.end());
  }
}

void ResultColumns::set_constants(const ResultRow& row) {
  const bool pair_in_path = row.path && row.path->first && row.path->second;
  for (const std::string& name : parameter_names({&row})) {
    const bool of_pair = name == "first_pe" || name == "second_pe";
    if (contains(varying_, name) || (is_chosen(name) && !style_.verbose) ||
        (of_pair && pair_in_path) || (name == "window" && hides_window_))
      continue;
    constants_.emplace_back(name, parameter(row, name));
  }
}

std::string ResultColumns::constants() const {
  std::vector<std::string> words;
  for (const auto& [name, value] : constants_)
    words.push_back(label_of(name) + " " + value);
  std::string out = join(words, ", ");
  for (std::size_t i = 0; i < limits_.size(); ++i)
    out += (out.empty() ? "" : "; ") +
           (i == 0 ? std::string("limit: ") : fmt::format("limit {}: ", i + 1)) +
           safe_text(limits_[i]);
  return out;
}

std::string ResultColumns::unit_of_times() const {
  return one_unit_ && !unit_.empty() ? " [" + safe_text(unit_) + "]" : "";
}

std::vector<Column> ResultColumns::headers() const {
  std::vector<Column> columns;
  if (run_)
    columns.push_back({"run", Align::right});
  if (case_)
    columns.push_back({"case"});
  for (const std::string& name : varying_)
    columns.push_back({label_of(name), Align::right});
  if (times_) {
    columns.push_back({"min" + unit_of_times(), Align::right});
    columns.push_back({"p50" + unit_of_times(), Align::right});
    columns.push_back({"p99" + unit_of_times(), Align::right});
    if (p999_)
      columns.push_back({"p99.9", Align::right});
    columns.push_back({"max" + unit_of_times(), Align::right});
    if (!one_unit_)
      columns.push_back({"unit"});
  }
  if (rates_)
    columns.push_back({"Mop/s", Align::right});
  const std::string rate = style_.gigabits ? "Gb/s" : "GB/s";
  if (bandwidth_)
    columns.push_back({rate, Align::right});
  if (lows_)
    columns.push_back({"min " + rate, Align::right});
  if (bus_) {
    columns.push_back({"alg " + rate, Align::right});
    columns.push_back({"bus " + rate, Align::right});
  }
  if (wires_)
    columns.push_back({rate + " wire", Align::right});
  if (counted_)
    columns.push_back({rate + " counted", Align::right});
  if (shares_)
    columns.push_back({"of limit", Align::right});
  columns.push_back({"verified"});
  return columns;
}

std::string ResultColumns::rate_cell(const std::optional<double>& rate_GBps) const {
  return optional_number(
      rate_GBps && style_.gigabits ? std::optional<double>(*rate_GBps * bits_per_byte) : rate_GBps);
}

std::string ResultColumns::link_cell(const ResultRow& row) const {
  if (!row.link_fraction)
    return "-";
  std::string cell = fmt::format("{:.1f}%", *row.link_fraction * 100);
  if (!row.limit_note.empty())
    cell += "!";
  if (!row.limited_by)
    return cell;
  const auto limit = std::find(limits_.begin(), limits_.end(), *row.limited_by);
  if (limit == limits_.end()) // the limit belongs to a row that came after the headers
    return cell + " of " + safe_text(*row.limited_by);
  if (limit != limits_.begin())
    cell += fmt::format(" of {}", limit - limits_.begin() + 1);
  return cell;
}

std::vector<std::string> ResultColumns::cells(const ResultRow& row) const {
  std::vector<std::string> cells;
  if (run_)
    cells.push_back(row.run ? std::to_string(*row.run) : "-");
  if (case_)
    cells.push_back(safe_text(row.case_name));
  for (const std::string& name : varying_)
    cells.push_back(parameter(row, name));
  if (times_) {
    const Stats stats = row.stats.value_or(Stats{});
    for (const auto& value : {stats.min, stats.p50, stats.p99})
      cells.push_back(optional_number(value));
    if (p999_)
      cells.push_back(optional_number(stats.p999));
    cells.push_back(optional_number(stats.max));
    if (!one_unit_)
      cells.push_back(safe_text(row.unit));
  }
  if (rates_)
    cells.push_back(optional_number(row.rate_Mops));
  if (bandwidth_)
    cells.push_back(rate_cell(row.bandwidth_GBps));
  if (lows_)
    cells.push_back(rate_cell(row.windows ? row.windows->min_GBps : std::nullopt));
  if (bus_) {
    cells.push_back(rate_cell(row.algbw_GBps));
    cells.push_back(rate_cell(row.busbw_GBps));
  }
  if (wires_)
    cells.push_back(rate_cell(row.wire_GBps));
  if (counted_)
    cells.push_back(rate_cell(row.counted_GBps));
  if (shares_)
    cells.push_back(link_cell(row));
  cells.push_back(verdict(row));
  return cells;
}

bool ResultColumns::fits(const ResultRow& row) const {
  const ResultColumns own(row, varying_, style_);
  const auto loses = [](bool needs, bool has) { return needs && !has; };
  return own.constants_ == constants_ && own.unit_ == unit_ && !loses(own.times_, times_) &&
         !loses(own.p999_, p999_) && !loses(own.bandwidth_, bandwidth_) && !loses(own.bus_, bus_) &&
         !loses(own.wires_, wires_) && !loses(own.counted_, counted_) &&
         !loses(own.shares_, shares_) && !loses(own.lows_, lows_) &&
         !loses(own.rates_, rates_ || p999_ || lows_);
}

std::vector<int> ResultColumns::widths() const {
  std::vector<int> widths;
  for (const Column& column : headers()) {
    const bool value = column.align == Align::right &&
                       std::none_of(varying_.begin(), varying_.end(), [&](const auto& name) {
                         return !is_chosen(name) && label_of(name) == column.header;
                       });
    widths.push_back(std::max(display_width(column.header), value                     ? value_width
                                                            : column.header == "size" ? size_width
                                                                                      : 0));
  }
  return widths;
}

std::string result_notes_text(const ResultRows& rows, const TextStyle& style) {
  return cores_text(rows, style) + lines_of(cases_of(rows, reason_of), style) +
         lines_of(cases_of(rows,
                           [](const ResultRow& row) {
                             if (!row.link_fraction)
                               return row.limit_reason;
                             return row.limit_note.empty() ? std::string() : "! " + row.limit_note;
                           }),
                  style);
}

std::string result_columns_text(const ResultRows& rows, const TextStyle& style) {
  constexpr std::size_t of_p99 = 100; // samples
  const bool few = std::any_of(rows.begin(), rows.end(), [](const ResultRow* row) {
    return row->stats && !row->stats->p99 && row->stats->n < of_p99;
  });
  const bool wire = std::any_of(rows.begin(), rows.end(),
                                [](const ResultRow* row) { return row->wire_GBps.has_value(); });
  std::string out;
  if (wire)
    out += wrapped("GB/s counts all rows that a rank receives, its own included; GB/s wire only "
                   "what leaves a rank",
                   style.width, 4) +
           "\n";
  if (few)
    out += wrapped("p99 takes 100 samples: measure longer for it", style.width, 4) + "\n";
  return out;
}

std::string histogram_text(const ResultRow& row, const TextStyle& style) {
  if (row.histogram.empty())
    return "";
  constexpr std::size_t longest_bar = 40;
  std::size_t most = 1;
  for (const HistogramBin& bin : row.histogram)
    most = std::max(most, bin.count);
  Table table({{"from", Align::right},
               {"to [" + safe_text(row.unit) + "]", Align::right},
               {"samples", Align::right},
               {""}});
  for (const HistogramBin& bin : row.histogram) {
    // A bin with a single sample is visible, too.
    const std::size_t bar =
        bin.count == 0 ? 0
                       : std::max<std::size_t>(
                             static_cast<std::size_t>(static_cast<double>(bin.count) /
                                                      static_cast<double>(most) * longest_bar),
                             1);
    table.add({view::decimal(bin.from), view::decimal(bin.to), std::to_string(bin.count),
               std::string(bar, '#')});
  }
  const std::string size =
      has_parameter(row, "size_bytes") ? " " + parameter(row, "size_bytes") : "";
  return safe_text(row.case_name) + size + ", all samples\n" + table.text(style);
}

std::string result_paths_text(const ResultRows& rows) {
  constexpr std::size_t max_lines = 8;
  CasesOf paths = cases_of(
      rows, [](const ResultRow& row) { return row.path ? to_text(*row.path) : std::string(); });
  if (paths.size() > max_lines)
    paths = cases_of(rows, [](const ResultRow& row) {
      return row.path ? to_text(RowPath{{}, {}, row.path->transports, row.path->nics})
                      : std::string();
    });
  std::string out;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i == max_lines) {
      out += "... and " + counted(paths.size() - i, "more path") + "\n";
      break;
    }
    out += safe_text(join(paths[i].second, ", ") + ": " + paths[i].first) + "\n";
  }
  return out;
}

namespace {

/// Whether two rows can be in one table. Cases without sizes have one or two rows each, which are
/// best compared in one table.
bool share_table(const ResultRow& one, const ResultRow& other) {
  if (one.run != other.run)
    return false;
  if (one.case_name == other.case_name)
    return true;
  const auto without_choice = [](const ResultRow& row) {
    json params = row.params.is_object() ? row.params : json::object();
    for (const char* name : {"batch", "phase"})
      params.erase(name);
    return params;
  };
  return !has_parameter(one, "size_bytes") && one.unit == other.unit &&
         without_choice(one) == without_choice(other);
}

std::string constants_line(const std::string& constants) {
  constexpr int widest = 100;
  return constants.empty() ? "" : wrapped("  " + constants, widest, 4) + "\n";
}

std::string block_text(const ResultRows& rows, const TextStyle& style) {
  const ResultColumns columns(rows, style);
  Table table(columns.headers());
  for (const ResultRow* row : rows)
    table.add(columns.cells(*row));
  std::string out = result_paths_text(rows);
  const std::string constants = columns.constants();
  if (out.empty() || !constants.empty()) {
    if (out.empty())
      out = safe_text(rows.front()->case_name) + "\n";
    out += constants_line(constants);
  }
  out += table.text(style) + result_notes_text(rows, style);
  for (const ResultRow* row : rows)
    out += histogram_text(*row, style);
  return out;
}

} // namespace

std::string result_blocks_text(const ResultRows& rows, const TextStyle& style) {
  std::string out;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && share_table(*rows[first], *rows[end]))
      ++end;
    out += (first > 0 ? "\n" : "") + block_text({rows.begin() + static_cast<std::ptrdiff_t>(first),
                                                 rows.begin() + static_cast<std::ptrdiff_t>(end)},
                                                style);
    first = end;
  }
  return out + result_columns_text(rows, style);
}

bool LiveResults::shows_pairs() const {
  return contains(varying_, "first_pe");
}

std::string LiveResults::add(const ResultRow& row) {
  std::string out;
  const std::string path = row.path && !shows_pairs() ? to_text(*row.path) : "";
  // A skipped row has no path and no values.
  if (!columns_ || rows_.back().case_name != row.case_name || (row.path && path != path_) ||
      (row.stats && !columns_->fits(row))) {
    columns_.emplace(row, varying_, style_);
    path_ = path;
    const std::string constants = columns_->constants();
    out += safe_text(row.case_name + (path.empty() ? "" : ": " + path)) + "\n" +
           constants_line(constants);
    Table header(columns_->headers());
    header.set_widths(columns_->widths());
    out += header.text(style_);
  }
  rows_.push_back(row);
  Table line(columns_->headers());
  line.set_widths(columns_->widths());
  line.add(columns_->cells(row));
  return out + line.rows_text();
}

std::string LiveResults::end() const {
  ResultRows rows;
  for (const ResultRow& row : rows_)
    rows.push_back(&row);
  std::string out =
      (shows_pairs() ? result_paths_text(rows) : "") + result_notes_text(rows, style_);
  for (const ResultRow& row : rows_)
    out += histogram_text(row, style_);
  return out;
}

} // namespace shmemctl
