// The bootstraps `uid` and `local`, opened from options and environment.
#include <algorithm>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/handshake.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/bootstrap/frame.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/launcher_variables.h"
#include "src/bootstrap/resolve.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_secret_bytes = 4096;

int family_number(const std::string& family) {
  if (family == "AF_INET")
    return AF_INET;
  return family == "AF_INET6" ? AF_INET6 : AF_UNSPEC;
}

/// What ssh asks of a private key. A pipe or another thing that is no file has no readers to fear.
void require_private(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_mode & S_IROTH) == 0)
    return; // what cannot be looked at is refused by who reads it
  throw Error(ExitCode::usage, "BOOTSTRAP_UID_SECRET_FILE=\"" + printable(path) + "\"", "use",
              "readable by every user of this host", "run chmod 600 " + printable(path));
}

Secret session_secret(const Options& options, int port) {
  std::string text = options.text("BOOTSTRAP_UID_SECRET");
  const std::string path = options.text("BOOTSTRAP_UID_SECRET_FILE");
  if (!text.empty() && !path.empty())
    throw Error(ExitCode::usage, "BOOTSTRAP_UID_SECRET", "use",
                "BOOTSTRAP_UID_SECRET_FILE is also set", "unset one of the two");
  // A file mostly ends with a newline, and a variable does not.
  if (!path.empty())
    require_private(path);
  if (!path.empty())
    text = std::string(trim(split(read_input(path, max_secret_bytes), '\n').front()));
  if (text.empty())
    throw Error(ExitCode::usage, "BOOTSTRAP_UID_SESSION_ID", "use",
                path.empty() ? "the job has no secret"
                             : "the first line of " + printable(path) + " is empty",
                "set SHMEMCTL_BOOTSTRAP_UID_SECRET or SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE to the "
                "same value for all PEs");
  // The port is what all PEs write alike: they may know the host by different names.
  return secret_of_password(text, "shmemctl uid, port " + std::to_string(port));
}

bool is_own(const SocketAddress& address) {
  if (is_loopback(address) || is_wildcard(address))
    return true;
  const std::vector<InterfaceAddress> own = interface_addresses();
  return std::any_of(own.begin(), own.end(), [&](const InterfaceAddress& each) {
    return same_host_address(each.address, address);
  });
}

/// Where rank 0 listens. A name that leads to loopback on its own host (Debian's 127.0.1.1) leads
/// elsewhere on others: then it listens everywhere.
SocketAddress own_address(const std::vector<SocketAddress>& addresses, const HostAndPort& session,
                          const std::string& text) {
  const auto own = std::find_if(addresses.begin(), addresses.end(), is_own);
  if (own == addresses.end())
    throw Error(ExitCode::usage, "BOOTSTRAP_UID_SESSION_ID=\"" + printable(text) + "\"", "use",
                "rank 0 listens there, but " + addresses.front().with_port(0).text() +
                    " is not an address of this host",
                "name the host of rank 0, or start rank 0 there");
  const auto routable = std::find_if(addresses.begin(), addresses.end(), [](const auto& address) {
    return is_own(address) && !is_loopback(address);
  });
  if (routable != addresses.end())
    return *routable;
  if (session.is_address || session.host == "localhost")
    return *own;
  return SocketAddress::parse((own->family() == AF_INET ? "0.0.0.0:" : "[::]:") +
                              std::to_string(session.port));
}

std::vector<SocketAddress> session_addresses(const HostAndPort& session, const std::string& text,
                                             int family, const Deadline& deadline) {
  if (session.is_address)
    return {SocketAddress::parse(text)};
  return resolve(session.host, session.port, family, deadline);
}

void use_session(UidArguments& arguments, const Options& options, const Deadline& deadline) {
  const std::string text = options.text("BOOTSTRAP_UID_SESSION_ID");
  const HostAndPort session = parse_session_id(text);
  arguments.id.secret = session_secret(options, session.port);
  arguments.id.addresses =
      session_addresses(session, text, family_number(arguments.interfaces.family), deadline);
  if (arguments.rank != 0)
    return;
  arguments.rendezvous = Rendezvous::start_at(own_address(arguments.id.addresses, session, text),
                                              arguments.id.secret, deadline.remaining_s());
  arguments.id = arguments.rendezvous->id();
}

void require_id(const Options& options) {
  if (options.text("BOOTSTRAP_UID").empty() && options.text("BOOTSTRAP_UID_SESSION_ID").empty())
    throw Error(ExitCode::usage, "bootstrap uid", "open",
                "neither BOOTSTRAP_UID nor BOOTSTRAP_UID_SESSION_ID is set",
                "set SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=HOST:PORT, with the host of rank 0, and a "
                "secret; or set SHMEMCTL_BOOTSTRAP_UID to a unique id");
}

} // namespace

std::unique_ptr<Bootstrap> open_uid(BootstrapRequest& request, const Deadline& deadline) {
  if (request.uid)
    return join_uid(std::move(*request.uid), deadline);
  const Options& options = *request.options;
  options.require_valid({"BOOTSTRAP_UID_SOCK_IFNAME", "BOOTSTRAP_UID_SOCK_FAMILY"});
  require_id(options);
  UidArguments arguments;
  arguments.interfaces = {options.text("BOOTSTRAP_UID_SOCK_IFNAME"),
                          options.text("BOOTSTRAP_UID_SOCK_FAMILY")};
  const RankAndSize place = rank_and_size(options, request.environment);
  arguments.rank = place.rank;
  arguments.size = place.size;
  if (const std::string id = options.text("BOOTSTRAP_UID"); !id.empty())
    arguments.id = UniqueId::parse(id);
  else
    use_session(arguments, options, deadline);
  return join_uid(std::move(arguments), deadline);
}

std::unique_ptr<Bootstrap> open_local(BootstrapRequest& request, const Deadline& deadline) {
  UidArguments arguments;
  arguments.name = "local";
  arguments.rank = number_of_variable(request.environment, local_variables::rank, 0);
  arguments.size = number_of_variable(request.environment, local_variables::size, 1);
  const auto id = request.environment.find(local_variables::id);
  if (id == request.environment.end())
    throw Error(ExitCode::usage, local_variables::id, "", "not set",
                "start the program with `shmemctl run -n N PROGRAM`");
  arguments.id = UniqueId::parse(id->second);
  if (arguments.id.addresses.front().family() != AF_UNIX)
    throw Error(ExitCode::usage, local_variables::id, "use", "the id belongs to another bootstrap",
                "start the program with `shmemctl run -n N PROGRAM`");
  return join_uid(std::move(arguments), deadline);
}

} // namespace shmemctl
