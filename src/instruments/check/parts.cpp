#include "src/instruments/check/parts.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

bool contains(const std::vector<std::string>& list, const char* id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

constexpr CheckPart expectation{expect_part, "what a node of this type must have", 1};

std::vector<std::string> part_ids(const PartChoice& choice) {
  std::vector<std::string> ids;
  for (const CheckPart& part : parts_of(choice))
    ids.emplace_back(part.id);
  return ids;
}

void require_known(const std::vector<std::string>& chosen, const std::string& flag,
                   const PartChoice& choice) {
  const std::vector<std::string> ids = part_ids(choice);
  for (const std::string& id : chosen)
    if (id != expect_part && std::find(ids.begin(), ids.end(), id) == ids.end())
      throw Error(ExitCode::usage, flag, "", "check has no part \"" + printable(id) + "\"",
                  did_you_mean(id, ids) + "the parts are " + join(ids, ", ") +
                      "; single checks: shmemctl doctor --only ID");
}

} // namespace

const std::vector<CheckPart>& check_parts() {
  static const std::vector<CheckPart> parts{
      {"topo", "topology, and the NIC that each PE uses", 1},
      {"doctor", "the preconditions", 1},
      {"gpu-links", "measured copy bandwidth between every pair of GPUs", 2},
      {"bringup", "4 PEs come up, and every pair of them does verified put, get, atomics, signals",
       1},
      {"bench", "sweeps between 2 PEs, each verified", 2},
      {"moe", "MoE dispatch and combine between 2 PEs, every bit verified", 2},
      {"bench-gpu", "sweeps between kernels of 2 PEs, each verified", 2},
  };
  return parts;
}

std::vector<CheckPart> parts_of(const PartChoice& choice) {
  std::vector<CheckPart> parts;
  if (choice.expects)
    parts.push_back(expectation);
  parts.insert(parts.end(), check_parts().begin(), check_parts().end());
  return parts;
}

std::string part_title(const std::string& id) {
  if (id == expectation.id)
    return expectation.title;
  for (const CheckPart& part : check_parts())
    if (part.id == id)
      return part.title;
  return "";
}

void require_parts(const PartChoice& choice) {
  require_known(choice.only, "--only", choice);
  require_known(choice.skip, "--skip", choice);
  if (!choice.expects && contains(choice.only, expect_part))
    throw Error(ExitCode::usage, "--only", "",
                "the part expect compares the node with a file, but --expect is missing",
                "add --expect FILE; a good node writes it with --record-expect FILE");
  const std::vector<CheckPart> parts = parts_of(choice);
  if (std::none_of(parts.begin(), parts.end(), [&choice](const CheckPart& part) {
        return why_skipped(choice, part, "").empty();
      }))
    throw Error(ExitCode::usage, "--skip", "", "no part of check is left",
                "omit --skip, or name fewer of " + join(part_ids(choice), ", "));
}

std::string why_skipped(const PartChoice& choice, const CheckPart& part,
                        const std::string& failed) {
  if (contains(choice.skip, part.id))
    return "named in --skip";
  if (!choice.only.empty() && !contains(choice.only, part.id))
    return "not in --only";
  if (choice.only.empty() && part.level > choice.level)
    return fmt::format("runs with --level {} or higher", part.level);
  if (choice.fail_early && !failed.empty())
    return failed + " failed (--fail-early)";
  return "";
}

double time_limit_s(int level) {
  return level <= 1 ? 90 : level < soak_level ? 240 : 1800;
}

} // namespace shmemctl
