// Opening the bootstrap that was chosen.
#include <algorithm>
#include <stdexcept>

#include "src/base/log.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

namespace {

std::unique_ptr<Bootstrap> open_single(BootstrapRequest&, const Deadline&) {
  return std::make_unique<SingleBootstrap>();
}

struct Opener {
  const char* name;
  std::unique_ptr<Bootstrap> (*open)(BootstrapRequest& request, const Deadline& deadline);
};
constexpr Opener openers[] = {
    {"uid", open_uid},       {"local", open_local},   {"mpi", open_mpi},
    {"pmi", open_pmi},       {"pmi2", open_pmi2},     {"pmix", open_pmix},
    {"plugin", open_plugin}, {"single", open_single}, {"openshmem", open_openshmem},
};

/// What a program hands over decides; the options only where it hands over nothing.
BootstrapChoice choice_for(const BootstrapRequest& request) {
  if (request.uid)
    return {"uid", "the program passed a unique id"};
  if (request.mpi_communicator != nullptr)
    return {"mpi", "the program passed a communicator"};
  return choose_bootstrap(*request.options, request.environment);
}

} // namespace

std::unique_ptr<Bootstrap> open_bootstrap(BootstrapRequest request, const Deadline& deadline) {
  if (request.options == nullptr)
    throw std::logic_error("open_bootstrap: no options");
  const BootstrapChoice choice = choice_for(request);
  log(LogLevel::debug, "bootstrap", choice.name + ": " + choice.reason);
  const auto* opener = std::find_if(std::begin(openers), std::end(openers),
                                    [&](const Opener& one) { return choice.name == one.name; });
  if (opener == std::end(openers))
    throw std::logic_error("open_bootstrap: no bootstrap " + choice.name);
  return opener->open(request, deadline);
}

} // namespace shmemctl
