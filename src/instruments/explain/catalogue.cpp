#include "src/instruments/explain/catalogue.h"

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace shmemctl::explain {

namespace {

/// Keys of both kinds of entries, and their order in an error.
const std::vector<CatalogueKind>& kinds() {
  using Key = CatalogueKey;
  static const std::vector<CatalogueKind> kinds = {{"message",
                                                    {{"library"},
                                                     {"versions"},
                                                     {"severity"},
                                                     {"pattern", Key::several},
                                                     {"cause"},
                                                     {"fix"},
                                                     {"source"},
                                                     {"example", Key::any_number}}},
                                                   {"step",
                                                    {{"library"},
                                                     {"pattern", Key::several},
                                                     {"meaning"},
                                                     {"source"},
                                                     {"example", Key::any_number}}}};
  return kinds;
}

} // namespace

Catalogue::Catalogue() : reader_(kinds()) {}

void Catalogue::add(const std::string& text, const std::string& subject) {
  for (const CatalogueEntry& entry : reader_.read(text, subject)) {
    if (entry.kind == "step") {
      Step step;
      step.id = entry.id;
      step.library = entry.value("library");
      step.patterns = entry.patterns("pattern");
      step.meaning = entry.value("meaning");
      step.source = entry.value("source");
      step.examples = entry.values("example");
      steps_.push_back(std::move(step));
    } else {
      Message message;
      message.id = entry.id;
      message.library = entry.value("library");
      message.versions = entry.value("versions");
      message.severity = entry.severity("severity");
      message.patterns = entry.patterns("pattern");
      message.cause = entry.value("cause");
      message.fix = entry.value("fix");
      message.source = entry.value("source");
      message.examples = entry.values("example");
      messages_.push_back(std::move(message));
    }
  }
}

namespace {

/// The words, then the literals of all patterns, each once.
std::vector<std::string> literals_of(const Catalogue& catalogue,
                                     const std::vector<std::string>& words) {
  std::vector<std::string> literals = words;
  std::unordered_set<std::string> known;
  const auto add = [&literals, &known](const std::vector<LinePattern>& patterns) {
    for (const LinePattern& pattern : patterns)
      if (known.insert(pattern.anchor()).second)
        literals.push_back(pattern.anchor());
  };
  for (const Message& message : catalogue.messages())
    add(message.patterns);
  for (const Step& step : catalogue.steps())
    add(step.patterns);
  return literals;
}

} // namespace

Recogniser::Recogniser(const Catalogue& catalogue, const std::vector<std::string>& words)
    : words_(words.size()), search_(literals_of(catalogue, words)) {
  std::unordered_map<std::string, std::size_t> positions; // in the order of literals_of()
  const auto add = [&](const std::vector<LinePattern>& patterns, bool is_step, std::size_t entry) {
    for (const LinePattern& pattern : patterns) {
      const std::size_t position =
          positions.try_emplace(pattern.anchor(), positions.size()).first->second;
      if (position == candidates_.size())
        candidates_.emplace_back();
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
  std::uint32_t last = UINT32_MAX; // a literal that is repeated directly is handled once
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
