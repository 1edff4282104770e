// Finding the process manager: PMI_FD, PMI_PORT, PMI_RANK, PMI_SIZE.
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include "src/base/error.h"
#include "src/base/socket.h"
#include "src/base/text.h"
#include "src/base/unique_handle.h"
#include "src/bootstrap/pmi_space.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr long long max_size = 1 << 20;
constexpr long long max_descriptor = 1 << 20;
constexpr const char* use_a_launcher =
    "start the job with a launcher that serves PMI (mpiexec.hydra, srun --mpi=pmi2), or leave "
    "SHMEMCTL_BOOTSTRAP at auto";

std::string variable(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : std::string(trim(found->second));
}

long long number(const Environment& environment, const char* name, long long minimum,
                 long long maximum) {
  const std::string text = variable(environment, name);
  if (text.empty())
    throw Error(ExitCode::usage, name, "", "not set", use_a_launcher);
  const auto value = parse_integer(text);
  if (!value || *value < minimum || *value > maximum)
    throw Error(ExitCode::usage, name, "",
                "\"" + printable(text, 40) + "\" is not a number from " + std::to_string(minimum) +
                    " to " + std::to_string(maximum),
                "unset it in job scripts: the launcher sets it");
  return *value;
}

} // namespace

PmiIdentity pmi_identity(const Environment& environment) {
  PmiIdentity identity;
  identity.size = static_cast<int>(number(environment, "PMI_SIZE", 1, max_size));
  identity.rank = static_cast<int>(number(environment, "PMI_RANK", 0, identity.size - 1));
  identity.job_id = variable(environment, "PMI_JOBID");
  return identity;
}

FileDescriptor pmi_descriptor(const Environment& environment) {
  const int descriptor = static_cast<int>(number(environment, "PMI_FD", 0, max_descriptor));
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
    throw system_error("PMI_FD=" + std::to_string(descriptor), "use", errno,
                       "start this process directly from the launcher: a wrapper closed the "
                       "launcher's descriptor, or another bootstrap has used it");
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    throw system_error("PMI_FD=" + std::to_string(descriptor), "set its flags", errno,
                       use_a_launcher);
  return FileDescriptor(descriptor);
}

FileDescriptor pmi_connect(const Environment& environment, const Deadline& deadline) {
  const std::string text = variable(environment, "PMI_PORT");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw Error(ExitCode::usage, "PMI_PORT", "", "\"" + printable(text, 60) + "\" is not host:port",
                use_a_launcher);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result =
      ::getaddrinfo(text.substr(0, colon).c_str(), text.c_str() + colon + 1, &hints, &found);
  if (result != 0)
    throw Error(ExitCode::unavailable, "PMI_PORT=" + printable(text, 60), "resolve",
                ::gai_strerror(result),
                "check that this node can resolve the launcher's host name");
  const CHandle<addrinfo, ::freeaddrinfo> addresses(found);
  const SocketAddress address(addresses->ai_addr, addresses->ai_addrlen);
  const Socket socket = Socket::connect(address, "the process manager at " + text, deadline);
  FileDescriptor own(::fcntl(socket.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!own)
    throw system_error("PMI_PORT", "duplicate its descriptor", errno,
                       "raise the limit of open files: ulimit -n");
  return own;
}

std::unique_ptr<Bootstrap> open_pmi(BootstrapRequest& request, const Deadline& deadline) {
  const Environment& environment = request.environment;
  std::unique_ptr<KeyValueSpace> space;
  if (variable(environment, "PMI_FD").empty() && !variable(environment, "PMI_PORT").empty()) {
    const int id = static_cast<int>(number(environment, "PMI_ID", 0, max_size));
    space = make_pmi1_space_by_id(pmi_connect(environment, deadline), id, deadline);
  } else {
    const PmiIdentity identity = pmi_identity(environment);
    space = make_pmi1_space(pmi_descriptor(environment), identity, deadline);
  }
  return make_kvs_bootstrap(std::move(space), deadline);
}

std::unique_ptr<Bootstrap> open_pmi2(BootstrapRequest& request, const Deadline& deadline) {
  const PmiIdentity identity = pmi_identity(request.environment);
  return make_kvs_bootstrap(
      make_pmi2_space(pmi_descriptor(request.environment), identity, deadline), deadline);
}

} // namespace shmemctl
