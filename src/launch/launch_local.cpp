// `run` with the rendezvous that it is meant to have; on its own, so that tests can do without.
#include <memory>

#include "src/bootstrap/uid.h"
#include "src/launch/launch.h"

namespace shmemctl {

namespace {
/// A program may start OpenSHMEM whenever it likes, so the rendezvous lives as long as the job.
constexpr double rendezvous_timeout_s = 7.0 * 86400;
} // namespace

LaunchResult launch(const LaunchRequest& request) {
  std::unique_ptr<Rendezvous> rendezvous;
  return launch(request, [&rendezvous] {
    rendezvous = Rendezvous::start_local(rendezvous_timeout_s);
    return rendezvous->id().text();
  });
}

} // namespace shmemctl
