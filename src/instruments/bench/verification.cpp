#include "src/instruments/bench/verification.h"

#include <fmt/format.h>

namespace shmemctl::bench {

void serialize(Archive& archive, WrongByte& wrong) {
  archive(wrong.pe, wrong.offset_bytes, wrong.expected, wrong.found, wrong.what);
}

void serialize(Archive& archive, PeVerdict& verdict) {
  archive(verdict.unverified_reason, verdict.wrong);
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
  return merge_verdicts(runtime.gather_values(own, "verification result"));
}

} // namespace shmemctl::bench
