// A change of the environment that can be printed as lines and applied to a mapping request, so
// that what is printed is what was simulated.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/topo/mapping/mapping.h"

namespace shmemctl {

/// Variables to set, for all local ranks or for each, and variables to unset.
class EnvChange {
public:
  EnvChange& set(const std::string& variable, const std::string& value);
  /// One value for each local rank; the same as set() if all are equal.
  EnvChange& set_per_rank(const std::string& variable, const std::vector<std::string>& values);
  EnvChange& unset(const std::string& variable);
  /// The variables of `other` too; where both name one, as `other` has it.
  EnvChange& add(const EnvChange& other);

  bool empty() const { return variables_.empty(); }
  /// Both name a variable, and not with the same value.
  bool contradicts(const EnvChange& other) const;

  /// The request of a job whose ranks have this environment. Variables that a mapping does not
  /// depend on change nothing.
  MappingRequest applied_to(MappingRequest request) const;

  /// `unset ...`, `export ...`, and for values per rank a bash array and an export that picks by
  /// the launcher's local rank.
  std::vector<std::string> lines() const;
  /// The lines as one, joined by "; ".
  std::string text() const;

private:
  /// Nothing: unset. One value: of all ranks.
  using Values = std::optional<std::vector<std::string>>;
  const Values* find(const std::string& variable) const;
  EnvChange& put(const std::string& variable, Values values);

  std::vector<std::pair<std::string, Values>> variables_; ///< in the order of the first mention
};

} // namespace shmemctl
