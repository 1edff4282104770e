// The options: their types, the origin of their values, and which of them are secret.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/finding.h"

namespace shmemctl {

/// The environment as a value, so that code that uses it can be tested.
using Environment = std::map<std::string, std::string>;
Environment current_environment();

enum class OptionType { boolean, integer, size, number, text, choice };
const char* to_string(OptionType type);

/// One option. It is read from the command line, then `SHMEMCTL_<name>`, then `NVSHMEM_<name>` if
/// `nvshmem_alias` says that NVSHMEM knows that name, then the configuration file. If an integer in
/// one of NVSHMEM's variables exceeds `maximum`, `maximum` is used: NVSHMEM's own limits are
/// larger.
struct OptionSpec {
  std::string name; ///< upper case without prefix: "HCA_LIST"
  OptionType type = OptionType::text;
  std::string default_value; ///< "" means unset
  std::string doc;           ///< one sentence
  bool nvshmem_alias = false;
  std::vector<std::string> choices = {};           ///< for OptionType::choice
  std::optional<long long> minimum = std::nullopt; ///< for integer and number
  std::optional<long long> maximum = std::nullopt;
  bool secret = false; ///< is or contains a secret: its text is never shown (is_secret_option())
};

/// Names of transports that options may have as values, each list in the registry's order.
struct TransportChoices {
  std::vector<std::string> all;       ///< TRANSPORT
  std::vector<std::string> remote;    ///< REMOTE_TRANSPORT
  std::vector<std::string> automatic; ///< transports that REMOTE_TRANSPORT=auto tries
  std::vector<std::string> carriers;  ///< EMULATED_HCA_OVER
};
/// The names from the registry of transports, whose source file defines this function: the option
/// table needs the names, but this folder includes no other folder.
TransportChoices transport_choices();

/// All options, sorted by name.
const std::vector<OptionSpec>& option_table();
/// What `--help` shows for the value of an option: "SECONDS", "SIZE", "{auto,always,never}".
std::string option_value_name(const OptionSpec& spec);
/// The row of a name without prefix; throws std::logic_error if the name is not in the table.
const OptionSpec& option_spec(std::string_view name);

enum class OptionOrigin {
  default_value,
  config_file,
  nvshmem_environment,
  environment,
  command_line
};
const char* to_string(OptionOrigin origin);

/// The value of an option, and its origin.
struct OptionValue {
  std::string text;
  OptionOrigin origin = OptionOrigin::default_value;
  std::string origin_name; ///< the flag, variable or file that set it; "" for the default
  std::string problem;     ///< why the text is not valid; "" if it is
  bool set() const { return origin != OptionOrigin::default_value; }
};

/// The options of one run. Reading never fails: invalid values are kept with their problem, for
/// `env` to show; a run that depends on them calls `require_valid()`.
class Options {
public:
  /// @param command_line option name ("HCA_LIST") -> text, for flags that were given
  /// @param config option name -> text; option name + "@" -> the configuration file that sets it
  explicit Options(const Environment& environment,
                   const std::map<std::string, std::string>& command_line = {},
                   const std::map<std::string, std::string>& config = {});

  const OptionValue& value(std::string_view name) const;
  std::string text(std::string_view name) const { return value(name).text; }
  /// Typed reads of a valid value; text that is not of the type, or empty (not set, no default),
  /// gives zero. A boolean from NVSHMEM_<name> follows NVSHMEM's rule: it is false only if it
  /// begins with 0, n, N, f or F; anything else, including the empty string, is true.
  bool boolean(std::string_view name) const;
  long long integer(std::string_view name) const;
  std::uint64_t size_bytes(std::string_view name) const;
  double number(std::string_view name) const;

  /// Throws Error (usage) for the first of these options whose value is invalid.
  void require_valid(const std::vector<std::string>& names) const;

private:
  std::map<std::string, OptionValue, std::less<>> values_;
};

/// Why `text` is not a value of this option, naming the legal values; "" if it is valid.
std::string option_problem(const OptionSpec& spec, const std::string& text, OptionOrigin origin);

/// The transport that the value selects in NVSHMEM: "none", "ibrc", "ucx", "ibdevx" or "libfabric".
/// NVSHMEM compares the first 8 characters, without regard to case. Empty for any other value:
/// NVSHMEM then silently starts no transport for its proxy; IBGDA still starts if it is enabled.
std::optional<std::string> parse_remote_transport(std::string_view text);

/// The finding for a value that parse_remote_transport() does not know: an error if IBGDA is not
/// enabled, because then no transport to other nodes starts; otherwise a warning.
/// @param text the value as the user wrote it
Finding unknown_remote_transport(const std::string& text, bool ibgda_enabled);

/// The same for the options of a run, whatever the origin of the value. NVSHMEM reads only its own
/// variable, and accepts any value. A value from another origin is refused by every command that
/// uses it, and is therefore an error. Empty if the value is known or unset.
std::optional<Finding> check_remote_transport(const Options& options);

/// Printed and stored instead of a secret.
inline constexpr const char* secret_stand_in = "set, not shown";

/// Whether the value of this option, a name without prefix, is or contains a secret.
bool is_secret_option(std::string_view name);
/// Whether an environment variable is or contains a secret: one of those options under either
/// prefix, the job's unique id that `run` passes to its PEs (SHMEMCTL_LOCAL_ID), or a name that
/// suggests a secret (it contains SECRET, PASSWORD or the like, is TOKEN, or ends with _TOKEN or
/// _KEY). A ..._FILE only names the file with a secret, so it is not one.
bool is_secret_variable(std::string_view name);

/// `text`, or secret_stand_in if `variable` is secret and the text is not empty.
std::string shown_value(std::string_view variable, const std::string& text);

} // namespace shmemctl
