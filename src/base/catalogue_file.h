// Data files of known messages: their format, and the patterns by which a line is recognised.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "src/base/finding.h"

namespace shmemctl {

/// Literals that a line must contain in this order, with any text between them: "status=*(12)" is
/// {"status=", "(12)"}. Any text may precede and follow them.
class LinePattern {
public:
  /// `begin` is the offset of the first literal, `captured` the text that {} matched.
  struct Match {
    std::size_t begin = 0;
    std::string_view captured;
  };

  /// Matches nothing.
  LinePattern() = default;
  /// @param text `*` matches any text, `\*` an asterisk. The first `{}` matches any text too, which
  ///             a match reports; `\{` matches a brace.
  explicit LinePattern(std::string text);

  std::optional<Match> match(std::string_view line) const;
  bool matches(std::string_view line) const { return match(line).has_value(); }
  const std::string& text() const { return text_; }
  /// The literal by which lines are searched for the pattern: the longest one, or its first bytes.
  /// "" if the pattern has no literal.
  const std::string& anchor() const { return anchor_; }
  /// Number of `{}` in the pattern.
  std::size_t capture_count() const { return capture_count_; }

private:
  std::string text_, anchor_;
  std::vector<std::string> pieces_;
  std::size_t capture_at_ = 0; ///< how many pieces precede {}
  std::size_t capture_count_ = 0;
};

/// A key of an entry, a line "KEY VALUE".
struct CatalogueKey {
  enum Presence { once, optional, several, any_number }; ///< several: at least once
  const char* name;
  Presence presence = once;
};

/// A line that begins an entry, "NAME ID", and the keys of the lines below it.
struct CatalogueKind {
  const char* name;
  std::vector<CatalogueKey> keys;
  /// Whether a text follows the id: "NAME ID TEXT".
  bool has_text = false;
};

/// A value, and the number of its line.
struct CatalogueValue {
  std::string text;
  std::size_t line = 0;
};

/// An entry as it is written in the file, after the check that it has all required keys and no
/// unknown ones.
class CatalogueEntry {
public:
  std::string kind, id, text;

  /// The value of a key that the entry contains; for a repeated key, the first value.
  const std::string& value(const std::string& key) const { return values_.at(key).front().text; }
  /// All values of a key in the order of their lines; none if it is missing.
  std::vector<std::string> values(const std::string& key) const;

  /// Throws Error (usage) with the line if the value is not a severity.
  Severity severity(const std::string& key) const;
  /// The patterns of a key. Each has a literal of at least 4 bytes, and `{}` at most once;
  /// otherwise throws Error (usage) with the line.
  std::vector<LinePattern> patterns(const std::string& key) const;
  /// A number from 1 to 1000000; `otherwise` if the key is missing. Throws Error (usage) with the
  /// line.
  std::size_t count(const std::string& key, std::size_t otherwise) const;

  /// Throws Error (usage): the line of this key and its problem. The fix is "write " + expected.
  [[noreturn]] void refuse_key(const std::string& key, const std::string& problem,
                               const std::string& expected) const;

private:
  friend class CatalogueReader;
  std::string subject_;
  std::size_t line_ = 0; ///< line of its id
  std::map<std::string, std::vector<CatalogueValue>> values_;
};

/// Reads files of one format: lines "KEY VALUE", some of which begin an entry. Blank lines and
/// lines that start with # are ignored.
class CatalogueReader {
public:
  explicit CatalogueReader(std::vector<CatalogueKind> kinds);

  /// The entries of a text, in its order. An id must be unique in all texts of a reader. Throws
  /// Error (usage) with the line and what was expected there.
  /// @param subject the file's name, or "built in"
  std::vector<CatalogueEntry> read(const std::string& text, const std::string& subject);

private:
  const CatalogueKind* kind_of(const std::string& name) const;
  CatalogueEntry begin_entry(const CatalogueKind& kind, const CatalogueValue& value,
                             const std::string& subject);
  void add_value(CatalogueEntry& entry, const std::string& key, CatalogueValue value) const;
  void require_keys(const CatalogueEntry& entry) const;
  /// The kinds of entries as text: "message or step".
  std::string kind_names() const;

  std::vector<CatalogueKind> kinds_;
  std::unordered_set<std::string> ids_;
};

} // namespace shmemctl
