// Set-up and end of a job, unique ids, modules, and queries about the job and the library.
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"
#include "src/runtime/nvshmem/hooks.h"
#include "src/runtime/nvshmem/job.h"
#include "src/runtime/nvshmem/kernel_state.h"
#include "src/runtime/shmem/environment.h"
#include "src/runtime/shmem/process.h"

using namespace shmemctl;

namespace shmemctl::nvshmem {

void publish_job(World& world) {
  write_job(gpu_of(world));
}

} // namespace shmemctl::nvshmem

namespace {

/// With lazy loading, the first launch of a kernel may wait until running kernels have ended, so a
/// kernel that waits for another PE could wait forever. The driver reads the variable at its first
/// call, which programs make before nvshmem_init (cudaSetDevice). A user's setting is kept.
[[gnu::constructor]] void load_kernels_at_once() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

/// State of the process: the interface has no handle for the library.
struct Process {
  std::mutex mutex;
  int depth = 0; ///< calls of nvshmem_init without a matching finalize
  /// Rendezvous of ids that this process created and has not used yet.
  std::vector<std::unique_ptr<Rendezvous>> rendezvous;
};

Process& process() {
  static Process* const made = new Process; // never destroyed, because exit handlers may use it
  return *made;
}

// A unique id in NVSHMEM's 124 bytes: a mark, the number of addresses, the secret, the addresses.

constexpr unsigned char id_mark[] = {'s', 'h', 'm', 1};
constexpr std::size_t secret_at = sizeof id_mark + 1;
constexpr std::size_t addresses_at = secret_at + sizeof(Secret);

struct PackedAddress {
  unsigned char bytes[1 + 2 + 16]; ///< IP version (4 or 6), port, address
  std::size_t size = 0;            ///< 0: an address that other hosts cannot reach
};

PackedAddress pack(const SocketAddress& address) {
  PackedAddress packed{};
  const auto put = [&](unsigned char family, const void* port, const void* where,
                       std::size_t size) {
    packed.bytes[0] = family;
    std::memcpy(packed.bytes + 1, port, 2);
    std::memcpy(packed.bytes + 3, where, size);
    packed.size = 3 + size;
  };
  if (address.family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address.raw(), sizeof in);
    put(4, &in.sin_port, &in.sin_addr, sizeof in.sin_addr);
  } else if (address.family() == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address.raw(), sizeof in);
    if (in.sin6_scope_id == 0) // addresses with a scope id are valid on this host only
      put(6, &in.sin6_port, &in.sin6_addr, sizeof in.sin6_addr);
  }
  return packed;
}

SocketAddress unpack(const unsigned char* packed) {
  if (packed[0] == 4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    std::memcpy(&in.sin_port, packed + 1, 2);
    std::memcpy(&in.sin_addr, packed + 3, sizeof in.sin_addr);
    return {reinterpret_cast<const sockaddr*>(&in), sizeof in};
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  std::memcpy(&in.sin6_port, packed + 1, 2);
  std::memcpy(&in.sin6_addr, packed + 3, sizeof in.sin6_addr);
  return {reinterpret_cast<const sockaddr*>(&in), sizeof in};
}

nvshmemx_uniqueid_t to_bytes(const UniqueId& id) {
  nvshmemx_uniqueid_t result = NVSHMEMX_UNIQUEID_INITIALIZER;
  auto* const bytes = reinterpret_cast<unsigned char*>(result.internal);
  std::memcpy(bytes, id_mark, sizeof id_mark);
  std::memcpy(bytes + secret_at, id.secret.data(), id.secret.size());
  std::size_t at = addresses_at;
  for (const SocketAddress& address : id.addresses) {
    const PackedAddress packed = pack(address);
    if (packed.size == 0 || at + packed.size > sizeof result.internal)
      continue;
    std::memcpy(bytes + at, packed.bytes, packed.size);
    at += packed.size;
    ++bytes[sizeof id_mark];
  }
  if (bytes[sizeof id_mark] == 0)
    throw Error(
        ExitCode::unavailable, "nvshmemx_get_uniqueid", "make a unique id",
        "this host has no address that other hosts reach",
        "bring a network interface up, or name one with SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME");
  return result;
}

Error foreign_id() {
  return nvshmem::wrong_use("unique id", "use",
                            "nvshmemx_get_uniqueid of this library did not make it",
                            "call nvshmemx_get_uniqueid in one process, and pass all its bytes on");
}

UniqueId from_bytes(const nvshmemx_uniqueid_t& given) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given.internal);
  if (std::memcmp(bytes, id_mark, sizeof id_mark) != 0)
    throw foreign_id();
  UniqueId id;
  std::memcpy(id.secret.data(), bytes + secret_at, id.secret.size());
  std::size_t at = addresses_at;
  for (int left = bytes[sizeof id_mark]; left > 0; --left) {
    const std::size_t size = at < sizeof given.internal && bytes[at] == 4   ? 7
                             : at < sizeof given.internal && bytes[at] == 6 ? 19
                                                                            : sizeof given.internal;
    if (at + size > sizeof given.internal)
      throw foreign_id();
    id.addresses.push_back(unpack(bytes + at));
    at += size;
  }
  if (id.addresses.empty())
    throw foreign_id();
  return id;
}

