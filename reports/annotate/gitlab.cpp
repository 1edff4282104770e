// GitLab's code quality report: a JSON list, which a merge request compares with its target's by
// the fingerprints.
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/annotate/remark.h"
#include "reports/table.h"
#include "src/base/fnv1a.h"
#include "src/base/text.h"

namespace shmemctl::annotate {

namespace {

const char* severity_of(Severity severity) {
  switch (severity) {
  case Severity::error:
    return "critical";
  case Severity::warning:
    return "minor";
  case Severity::info:
    return "info";
  }
  return "info";
}

std::string location_of(const std::string& path) {
  return safe_text(starts_with(path, "./") ? path.substr(2) : path);
}

/// What a remark is about, without its figures: the same in the next run. Parts are told apart by
/// their lengths.
std::string identity_of(const Remark& remark) {
  std::string identity;
  for (const std::string& part : {location_of(remark.path), remark.id, remark.subject})
    identity += std::to_string(part.size()) + ":" + part;
  return identity;
}

} // namespace

std::string write_gitlab(const std::vector<LoadedReport>& reports) {
  nlohmann::json list = nlohmann::json::array();
  std::map<std::string, int> seen; // GitLab wants each fingerprint once
  for (const Remark& remark : remarks_of(reports)) {
    const std::string identity = identity_of(remark);
    const int ordinal = seen[identity]++;
    const std::string bytes = identity + "#" + std::to_string(ordinal);
    list.push_back(
        {{"description", safe_text(remark.message) +
                             (remark.fix.empty() ? "" : " | fix: " + safe_text(remark.fix))},
         {"check_name", safe_text(remark.id)},
         {"fingerprint",
          fmt::format("{:016x}{:016x}", fnv1a(bytes), fnv1a(bytes, fnv1a("shmemctl")))},
         {"severity", severity_of(remark.severity)},
         {"location", {{"path", location_of(remark.path)}, {"lines", {{"begin", 1}}}}}});
  }
  return to_text(list);
}

} // namespace shmemctl::annotate
