#include "src/base/remote_transport.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t compared_characters = 8;
constexpr const char* variable = "NVSHMEM_REMOTE_TRANSPORT";

/// Of NVSHMEM: "auto" is a word of this tool.
const std::vector<std::string>& known_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = option_spec("REMOTE_TRANSPORT").choices;
    all.erase(std::remove(all.begin(), all.end(), "auto"), all.end());
    return all;
  }();
  return words;
}

/// Users take IBGDA for a remote transport; it has a variable of its own.
bool names_ibgda(const std::string& text) {
  return lower(trim(text)) == "ibgda";
}

std::string fix_of(const std::string& text, bool ibgda_enabled) {
  if (names_ibgda(text) && !ibgda_enabled)
    return std::string("unset ") + variable + "; export NVSHMEM_IB_ENABLE_IBGDA=1";
  const auto near =
      names_ibgda(text) ? std::nullopt : nearest_spelling(lower(trim(text)), known_words());
  return near ? std::string("export ") + variable + "=" + *near : std::string("unset ") + variable;
}

} // namespace

std::optional<std::string> parse_remote_transport(std::string_view text) {
  const std::string asked = lower(text).substr(0, compared_characters);
  for (const std::string& word : known_words())
    if (asked == word.substr(0, compared_characters))
      return word;
  return std::nullopt;
}

Finding unknown_remote_transport(const std::string& text, bool ibgda_enabled) {
  const std::string value = std::string(variable) + "=" + printable(text, 64);
  const std::string what =
      value + " is no transport that NVSHMEM knows (" + join(known_words(), ", ") + ")";
  const std::string where =
      names_ibgda(text) ? "; IBGDA is enabled by NVSHMEM_IB_ENABLE_IBGDA" : "";
  return {"remote-transport-unknown", ibgda_enabled ? Severity::warning : Severity::error, variable,
          ibgda_enabled
              ? what + ": it starts IBGDA alone, without a transport for its proxy"
              : what + ": no transport to other nodes starts, and NVSHMEM does not say so" + where,
          fix_of(text, ibgda_enabled)};
}

std::optional<Finding> check_remote_transport(const Options& options) {
  const OptionValue& value = options.value("REMOTE_TRANSPORT");
  if (value.origin == OptionOrigin::nvshmem_environment && !parse_remote_transport(value.text))
    return unknown_remote_transport(value.text, options.boolean("IB_ENABLE_IBGDA"));
  if (value.problem.empty())
    return std::nullopt;
  const std::string& name = value.origin_name;
  const auto near = nearest_spelling(lower(trim(value.text)), known_words());
  const std::string fix = near ? name + "=" + *near : "leave out " + name;
  return Finding{"remote-transport-unknown", Severity::error, name,
                 name + "=" + printable(value.text, 64) + " is " + value.problem +
                     ": no command that uses it starts",
                 value.origin != OptionOrigin::environment ? fix
                 : near                                    ? "export " + fix
                                                           : "unset " + name};
}

} // namespace shmemctl
