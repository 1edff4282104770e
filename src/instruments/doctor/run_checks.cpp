#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/doctor/doctor.h"

namespace shmemctl {

namespace {

bool names(const Check& check, const std::string& word) {
  return word == check.id || word == check.group;
}

bool among(const Check& check, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return names(check, word); });
}

/// Throws Error (usage) for a word of this flag that is neither a check nor a group.
void require_known(const char* flag, const std::vector<std::string>& words) {
  const std::vector<Check>& checks = all_checks();
  for (const std::string& word : words) {
    if (std::any_of(checks.begin(), checks.end(),
                    [&](const Check& check) { return names(check, word); }))
      continue;
    std::vector<std::string> candidates;
    for (const Check& check : checks) {
      if (std::find(candidates.begin(), candidates.end(), check.group) == candidates.end())
        candidates.push_back(check.group);
      candidates.push_back(check.id);
    }
    throw Error(ExitCode::usage, flag, "", "unknown check or group \"" + word + "\"",
                did_you_mean(word, candidates) + "run shmemctl doctor --list to see all checks");
  }
}

/// Runs a check so that an exception does not end the other checks. A check must not throw, but a
/// library that it calls may.
CheckResult run_guarded(const Check& check, const CheckContext& context) {
  try {
    return check.run(context);
  } catch (const Error& error) {
    return {CheckStatus::skipped, error.message(), error.subject(), error.fix()};
  } catch (const std::exception& error) {
    return {CheckStatus::skipped, printable(std::string("the check failed: ") + error.what()), "",
            ""};
  }
}

} // namespace

std::vector<CheckOutcome> run_checks(const CheckContext& context,
                                     const std::vector<std::string>& only,
                                     const std::vector<std::string>& skip,
                                     const std::function<void(const CheckOutcome&)>& observe,
                                     const std::function<void(const Check&)>& begins) {
  require_known("--only", only);
  require_known("--skip", skip);
  std::vector<CheckOutcome> outcomes;
  for (const Check& check : all_checks()) {
    if ((!only.empty() && !among(check, only)) || among(check, skip))
      continue;
    if (begins)
      begins(check);
    const auto begun = std::chrono::steady_clock::now();
    CheckResult result = run_guarded(check, context);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    outcomes.push_back({&check, std::move(result), taken.count()});
    if (observe)
      observe(outcomes.back());
  }
  return outcomes;
}

} // namespace shmemctl
