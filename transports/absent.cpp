#include "transports/absent.h"

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// No other transport's local_info() begins so.
constexpr std::string_view mark = "absent\n";

} // namespace

std::string AbsentTransport::local_info() {
  return std::string(mark) + reason_;
}

void AbsentTransport::refuse() const {
  throw Error(ExitCode::unavailable, name_, "use", reason_, fix_);
}

std::unique_ptr<Transport> not_built(const std::string& name, const std::string& package) {
  return std::make_unique<AbsentTransport>(
      name, "this build has no " + name + ": the headers of " + package + " were missing",
      "install " + package + " and build again");
}

std::optional<std::string> absent_somewhere(const std::vector<std::string>& info) {
  for (std::size_t pe = 0; pe < info.size(); ++pe)
    if (info[pe].starts_with(mark))
      return "PE " + std::to_string(pe) + " says: " + info[pe].substr(mark.size());
  return std::nullopt;
}

} // namespace shmemctl
