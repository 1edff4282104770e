#include "src/base/catalogue_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/base/finding.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_entries = 4096;
constexpr std::size_t max_repetitions = 64; ///< how often one key may be repeated in one entry
constexpr std::size_t max_value_bytes = 4096;
/// A shorter literal would occur in too many lines.
constexpr std::size_t min_anchor_bytes = 4;
/// A longer literal does not improve the search, but makes its table larger.
constexpr std::size_t max_anchor_bytes = 16;

[[noreturn]] void refuse_line(const std::string& subject, std::size_t number,
                              const std::string& problem, const std::string& expected) {
  throw Error(ExitCode::usage, fmt::format("{}, line {}", printable(subject), number), "", problem,
              "write " + expected);
}

bool is_kebab_case(std::string_view id) {
  return !id.empty() && id.front() != '-' && id.back() != '-' &&
         id.find("--") == std::string_view::npos && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

/// The first word of a text, and the rest.
std::pair<std::string, std::string> first_word(std::string_view text) {
  const std::size_t blank = text.find_first_of(" \t");
  return {std::string(text.substr(0, blank)),
          blank == std::string_view::npos ? "" : std::string(trim(text.substr(blank + 1)))};
}

} // namespace

LinePattern::LinePattern(std::string text) : text_(std::move(text)) {
  std::string piece;
  const auto end_piece = [&] {
    if (!piece.empty())
      pieces_.push_back(std::exchange(piece, ""));
  };
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
    if (text_[i] == '\\' && (next == '*' || next == '{')) {
      piece += next;
      ++i;
    } else if (text_[i] == '*') {
      end_piece();
    } else if (text_[i] == '{' && next == '}') {
      end_piece();
      if (capture_count_++ == 0)
        capture_at_ = pieces_.size();
      ++i;
    } else {
      piece += text_[i];
    }
  }
  end_piece();
  for (const std::string& each : pieces_)
    if (each.size() > anchor_.size())
      anchor_ = each;
  anchor_.resize(std::min(anchor_.size(), max_anchor_bytes));
}

std::optional<LinePattern::Match> LinePattern::match(std::string_view line) const {
  if (pieces_.empty())
    return std::nullopt;
  Match match;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::size_t found = line.find(pieces_[i], at);
    if (found == std::string_view::npos)
      return std::nullopt;
    if (i == 0)
      match.begin = found;
    if (capture_count_ > 0 && i == capture_at_)
      match.captured = line.substr(at, found - at);
    at = found + pieces_[i].size();
  }
  if (capture_count_ > 0 && capture_at_ == pieces_.size())
    match.captured = line.substr(at);
  return match;
}

std::vector<std::string> CatalogueEntry::values(const std::string& key) const {
  std::vector<std::string> texts;
  if (const auto found = values_.find(key); found != values_.end())
    for (const CatalogueValue& value : found->second)
      texts.push_back(value.text);
  return texts;
}

void CatalogueEntry::refuse_key(const std::string& key, const std::string& problem,
                                const std::string& expected) const {
  refuse_line(subject_, values_.at(key).front().line, problem, expected);
}

Severity CatalogueEntry::severity(const std::string& key) const {
  const auto severity = parse_severity(value(key));
  if (!severity)
    refuse_line(subject_, values_.at(key).front().line,
                printable(value(key)) + " is not a severity", "info, warning or error");
  return *severity;
}

std::vector<LinePattern> CatalogueEntry::patterns(const std::string& key) const {
  std::vector<LinePattern> patterns;
  for (const CatalogueValue& value : values_.at(key)) {
    LinePattern pattern(value.text);
    if (pattern.anchor().size() < min_anchor_bytes)
      refuse_line(subject_, value.line,
                  "the pattern needs at least 4 bytes in a row that are neither * nor {}",
                  "more of the message");
    if (pattern.capture_count() > 1)
      refuse_line(subject_, value.line, "the pattern has {} more than once",
                  "{} once, and * for other text");
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::size_t CatalogueEntry::count(const std::string& key, std::size_t otherwise) const {
  if (values_.count(key) == 0)
    return otherwise;
  const auto number = parse_integer(value(key));
  if (!number || *number < 1 || *number > 1000000)
    refuse_line(subject_, values_.at(key).front().line,
                printable(value(key)) + " is not an integer from 1 to 1000000",
                "an integer, such as 3");
  return static_cast<std::size_t>(*number);
}

CatalogueReader::CatalogueReader(std::vector<CatalogueKind> kinds) : kinds_(std::move(kinds)) {}

const CatalogueKind* CatalogueReader::kind_of(const std::string& name) const {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&name](const CatalogueKind& kind) { return name == kind.name; });
  return found == kinds_.end() ? nullptr : &*found;
}

