// The options: their types, where their values come from, which are secret.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/finding.h"

namespace shmemctl {

/// The environment as a value, so that every use of it can be tested.
using Environment = std::map<std::string, std::string>;
Environment current_environment();

enum class OptionType { boolean, integer, size, number, text, choice };
const char* to_string(OptionType type);

/// One option. It is read from the command line, then `SHMEMCTL_<name>`, then `NVSHMEM_<name>` if
/// `nvshmem_alias` says that NVSHMEM knows that name, then the configuration file.
struct OptionSpec {
  std::string name; ///< upper case without prefix: "HCA_LIST"
  OptionType type = OptionType::text;
  std::string default_value; ///< "" means unset
  std::string doc;           ///< one sentence
  bool nvshmem_alias = false;
  std::vector<std::string> choices = {};           ///< for OptionType::choice
  std::optional<long long> minimum = std::nullopt; ///< for integer and number
  std::optional<long long> maximum = std::nullopt;
  bool secret = false; ///< is or contains a secret: its text is never shown (option_secrets.h)
};

/// Names of transports that options may have as values, each list in order of preference.
struct TransportChoices {
  std::vector<std::string> all;       ///< TRANSPORT
  std::vector<std::string> remote;    ///< REMOTE_TRANSPORT
  std::vector<std::string> automatic; ///< transports that REMOTE_TRANSPORT=auto tries
  std::vector<std::string> carriers;  ///< EMULATED_HCA_OVER
};
/// From the registry of transports, whose source defines this function: the option table needs the
/// names, and this folder includes no other.
TransportChoices transport_choices();

/// All options, sorted by name.
const std::vector<OptionSpec>& option_table();
/// What `--help` shows for the value of an option: "SECONDS", "SIZE", "{auto,always,never}".
std::string option_value_name(const OptionSpec& spec);
/// The row of a name without prefix; throws std::logic_error for a name that is not in the table.
const OptionSpec& option_spec(std::string_view name);

enum class OptionOrigin {
  default_value,
  config_file,
  nvshmem_environment,
  environment,
  command_line
};
const char* to_string(OptionOrigin origin);

/// What an option is set to and why.
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
  /// @param config option name -> text; option name + "@" -> the configuration file that has it
  explicit Options(const Environment& environment,
                   const std::map<std::string, std::string>& command_line = {},
                   const std::map<std::string, std::string>& config = {});

  const OptionValue& value(std::string_view name) const;
  std::string text(std::string_view name) const { return value(name).text; }
  /// Typed reads of a valid value; an invalid or unset one gives the type's zero. A boolean that
  /// came from NVSHMEM_<name> is read by NVSHMEM's rule: false only if it begins with 0, n, N, f
  /// or F; anything else, the empty string included, is true.
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
/// It compares the first 8 characters, without regard to case. Nothing for any other value: then
/// NVSHMEM starts no transport for its proxy, and says nothing about it; IBGDA still starts where
/// it is enabled.
std::optional<std::string> parse_remote_transport(std::string_view text);

/// The finding for a value that parse_remote_transport() does not know: an error if IBGDA is not
/// enabled, because then no transport to other nodes starts; otherwise a warning.
/// @param text the value as the user wrote it
Finding unknown_remote_transport(const std::string& text, bool ibgda_enabled);

/// The same for the options of a run, wherever the value comes from. NVSHMEM reads only its own
/// variable, and accepts any value; a value that this tool gets otherwise is refused by every
/// command that uses it, and is therefore an error. Empty if the value is known or unset.
std::optional<Finding> check_remote_transport(const Options& options);

/// Printed and stored instead of a secret.
inline constexpr const char* secret_stand_in = "set, not shown";

/// Whether that row of the option table is or contains a secret; the name is without prefix.
bool is_secret_option(std::string_view name);
/// Whether an environment variable is or contains a secret: one of those options under either
/// prefix, what `run` passes to its PEs, or any name that suggests it (..._SECRET, ..._PASSWORD,
/// TOKEN, ..._TOKEN, ..._KEY). A ..._FILE names the file with a secret, and is none.
bool is_secret_variable(std::string_view name);

/// `text`, or secret_stand_in if `variable` is a secret one and the text is not empty.
std::string shown_value(std::string_view variable, const std::string& text);

} // namespace shmemctl