Options own_options() {
  const Environment environment = current_environment();
  return Options(environment, api::specified_options(environment));
}

InterfaceFilter interface_filter(const Options& options) {
  options.require_valid({"BOOTSTRAP_UID_SOCK_IFNAME", "BOOTSTRAP_UID_SOCK_FAMILY"});
  return {options.text("BOOTSTRAP_UID_SOCK_IFNAME"), options.text("BOOTSTRAP_UID_SOCK_FAMILY")};
}

std::unique_ptr<UidArguments> uid_arguments(const nvshmemx_uniqueid_args_t& given) {
  if (!given.id || given.nranks < 1 || given.myrank < 0 || given.myrank >= given.nranks)
    throw nvshmem::wrong_use("PE " + std::to_string(given.myrank) + " of " +
                                 std::to_string(given.nranks),
                             "initialize by unique id", "there is no such PE, or no id",
                             "call nvshmemx_set_attr_uniqueid_args with rank, size and id, and "
                             "keep the id until the job is initialized");
  auto arguments = std::make_unique<UidArguments>();
  arguments->rank = given.myrank;
  arguments->size = given.nranks;
  arguments->id = from_bytes(*given.id);
  arguments->interfaces = interface_filter(own_options());
  std::vector<std::unique_ptr<Rendezvous>>& made_here = process().rendezvous;
  for (auto& each : made_here)
    if (each && same_secret(each->id().secret, arguments->id.secret))
      arguments->rendezvous = std::move(each);
  std::erase(made_here, nullptr);
  return arguments;
}

api::InitRequest init_request(unsigned int flags, const nvshmemx_init_attr_t* attr) {
  api::InitRequest request;
  request.gpu = GpuUse::required;
  request.gpu_device = nvshmem::current_device();
  request.gpu_heap_grows = true;
  request.share_static_data = false;
  constexpr unsigned int given =
      NVSHMEMX_INIT_WITH_UNIQUEID | NVSHMEMX_INIT_WITH_MPI_COMM | NVSHMEMX_INIT_WITH_SHMEM;
  if ((flags & (NVSHMEMX_INIT_WITH_UNIQUEID | NVSHMEMX_INIT_WITH_MPI_COMM)) != 0 && !attr)
    throw nvshmem::wrong_use("nvshmemx_init_attr", "read its attributes", "attr is NULL",
                             "pass an nvshmemx_init_attr_t that holds what the flags name");
  if (const unsigned int ways = flags & given; (ways & (ways - 1)) != 0)
    throw nvshmem::wrong_use("nvshmemx_init_attr", "choose how PEs find each other",
                             "several flags are given", "give one NVSHMEMX_INIT_WITH_ flag");
  if (attr && attr->version == NVSHMEM_COMPAT_STRUCT_VERSION(2, nvshmemx_init_attr_t) &&
      attr->args.version == NVSHMEM_COMPAT_STRUCT_VERSION(2, nvshmemx_init_args_t) &&
      attr->args.cuda_device_id >= 0)
    request.gpu_device = attr->args.cuda_device_id;
  if ((flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0)
    request.uid = uid_arguments(attr->args.uid_args);
  if ((flags & NVSHMEMX_INIT_WITH_MPI_COMM) != 0)
    request.mpi_communicator = attr->mpi_comm;
  if ((flags & NVSHMEMX_INIT_WITH_MPI_COMM) != 0 && !attr->mpi_comm)
    throw nvshmem::wrong_use("communicator", "use", "mpi_comm is NULL",
                             "pass the address of an MPI_Comm");
  if ((flags & NVSHMEMX_INIT_WITH_SHMEM) != 0)
    request.bootstrap = "openshmem";
  return request;
}

void start(int thread_level, unsigned int flags, const nvshmemx_init_attr_t* attr) {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (own.depth++ > 0)
    return;
  try {
    if (api::was_started())
      throw nvshmem::wrong_use("library", "initialize",
                               "this process has already finalized it, or called shmem_init",
                               "initialize it once in each process, by nvshmem_init or "
                               "nvshmemx_init_attr");
    api::InitRequest request = init_request(flags, attr);
    request.thread_level = thread_level;
    api::start(std::move(request));
  } catch (const Error& error) {
    api::fail(error);
  }
  nvshmem::guarded([](api::World& world) {
    nvshmem::make_predefined_teams(world);
    nvshmem::publish_job(world);
  });
}

void finish() {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (own.depth == 0 || --own.depth > 0)
    return;
  nvshmem::forget_job();
  api::finalize();
  own.rendezvous.clear();
}

constexpr int usual_thread_level = NVSHMEM_THREAD_SERIALIZED;

} // namespace

