#include "src/instruments/explain/catalogue.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "src/base/error.h"
#include "src/base/severity.h"
#include "src/base/text.h"

namespace shmemctl::explain {

namespace {

constexpr std::size_t max_entries = 4096;
constexpr std::size_t max_patterns = 64; ///< of one entry
constexpr std::size_t max_value_bytes = 4096;
/// A shorter literal would be found in too many lines.
constexpr std::size_t min_anchor_bytes = 4;
/// More bytes make the search no better, and its table larger.
constexpr std::size_t max_anchor_bytes = 16;

/// One line of a catalogue: "key value", and errors that name it.
struct CatalogueLine {
  std::string subject;
  std::size_t number = 0;
  std::string key, value;

  [[noreturn]] void refuse(const std::string& problem, const std::string& expected) const {
    throw Error(ExitCode::usage, fmt::format("{}, line {}", printable(subject), number), "",
                problem, "write " + expected);
  }
};

bool is_kebab_case(std::string_view id) {
  return !id.empty() && id.front() != '-' && id.back() != '-' &&
         id.find("--") == std::string_view::npos && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

/// An entry while it is read. Steps have some of its keys only.
struct Draft {
  bool is_step = false;
  std::size_t line_number = 0;
  std::string id;
  std::map<std::string, std::string> values; ///< keys that may occur once
  std::vector<LinePattern> patterns;
  std::vector<std::string> examples;
};

const std::vector<std::string>& keys_of(bool step) {
  static const std::vector<std::string> of_message = {"library", "versions", "severity", "pattern",
                                                      "cause",   "fix",      "source",   "example"};
  static const std::vector<std::string> of_step = {"library", "pattern", "meaning", "source",
                                                   "example"};
  return step ? of_step : of_message;
}

void take(const CatalogueLine& line, Draft& draft) {
  const std::vector<std::string>& keys = keys_of(draft.is_step);
  if (std::find(keys.begin(), keys.end(), line.key) == keys.end())
    line.refuse("unknown key " + printable(line.key), join(keys, ", ") + ", message or step");
  if (line.value.empty())
    line.refuse(line.key + " has no value", line.key + " and a value");
  if (line.value.size() > max_value_bytes)
    line.refuse("the value is too long", fmt::format("{} bytes at most", max_value_bytes));
  if (line.key == "pattern") {
    LinePattern pattern(line.value);
    if (pattern.anchor().size() < min_anchor_bytes)
      line.refuse("the pattern has no text of at least 4 bytes between its *",
                  "more of the message");
    if (draft.patterns.size() == max_patterns)
      line.refuse("too many patterns", fmt::format("{} at most for one entry", max_patterns));
    draft.patterns.push_back(std::move(pattern));
  } else if (line.key == "example") {
    draft.examples.push_back(line.value);
  } else if (!draft.values.emplace(line.key, line.value).second) {
    line.refuse(line.key + " is there twice", "one " + line.key + " for each entry");
  }
}

std::string value_of(const Draft& draft, const std::string& key, const CatalogueLine& at) {
  const auto found = draft.values.find(key);
  if (found != draft.values.end())
    return found->second;
  CatalogueLine begin = at;
  begin.number = draft.line_number;
  begin.refuse(draft.id + " has no " + key, "a line: " + key + " ...");
}

Severity severity_of(const Draft& draft, const CatalogueLine& at) {
  const std::string name = value_of(draft, "severity", at);
  const auto severity = parse_severity(name);
  if (!severity)
    at.refuse(draft.id + ": " + printable(name) + " is not a severity", "info, warning or error");
  return *severity;
}

void require_patterns(const Draft& draft, const CatalogueLine& at) {
  if (draft.patterns.empty())
    at.refuse(draft.id + " has no pattern", "a line: pattern ...");
}

} // namespace

LinePattern::LinePattern(std::string text) : text_(std::move(text)) {
  std::string piece;
  const auto end_piece = [&] {
    if (!piece.empty())
      pieces_.push_back(std::exchange(piece, ""));
  };
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\\' && i + 1 < text_.size() && text_[i + 1] == '*')
      piece += text_[++i];
    else if (text_[i] == '*')
      end_piece();
    else
      piece += text_[i];
  }
  end_piece();
  for (const std::string& each : pieces_)
    if (each.size() > anchor_.size())
      anchor_ = each;
  anchor_.resize(std::min(anchor_.size(), max_anchor_bytes));
}

bool LinePattern::matches(std::string_view line) const {
  std::size_t at = 0;
  for (const std::string& piece : pieces_) {
    const std::size_t found = line.find(piece, at);
    if (found == std::string_view::npos)
      return false;
    at = found + piece.size();
  }
  return !pieces_.empty();
}

void Catalogue::add(const std::string& text, const std::string& subject) {
  std::optional<Draft> draft;
  CatalogueLine line;
  line.subject = subject;
  const auto end_entry = [&] {
    if (!draft)
      return;
    require_patterns(*draft, line);
    if (draft->is_step) {
      Step step;
      step.id = draft->id;
      step.library = value_of(*draft, "library", line);
      step.patterns = std::move(draft->patterns);
      step.meaning = value_of(*draft, "meaning", line);
      step.source = value_of(*draft, "source", line);
      step.examples = std::move(draft->examples);
      steps_.push_back(std::move(step));
    } else {
      Message message;
      message.id = draft->id;
      message.library = value_of(*draft, "library", line);
      message.versions = value_of(*draft, "versions", line);
      message.severity = severity_of(*draft, line);
      message.patterns = std::move(draft->patterns);
      message.cause = value_of(*draft, "cause", line);
      message.fix = value_of(*draft, "fix", line);
      message.source = value_of(*draft, "source", line);
      message.examples = std::move(draft->examples);
      messages_.push_back(std::move(message));
    }
    draft.reset();
  };
  for (const std::string& raw : split(text, '\n')) {
    ++line.number;
    if (first_non_utf8(raw))
      line.refuse("the line is not UTF-8", "text");
    const std::string_view words = trim(raw);
    if (words.empty() || words.front() == '#')
      continue;
    const std::size_t blank = words.find_first_of(" \t");
    line.key = std::string(words.substr(0, blank));
    line.value = blank == std::string_view::npos ? "" : std::string(trim(words.substr(blank + 1)));
    if (line.key != "message" && line.key != "step") {
      if (!draft)
        line.refuse(printable(line.key) + " stands before the first entry",
                    "message ID or step ID above it");
      take(line, *draft);
      continue;
    }
    end_entry();
    if (!is_kebab_case(line.value))
      line.refuse(printable(line.value) + " is not an id",
                  "lower-case letters, digits and single hyphens: my-message");
    if (!ids_.insert(line.value).second)
      line.refuse(line.value + " is already there", "another id");
    if (ids_.size() > max_entries)
      line.refuse("too many entries", fmt::format("{} at most", max_entries));
    draft.emplace();
    draft->is_step = line.key == "step";
    draft->line_number = line.number;
    draft->id = line.value;
  }
  end_entry();
}

namespace {

using Anchors = std::vector<std::string>;

/// The literals of all patterns behind the words, each once.
Anchors anchors_of(const Catalogue& catalogue, const std::vector<std::string>& words) {
  Anchors anchors = words;
  const auto add = [&anchors, first = words.size()](const std::vector<LinePattern>& patterns) {
    for (const LinePattern& pattern : patterns)
      if (std::find(anchors.begin() + static_cast<std::ptrdiff_t>(first), anchors.end(),
                    pattern.anchor()) == anchors.end())
        anchors.push_back(pattern.anchor());
  };
  for (const Message& message : catalogue.messages())
    add(message.patterns);
  for (const Step& step : catalogue.steps())
    add(step.patterns);
  return anchors;
}

} // namespace

Recogniser::Recogniser(const Catalogue& catalogue, const std::vector<std::string>& words)
    : words_(words.size()), search_(anchors_of(catalogue, words)) {
  const Anchors anchors = anchors_of(catalogue, words);
  candidates_.resize(anchors.size() - words_);
  const auto add = [&](const std::vector<LinePattern>& patterns, bool is_step, std::size_t entry) {
    for (const LinePattern& pattern : patterns) {
      const auto at = std::find(anchors.begin() + static_cast<std::ptrdiff_t>(words_),
                                anchors.end(), pattern.anchor());
      const auto position = static_cast<std::size_t>(at - anchors.begin()) - words_;
      candidates_[position].push_back({&pattern, is_step, entry});
    }
  };
  for (std::size_t i = 0; i < catalogue.messages().size(); ++i)
    add(catalogue.messages()[i].patterns, false, i);
  for (std::size_t i = 0; i < catalogue.steps().size(); ++i)
    add(catalogue.steps()[i].patterns, true, i);
}

Recognised Recogniser::recognise(std::string_view line, std::uint64_t& seen) const {
  Recognised recognised;
  seen = 0;
  std::size_t message_bytes = 0, step_bytes = 0;
  std::uint32_t last = UINT32_MAX; // the same literal again and again is looked at once
  search_.find(line, [&](std::uint32_t literal) {
    if (literal < words_) {
      seen |= std::uint64_t{1} << literal;
      return;
    }
    if (std::exchange(last, literal) == literal)
      return;
    for (const Candidate& candidate : candidates_[literal - words_]) {
      std::size_t& best = candidate.is_step ? step_bytes : message_bytes;
      const std::size_t bytes = candidate.pattern->text().size();
      if (bytes <= best || !candidate.pattern->matches(line))
        continue;
      best = bytes;
      (candidate.is_step ? recognised.step : recognised.message) = candidate.entry;
    }
  });
  return recognised;
}

} // namespace shmemctl::explain
