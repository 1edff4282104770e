// Reads logs line by line and collects known and unknown errors, the choices of each rank, and the
// last step that each rank reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/explain/catalogue.h"
#include "src/instruments/explain/choices.h"
#include "src/instruments/explain/log_lines.h"

namespace shmemctl::explain {

struct LogFile {
  std::string name;
  std::uint64_t lines = 0, bytes = 0, cut_lines = 0;
  bool ended_within_line = false;
};

/// The content of all lines of one rank or, if its rank is unknown, of one process.
struct RankLog {
  std::string name;        ///< "rank 3", "node1:4711", "train.log"
  std::optional<int> rank; ///< the rank as the launcher or the library numbers it
  std::string host;        ///< "" if the log does not say
  std::string process;     ///< "host:pid", or ""
  ProcessSetup setup;
  std::uint64_t lines = 0;
  Place last; ///< place of its last line
  /// Position in the catalogue -> place of the step's first line.
  std::map<std::size_t, Place> steps;
  std::set<std::size_t> messages; ///< positions in the catalogue of the messages that it wrote
};

/// A known message, with all its occurrences.
struct KnownHit {
  std::size_t message = 0; ///< position in the catalogue
  Place first;
  std::string text; ///< the first line that matches, safe to print
  std::uint64_t count = 0;
  std::vector<std::string> ranks; ///< names, sorted
};

/// A line that has the form of an error but is not in the catalogue. Lines that differ only in
/// numbers are the same error.
struct UnknownHit {
  std::string library;
  Severity severity = Severity::warning;
  Place first;
  std::string text;
  std::uint64_t count = 0;
  std::vector<std::string> ranks;
};

struct LogFacts {
  std::vector<LogFile> files;
  std::vector<RankLog> ranks;      ///< ordered by rank; writers without a rank follow
  std::vector<KnownHit> known;     ///< in the order of their first lines
  std::vector<UnknownHit> unknown; ///< in the same order; the first max_unknown different ones
  std::uint64_t more_unknown = 0;  ///< number of further unknown lines that differ from these
};

class LogScan {
public:
  static constexpr std::size_t max_unknown = 200;
  static constexpr std::size_t max_processes = 65536;

  /// The catalogue must outlive this object and must not change.
  explicit LogScan(const Catalogue& catalogue);

  /// Reads a whole file, or stdin for "-". Throws like read_log().
  void scan_file(const std::string& path);
  /// As scan_file(), for text in memory.
  void scan_text(const std::string& name, std::string_view text);
  /// The result; call it after the last file.
  LogFacts facts();

private:
  struct Writer {
    std::optional<int> launcher_rank;
    std::string process, host;
    std::size_t file = 0; ///< the file of its first line
    ProcessSetup setup;
    std::uint64_t lines = 0;
    Place last;
    std::map<std::size_t, Place> steps;
    std::set<std::size_t> messages;
    bool in_traceback = false;
    bool uses_library = false; ///< one of its lines has the mark of a library or an error
  };
  struct Seen {
    Place first;
    std::string text;
    std::uint64_t count = 0;
    std::set<std::size_t> writers;
  };
  struct SeenUnknown : Seen {
    std::string library;
    Severity severity = Severity::warning;
  };

  void begin_file(const std::string& name);
  void end_file(const LineSplitter& lines);
  void take(std::string_view line, std::uint64_t number);
  std::size_t writer_of(const LineOrigin& origin);
  std::size_t add_writer(Writer writer);
  void take_unknown(std::string_view body, const Place& place, std::size_t writer,
                    const std::string& library, Severity severity);
  /// Groups the writers that are the same rank. Returns for each writer its position in `ranks`;
  /// empty for writers that can be given to no rank and wrote no known message.
  std::vector<std::optional<std::size_t>> group(std::vector<RankLog>& ranks) const;

  Recogniser recogniser_;
  std::vector<LogFile> files_;
  std::vector<Writer> writers_;
  std::unordered_map<int, std::size_t> by_rank_;
  std::unordered_map<std::string, std::size_t> by_process_;
  std::unordered_map<std::size_t, std::size_t> by_file_; ///< by file: writer of unmarked lines
  std::size_t last_writer_ = 0;
  bool labelled_ = false, label_decided_ = false;
  std::string clean_, key_;
  std::map<std::size_t, Seen> known_;
  std::map<std::uint64_t, SeenUnknown> unknown_; ///< by the hash of the text without numbers
  std::uint64_t more_unknown_ = 0;
};

} // namespace shmemctl::explain
