// Reads input files, with bounded memory whatever they contain.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shmemctl {

/// The default of the maximum size of an input file. A larger regular file is refused unread.
inline constexpr std::size_t max_input_bytes = std::size_t{64} << 20;
/// The maximum nesting of JSON and XML documents.
inline constexpr int max_nesting = 200;

/// While an object exists, reading one input may take at most `seconds`. After that the process
/// names the input and ends with exit code 124, because a call into a file system that hangs cannot
/// be stopped. 0 disables the limit, for callers that limit the run themselves; without an object
/// there is no limit. Reading stdin is never limited: whoever started this process decides how long
/// it waits. Not thread safe; nests.
class InputLimit {
public:
  explicit InputLimit(double seconds);
  InputLimit(const InputLimit&) = delete;
  InputLimit& operator=(const InputLimit&) = delete;
  ~InputLimit();

private:
  double before_;
};

/// Whether this process has read any input by read_input().
bool input_was_read();

/// Reads the whole file `path` ("-" is stdin). Reads a pipe until its writer has closed it. Throws
/// Error (usage) if the file is missing, unreadable, a folder, or larger than `max_bytes`.
std::string read_input(const std::string& path, std::size_t max_bytes = max_input_bytes);

/// Parses JSON with nesting limited to max_nesting. Throws Error (usage) with line and column.
/// @param subject the file's name, for the message
nlohmann::json parse_json(const std::string& text, const std::string& subject);
/// Parses a document with a list that may be too long for memory: each item of the list `key` in
/// the outermost object is passed to `take`, in order, and left out of the document. If the key is
/// repeated, the last list counts, as with any key; `restart` is called where a list begins.
nlohmann::json parse_json_items(const std::string& text, const std::string& subject,
                                const std::string& key, const std::function<void()>& restart,
                                const std::function<void(nlohmann::json&&)>& take);
/// The text of the value of `key` in the outermost object, found without parsing the rest of the
/// text, which need not be valid JSON. "" if there is none; if the key is repeated, the last value.
std::string json_member_text(const std::string& text, const std::string& key);

} // namespace shmemctl