extern "C" {

void nvshmem_init(void) {
  start(usual_thread_level, 0, nullptr);
}

int nvshmem_init_thread(int requested, int* provided) {
  if (requested < NVSHMEM_THREAD_SINGLE || requested > NVSHMEM_THREAD_MULTIPLE)
    return NVSHMEMX_ERROR_INVALID_VALUE;
  start(requested, 0, nullptr);
  if (provided)
    *provided = requested;
  return NVSHMEMX_SUCCESS;
}

void nvshmem_query_thread(int* provided) {
  nvshmem::guarded([&](api::World& world) { *provided = world.thread_level(); });
}

int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr) {
  start(usual_thread_level, flags, attr);
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t* attr) {
  return nvshmemx_init_attr(flags, attr);
}

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* uniqueid) {
  try {
    const Options options = own_options();
    options.require_valid({"TIMEOUT"});
    std::unique_ptr<Rendezvous> made =
        Rendezvous::start(interface_filter(options), options.number("TIMEOUT"));
    *uniqueid = to_bytes(made->id());
    Process& own = process();
    const std::lock_guard lock(own.mutex);
    own.rendezvous.push_back(std::move(made));
    return NVSHMEMX_SUCCESS;
  } catch (const Error& error) {
    api::fail(error);
  }
}

int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks, const nvshmemx_uniqueid_t* uniqueid,
                                    nvshmemx_init_attr_t* attr) {
  if (!uniqueid || !attr)
    return NVSHMEMX_ERROR_INVALID_VALUE;
  attr->args.uid_args.version = NVSHMEM_COMPAT_STRUCT_VERSION(1, nvshmemx_uniqueid_args_t);
  attr->args.uid_args.id = const_cast<nvshmemx_uniqueid_t*>(uniqueid);
  attr->args.uid_args.myrank = myrank;
  attr->args.uid_args.nranks = nranks;
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
  if (!mpi_comm || !attr)
    return NVSHMEMX_ERROR_INVALID_VALUE;
  attr->mpi_comm = mpi_comm;
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_init_status(void) {
  const api::World* const world = api::process_world.load(std::memory_order_acquire);
  if (!world)
    return NVSHMEM_STATUS_NOT_INITIALIZED;
  PeGpu* const gpu = const_cast<api::World*>(world)->gpu();
  return gpu && gpu->info().pes_on_device > 1 ? NVSHMEM_STATUS_FULL_MPG
                                              : NVSHMEM_STATUS_IS_INITIALIZED;
}

void nvshmem_finalize(void) {
  finish();
}

void nvshmemx_hostlib_finalize(void) {
  finish();
}

void nvshmem_global_exit(int status) {
  nvshmem::guarded([&](api::World& world) { world.exit_all(status); });
}

// The job of the program's kernels, and of modules that it has loaded.

void nvshmemi_register_device_job(nvshmemi_locate_job locate) {
  try {
    nvshmem::add_job(locate);
  } catch (const Error& error) {
    api::fail(error);
  }
}

void nvshmemi_forget_device_job(nvshmemi_locate_job locate) {
  nvshmem::remove_job(locate);
}

void nvshmemi_check_kernels(void) {
  nvshmem::guarded([](api::World& world) { nvshmem::gpu_of(world).check(); });
}

void nvshmemi_launch_refused(const char* why) {
  log(LogLevel::warning, "gpu", std::string("nvshmemx_collective_launch: ") + why);
}

int nvshmemx_cumodule_init(CUmodule module) {
  return nvshmem::guarded([&](api::World&) {
    return nvshmem::add_module(module) ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INVALID_VALUE;
  });
}

int nvshmemx_cumodule_finalize(CUmodule module) {
  nvshmem::remove_module(module);
  return NVSHMEMX_SUCCESS;
}

int nvshmemx_culibrary_init(CUlibrary library) {
  return nvshmem::guarded([&](api::World&) {
    return nvshmem::add_library(library) ? NVSHMEMX_SUCCESS : NVSHMEMX_ERROR_INVALID_VALUE;
  });
}

int nvshmemx_culibrary_finalize(CUlibrary library) {
  nvshmem::remove_module(library);
  return NVSHMEMX_SUCCESS;
}

// Queries.

int nvshmem_my_pe(void) {
  return nvshmem::guarded([](api::World& world) { return world.rma.pe(); });
}

int nvshmem_n_pes(void) {
  return nvshmem::guarded([](api::World& world) { return world.rma.n_pes(); });
}

void nvshmem_info_get_version(int* major, int* minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}

void nvshmem_info_get_name(char* name) {
  static_assert(sizeof NVSHMEM_VENDOR_STRING <= NVSHMEM_MAX_NAME_LEN);
  std::memcpy(name, NVSHMEM_VENDOR_STRING, sizeof NVSHMEM_VENDOR_STRING);
}

void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

} // extern "C"
