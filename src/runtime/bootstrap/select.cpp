// Chooses the bootstrap of a process, and opens it.
#include "src/runtime/bootstrap/select.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <optional>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>

#include "src/base/dynamic_library.h"
#include "src/base/error.h"
#include "src/base/handshake.h"
#include "src/base/input.h"
#include "src/base/log.h"
#include "src/base/socket.h"
#include "src/base/text.h"
#include "src/base/unique_handle.h"
#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/bootstrap/pmi_kvs.h"

namespace shmemctl {

namespace {

/// Empty is the same as unset: batch systems export empty variables.
bool has(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

bool opens(const std::string& library, std::string& why) {
  return DynamicLibrary::open({library}, &why, {.stay_loaded = true}).has_value();
}

bool slurm(const Environment& environment) {
  return launcher_name(environment) == "srun";
}

using Facts = const Environment&;
struct Rule {
  const char* name;
  const char* looks_for;
  /// Why the rule applies; nothing if it does not. If only a library is missing, adds that to
  /// `missing`.
  std::optional<std::string> (*applies)(const Options& options, Facts environment,
                                        std::vector<std::string>& missing);
};

std::optional<std::string> local_applies(const Options&, Facts environment,
                                         std::vector<std::string>&) {
  if (!has(environment, local_variables::id))
    return std::nullopt;
  return "SHMEMCTL_LOCAL_ID is set: shmemctl run started this process";
}

std::optional<std::string> uid_applies(const Options& options, Facts, std::vector<std::string>&) {
  for (const char* name : {"BOOTSTRAP_UID", "BOOTSTRAP_UID_SESSION_ID"})
    if (!options.text(name).empty())
      return options.value(name).origin_name + " is set: it names the job";
  return std::nullopt;
}

std::optional<std::string> pmix_applies(const Options& options, Facts environment,
                                        std::vector<std::string>& missing) {
  if (!has(environment, "PMIX_NAMESPACE") || !has(environment, "PMIX_RANK"))
    return std::nullopt;
  std::string why;
  if (!opens(options.text("PMIX_LIBRARY"), why)) {
    missing.push_back("PMIx is served, but its library does not open: " + why);
    return std::nullopt;
  }
  return "PMIX_NAMESPACE and PMIX_RANK are set: the launcher serves PMIx";
}

std::optional<std::string> mpi_applies(const Options& options, Facts environment,
                                       std::vector<std::string>& missing) {
  if (!has(environment, "OMPI_COMM_WORLD_SIZE"))
    return std::nullopt;
  std::string why;
  if (!opens(options.text("MPI_LIBRARY"), why)) {
    missing.push_back("Open MPI's library does not open: " + why);
    return std::nullopt;
  }
  return "OMPI_COMM_WORLD_SIZE is set: Open MPI's launcher started this process";
}

std::optional<std::string> pmi2_applies(const Options&, Facts environment,
                                        std::vector<std::string>&) {
  if (!has(environment, "PMI_FD") || !slurm(environment))
    return std::nullopt;
  return "PMI_FD is set in a Slurm step: srun serves PMI-2";
}

std::optional<std::string> pmi_applies(const Options&, Facts environment,
                                       std::vector<std::string>&) {
  for (const char* name : {"PMI_FD", "PMI_PORT"})
    if (has(environment, name))
      return std::string(name) + " is set: a process manager serves PMI-1";
  return std::nullopt;
}

std::optional<std::string> single_applies(const Options&, Facts environment,
                                          std::vector<std::string>& missing) {
  // If the launcher serves only PMIx, only its library can tell the size.
  const bool size_unknown = !missing.empty() && !has(environment, "OMPI_COMM_WORLD_SIZE") &&
                            !has(environment, "PMI_SIZE") &&
                            !has(environment, "SLURM_STEP_NUM_TASKS");
  if (launched_size(environment) > 1 || size_unknown)
    return std::nullopt;
  if (launcher_name(environment) == "none" && torchrun_workers(environment) > 1)
    return std::nullopt;
  return launcher_name(environment) == "none" ? "nobody launched this process as one of several"
                                              : "the launcher started one process only";
}

constexpr Rule rules[] = {
    {"local", "SHMEMCTL_LOCAL_ID, which shmemctl run sets", local_applies},
    {"uid", "the options SHMEMCTL_BOOTSTRAP_UID or SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", uid_applies},
    {"pmix", "PMIX_NAMESPACE and PMIX_RANK, and a libpmix that opens", pmix_applies},
    {"mpi", "OMPI_COMM_WORLD_SIZE, and a libmpi that opens", mpi_applies},
    {"pmi2", "PMI_FD in a step of Slurm", pmi2_applies},
    {"pmi", "PMI_FD or PMI_PORT", pmi_applies},
    {"single", "no sign of a launcher that started several processes", single_applies},
};

std::string fix_for(const std::string& launcher) {
  if (launcher == "srun")
    return "start the job with srun --mpi=pmi2, or with srun --mpi=pmix and libpmix on the nodes";
  // "none": only PMIx's variables are set.
  if (launcher == "mpirun" || launcher == "oshrun" || launcher == "none")
    return "install Open MPI's or PMIx's library (apt install libopenmpi3 or libpmix2), or name it "
           "with SHMEMCTL_MPI_LIBRARY or SHMEMCTL_PMIX_LIBRARY";
  return "use a launcher that serves PMI (mpiexec.hydra, srun --mpi=pmi2), shmemctl run, or "
         "SHMEMCTL_BOOTSTRAP=uid with SHMEMCTL_BOOTSTRAP_UID_SESSION_ID";
}

[[noreturn]] void refuse(const Environment& environment, std::vector<std::string> missing) {
  const std::string launcher = launcher_name(environment);
  if (launcher == "none" && torchrun_workers(environment) > 1)
    throw Error(ExitCode::unavailable, "bootstrap", "choose",
                "torchrun started this process as one of " +
                    std::to_string(torchrun_workers(environment)) +
                    ", but it serves neither PMIx nor PMI",
                "set SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=HOST:PORT, with the host of rank 0, and "
                "SHMEMCTL_BOOTSTRAP_UID_SECRET for all workers; or SHMEMCTL_BOOTSTRAP=single for "
                "one PE in each");
  if (missing.empty())
    missing.push_back("the launcher serves neither PMIx nor PMI");
  const long long size = launched_size(environment);
  throw Error(ExitCode::unavailable, "bootstrap", "choose",
              launcher_text(environment) + " started this process as one of " +
                  (size > 1 ? std::to_string(size) : "several") + ", but " + join(missing, "; "),
              fix_for(launcher));
}

/// Which interface BOOTSTRAP=pmi means.
BootstrapChoice pmi_flavour(const Options& options, const Environment& environment) {
  std::string flavour = lower(options.text("BOOTSTRAP_PMI"));
  if (flavour == "pmi-2")
    flavour = "pmi2";
  if (flavour != "auto")
    return {flavour, options.value("BOOTSTRAP_PMI").origin_name + " asks for it"};
  const bool only_pmix = has(environment, "PMIX_NAMESPACE") && !has(environment, "PMI_FD") &&
                         !has(environment, "PMI_PORT");
  if (only_pmix)
    return {"pmix", options.value("BOOTSTRAP").origin_name +
                        " asks for a process management interface, and PMIx is what is served"};
  return {"pmi", options.value("BOOTSTRAP").origin_name + " asks for it"};
}

} // namespace

const std::vector<BootstrapRule>& bootstrap_rules() {
  static const std::vector<BootstrapRule> table = [] {
    std::vector<BootstrapRule> rows;
    for (const Rule& rule : rules)
      rows.push_back({rule.name, rule.looks_for});
    return rows;
  }();
  return table;
}

BootstrapChoice choose_bootstrap(const Options& options, const Environment& environment) {
  options.require_valid({"BOOTSTRAP", "BOOTSTRAP_PMI"});
  const std::string asked = lower(options.text("BOOTSTRAP"));
  if (asked == "pmi")
    return pmi_flavour(options, environment);
  if (asked != "auto")
    return {asked == "shmem" ? "openshmem" : asked,
            options.value("BOOTSTRAP").origin_name + " asks for it"};
  std::vector<std::string> missing;
  for (const Rule& rule : rules)
    if (const auto reason = rule.applies(options, environment, missing))
      return {rule.name, *reason};
  refuse(environment, std::move(missing));
}

// Opening the bootstrap that was chosen.

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

/// A unique id or communicator from the program takes precedence over the options.
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

// The bootstraps `uid` and `local`, opened from options and environment.

namespace {

constexpr std::size_t max_secret_bytes = 4096;

int family_number(const std::string& family) {
  if (family == "AF_INET")
    return AF_INET;
  return family == "AF_INET6" ? AF_INET6 : AF_UNSPEC;
}

/// Refuses a secret file that all users can read; the group may. Pipes and other things that are
/// not regular files are not checked.
void require_private(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_mode & S_IROTH) == 0)
    return; // reading the file reports the error if it does not exist
  throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE=\"" + printable(path) + "\"",
              "use", "readable by every user of this host", "run chmod 600 " + printable(path));
}

