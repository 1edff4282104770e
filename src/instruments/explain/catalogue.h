// The catalogue of log messages: what each means, why it appears, and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/catalogue_file.h"
#include "src/base/finding.h"
#include "src/instruments/explain/literal_search.h"

namespace shmemctl::explain {

/// A known message.
struct Message {
  std::string id;      ///< "nccl-ib-retry-exceeded"
  std::string library; ///< "NCCL", "NVSHMEM", "UCX", ...
  std::string versions;
  Severity severity = Severity::error;
  std::vector<LinePattern> patterns; ///< a line that matches any of them is the message
  std::string cause, fix;
  std::string source; ///< URL of the documentation, thread or source with that statement
  std::vector<std::string> examples;
};

/// A line that every rank writes when it reaches a certain point. If at least half of the ranks
/// with any step have it, one of them without it ended before that point.
struct Step {
  std::string id;
  std::string library;
  std::vector<LinePattern> patterns;
  std::string meaning; ///< what the line says: "it has initialised its NCCL communicator"
  std::string source;
  std::vector<std::string> examples;
};

/// The entries that a line of the log matches: at most one message, and at most one step.
struct Recognised {
  std::optional<std::size_t> message, step; ///< positions in the catalogue
};

class Catalogue {
public:
  Catalogue();

  /// Adds the entries of a text in the format that log_messages.conf describes. Throws Error
  /// (usage) with the line and what was expected there.
  /// @param subject the file's name, or "built in"
  void add(const std::string& text, const std::string& subject);

  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<Step>& steps() const { return steps_; }

private:
  CatalogueReader reader_;
  std::vector<Message> messages_;
  std::vector<Step> steps_;
};

/// The catalogue that is part of this binary.
std::string log_messages_text();

/// Recognises lines. The catalogue must outlive this object and must not change.
class Recogniser {
public:
  /// @param words literals of the caller that are searched in the same pass
  Recogniser(const Catalogue& catalogue, const std::vector<std::string>& words);

  /// If several patterns of the catalogue match, the one with the longest text counts.
  /// @param seen  bit i is set if the line contains words[i]; at most 64 words
  Recognised recognise(std::string_view line, std::uint64_t& seen) const;

private:
  struct Candidate {
    const LinePattern* pattern = nullptr;
    bool is_step = false;
    std::size_t entry = 0;
  };

  std::size_t words_;
  std::vector<std::vector<Candidate>> candidates_; ///< by the literal's position after the words
  LiteralSearch search_;
};

} // namespace shmemctl::explain
