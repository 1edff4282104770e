#include "src/instruments/bench/verification.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/json_values.h"

namespace shmemctl::bench {

using nlohmann::json;

std::string to_text(const PeVerdict& verdict) {
  json out = {{"reason", verdict.unverified_reason}};
  if (verdict.wrong)
    out["wrong"] = {{"pe", verdict.wrong->pe},
                    {"offset_bytes", verdict.wrong->offset_bytes},
                    {"expected", verdict.wrong->expected},
                    {"found", verdict.wrong->found},
                    {"what", verdict.wrong->what}};
  return json_line(out);
}

PeVerdict pe_verdict_from(const std::string& text) {
  try {
    const json in = from_json_line(text);
    PeVerdict verdict{in.at("reason").get<std::string>(), std::nullopt};
    if (const auto wrong = in.find("wrong"); wrong != in.end())
      verdict.wrong = WrongByte{require_whole_number<int>(wrong->at("pe")),
                                require_whole_number<std::uint64_t>(wrong->at("offset_bytes")),
                                require_whole_number<std::uint64_t>(wrong->at("expected")),
                                require_whole_number<std::uint64_t>(wrong->at("found")),
                                wrong->at("what").get<std::string>()};
    return verdict;
  } catch (const std::exception& problem) {
    throw Error(ExitCode::unavailable, "verification result of a PE", "read", problem.what(),
                "run the same version of shmemctl on all hosts");
  }
}

std::string describe(const WrongByte& wrong) {
  const std::string what = wrong.what.empty() ? "" : " (" + wrong.what + ")";
  return fmt::format("PE {}, offset {}: expected {:#04x}, found {:#04x}{}", wrong.pe,
                     wrong.offset_bytes, wrong.expected, wrong.found, what);
}

Verification merge_verdicts(const std::vector<PeVerdict>& by_pe) {
  Verification all;
  for (const PeVerdict& verdict : by_pe) {
    if (verdict.wrong)
      all.wrong.push_back(*verdict.wrong);
    if (all.reason.empty())
      all.reason = verdict.unverified_reason;
  }
  if (!all.wrong.empty()) {
    all.verified = Verified::failed;
    all.reason = describe(all.wrong.front());
    if (all.wrong.size() > 1)
      all.reason += fmt::format("; {} PEs found wrong bytes", all.wrong.size());
  } else if (all.reason.empty()) {
    all.verified = Verified::passed;
  }
  return all;
}

Verification verify_point(Runtime& runtime, Case& body, std::uint64_t iterations) {
  runtime.collectives().barrier(team_world);
  PeVerdict own{body.unverified_reason(), std::nullopt};
  if (own.unverified_reason.empty())
    own.wrong = body.verify(iterations);
  std::vector<PeVerdict> all;
  for (const std::string& text : runtime.gather_text(to_text(own)))
    all.push_back(pe_verdict_from(text));
  return merge_verdicts(all);
}

} // namespace shmemctl::bench