std::string CatalogueReader::kind_names() const {
  std::vector<std::string> names;
  for (const CatalogueKind& kind : kinds_)
    names.emplace_back(kind.name);
  return join(names, " or ");
}

CatalogueEntry CatalogueReader::begin_entry(const CatalogueKind& kind, const CatalogueValue& value,
                                            const std::string& subject) {
  CatalogueEntry entry;
  entry.kind = kind.name;
  entry.subject_ = subject;
  entry.line_ = value.line;
  entry.id = value.text;
  if (kind.has_text) {
    std::tie(entry.id, entry.text) = first_word(value.text);
    if (entry.text.empty())
      refuse_line(subject, value.line, entry.kind + " " + printable(entry.id) + " has no text",
                  "a line: " + entry.kind + " ID TEXT");
  }
  if (!is_kebab_case(entry.id))
    refuse_line(subject, value.line, printable(entry.id) + " is not an id",
                "lower-case letters, digits and single hyphens: my-message");
  if (!ids_.insert(entry.id).second)
    refuse_line(subject, value.line, entry.id + " is already defined", "another id");
  if (ids_.size() > max_entries)
    refuse_line(subject, value.line, "too many entries", fmt::format("at most {}", max_entries));
  return entry;
}

void CatalogueReader::add_value(CatalogueEntry& entry, const std::string& key,
                                CatalogueValue value) const {
  const std::vector<CatalogueKey>& keys = kind_of(entry.kind)->keys;
  const auto known = std::find_if(keys.begin(), keys.end(),
                                  [&key](const CatalogueKey& other) { return key == other.name; });
  if (known == keys.end()) {
    std::vector<std::string> names;
    for (const CatalogueKey& each : keys)
      names.emplace_back(each.name);
    names.push_back(kind_names());
    refuse_line(entry.subject_, value.line, "unknown key " + printable(key),
                "one of " + join(names, ", "));
  }
  if (value.text.size() > max_value_bytes)
    refuse_line(entry.subject_, value.line, "the value is too long",
                fmt::format("at most {} bytes", max_value_bytes));
  std::vector<CatalogueValue>& values = entry.values_[key];
  const bool repeats =
      known->presence == CatalogueKey::several || known->presence == CatalogueKey::any_number;
  if (!repeats && !values.empty())
    refuse_line(entry.subject_, value.line, key + " occurs twice",
                "one " + key + " for each entry");
  if (values.size() == max_repetitions)
    refuse_line(entry.subject_, value.line, "too many lines " + key + " in one entry",
                fmt::format("at most {}", max_repetitions));
  values.push_back(std::move(value));
}

void CatalogueReader::require_keys(const CatalogueEntry& entry) const {
  for (const CatalogueKey& key : kind_of(entry.kind)->keys)
    if ((key.presence == CatalogueKey::once || key.presence == CatalogueKey::several) &&
        entry.values_.count(key.name) == 0)
      refuse_line(entry.subject_, entry.line_, fmt::format("{} has no {}", entry.id, key.name),
                  fmt::format("a line: {} ...", key.name));
}

std::vector<CatalogueEntry> CatalogueReader::read(const std::string& text,
                                                  const std::string& subject) {
  std::vector<CatalogueEntry> entries;
  CatalogueValue value;
  for (const std::string& line : split(text, '\n')) {
    ++value.line;
    if (first_non_utf8(line))
      refuse_line(subject, value.line, "the line is not UTF-8", "text");
    const std::string_view content = trim(line);
    if (content.empty() || content.front() == '#')
      continue;
    std::string key;
    std::tie(key, value.text) = first_word(content);
    const CatalogueKind* kind = kind_of(key);
    if (kind == nullptr && entries.empty())
      refuse_line(subject, value.line, printable(key) + " is before the first entry",
                  kind_names() + " with an id above it");
    if (value.text.empty())
      refuse_line(subject, value.line, printable(key) + " has no value",
                  printable(key) + " and a value");
    if (kind == nullptr) {
      add_value(entries.back(), key, value);
      continue;
    }
    if (!entries.empty())
      require_keys(entries.back());
    entries.push_back(begin_entry(*kind, value, subject));
  }
  if (!entries.empty())
    require_keys(entries.back());
  return entries;
}

} // namespace shmemctl