Secret session_secret(const Options& options, int port) {
  std::string text = options.text("BOOTSTRAP_UID_SECRET");
  const std::string path = options.text("BOOTSTRAP_UID_SECRET_FILE");
  if (!text.empty() && !path.empty())
    throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP_UID_SECRET", "use",
                "SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE is also set", "unset one of the two");
  // A file usually ends with a newline, so its secret is the first line.
  if (!path.empty())
    require_private(path);
  if (!path.empty())
    text = std::string(trim(split(read_input(path, max_secret_bytes), '\n').front()));
  if (text.empty())
    throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "use",
                path.empty() ? "the job has no secret"
                             : "the first line of " + printable(path) + " is empty",
                "set SHMEMCTL_BOOTSTRAP_UID_SECRET to the same value on all PEs, or name a file "
                "with it in SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE");
  // Of host and port, only the port is the same for all PEs: they may use different host names.
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

/// The address on which rank 0 listens. If a host name resolves to loopback on its own host
/// (Debian's 127.0.1.1), it resolves to another address on other hosts: then rank 0 listens on all
/// addresses.
SocketAddress own_address(const std::vector<SocketAddress>& addresses, const HostAndPort& session) {
  const auto own = std::find_if(addresses.begin(), addresses.end(), is_own);
  if (own == addresses.end())
    throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID", "use",
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

/// For the other PEs on the host of rank 0, where the host name may resolve to loopback (Debian's
/// 127.0.1.1). Rank 0 then listens on all addresses. Adds those of this host before the loopback
/// ones: they lead to rank 0 as well, and show that not all PEs need to be on this host.
void add_own_addresses(std::vector<SocketAddress>& addresses, const HostAndPort& session,
                       const InterfaceFilter& filter) {
  if (session.is_address || session.host == "localhost" ||
      !std::all_of(addresses.begin(), addresses.end(), is_loopback))
    return;
  std::vector<SocketAddress> all;
  for (const SocketAddress& own : usable_addresses(filter))
    if (!is_loopback(own) && own.family() == addresses.front().family())
      all.push_back(own.with_port(session.port));
  all.insert(all.end(), addresses.begin(), addresses.end());
  addresses = std::move(all);
}

void use_session(UidArguments& arguments, const Options& options, const Deadline& deadline) {
  const std::string text = options.text("BOOTSTRAP_UID_SESSION_ID");
  const HostAndPort session = parse_session_id(text);
  arguments.id.secret = session_secret(options, session.port);
  arguments.id.addresses =
      session_addresses(session, text, family_number(arguments.interfaces.family), deadline);
  if (arguments.rank != 0) {
    add_own_addresses(arguments.id.addresses, session, arguments.interfaces);
    return;
  }
  arguments.rendezvous = Rendezvous::start_at(own_address(arguments.id.addresses, session),
                                              arguments.id.secret, deadline.remaining_s());
  arguments.id = arguments.rendezvous->id();
}

void require_id(const Options& options) {
  if (options.text("BOOTSTRAP_UID").empty() && options.text("BOOTSTRAP_UID_SESSION_ID").empty())
    throw Error(ExitCode::usage, "bootstrap uid", "open",
                "neither SHMEMCTL_BOOTSTRAP_UID nor SHMEMCTL_BOOTSTRAP_UID_SESSION_ID is set",
                "set SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=HOST:PORT, with the host of rank 0, and "
                "SHMEMCTL_BOOTSTRAP_UID_SECRET; or set SHMEMCTL_BOOTSTRAP_UID to a unique id");
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

// Finding the process manager: PMI_FD, PMI_PORT, PMI_RANK, PMI_SIZE.

namespace {

constexpr long long max_job_size = 1 << 20;
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
                "\"" + printable(text, 40) + "\" is not an integer from " +
                    std::to_string(minimum) + " to " + std::to_string(maximum),
                "unset it in job scripts: the launcher sets it");
  return *value;
}

} // namespace

PmiIdentity pmi_identity(const Environment& environment) {
  PmiIdentity identity;
  identity.size = static_cast<int>(number(environment, "PMI_SIZE", 1, max_job_size));
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
  std::unique_ptr<KeyValueStore> kvs;
  if (variable(environment, "PMI_FD").empty() && !variable(environment, "PMI_PORT").empty()) {
    const int id = static_cast<int>(number(environment, "PMI_ID", 0, max_job_size));
    kvs = make_pmi1_kvs_by_id(pmi_connect(environment, deadline), id, deadline);
  } else {
    const PmiIdentity identity = pmi_identity(environment);
    kvs = make_pmi1_kvs(pmi_descriptor(environment), identity, deadline);
  }
  return make_kvs_bootstrap(std::move(kvs), deadline);
}

std::unique_ptr<Bootstrap> open_pmi2(BootstrapRequest& request, const Deadline& deadline) {
  const PmiIdentity identity = pmi_identity(request.environment);
  return make_kvs_bootstrap(make_pmi2_kvs(pmi_descriptor(request.environment), identity, deadline),
                            deadline);
}

} // namespace shmemctl
