#include "transports/absent.h"

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// The beginning of the local_info() of an AbsentTransport, and of no other transport.
constexpr std::string_view mark = "absent\n";

} // namespace

std::string AbsentTransport::local_info() {
  return std::string(mark) + reason_;
}

void AbsentTransport::refuse() const {
  throw Error(ExitCode::unavailable, name_, "use", reason_, fix_);
}

std::unique_ptr<Transport> not_built(const TransportRow& row) {
  return std::make_unique<AbsentTransport>(row.name, why_absent(row), absent_fix(row));
}

std::optional<std::string> missing_somewhere(const std::vector<std::string>& info) {
  for (std::size_t pe = 0; pe < info.size(); ++pe)
    if (info[pe].starts_with(mark))
      return "PE " + std::to_string(pe) + " says: " + info[pe].substr(mark.size());
  return std::nullopt;
}

} // namespace shmemctl
