// Checks of the libraries that are opened at run time.
#include "src/instruments/doctor/libraries.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/base/cuda_release.h"
#include "src/base/dynamic_library.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

void add_configured(const Sysroot& sysroot, const std::string& file,
                    std::vector<std::string>& folders) {
  const std::optional<std::string> text = sysroot.read(file);
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::string folder(trim(line));
    if (starts_with(folder, "/"))
      folders.push_back(folder);
  }
}

} // namespace

std::vector<std::string> library_folders(const Sysroot& sysroot) {
  std::vector<std::string> folders;
  add_configured(sysroot, "/etc/ld.so.conf", folders);
  for (const std::string& name : sysroot.list("/etc/ld.so.conf.d"))
    if (ends_with(name, ".conf"))
      add_configured(sysroot, "/etc/ld.so.conf.d/" + name, folders);
  for (const std::string base : {"/usr/local/lib", "/usr/lib", "/lib"}) {
    for (const std::string& name : sysroot.list(base))
      if (ends_with(name, "-linux-gnu"))
        folders.push_back(fmt::format("{}/{}", base, name));
    folders.push_back(base + "64");
    folders.push_back(base);
  }
  std::erase_if(folders, [&](const std::string& path) { return !sysroot.is_directory(path); });
  return folders;
}

std::optional<LibraryFile> find_library(const Sysroot& sysroot,
                                        const std::vector<std::string>& names) {
  const std::vector<std::string> folders = library_folders(sysroot);
  for (const std::string& name : names)
    for (const std::string& folder : folders) {
      const std::string path = fmt::format("{}/{}", folder, name);
      if (const std::optional<std::string> file = sysroot.realpath(path))
        return LibraryFile{path, *file};
    }
  return std::nullopt;
}

std::optional<std::string> version_in_file_name(const std::string& file) {
  const std::size_t at = file.rfind(".so.");
  if (at == std::string::npos)
    return std::nullopt;
  const std::string version = file.substr(at + 4);
  if (version.find_first_not_of("0.") == std::string::npos)
    return std::nullopt;
  return version;
}

namespace {

enum class Need { nvidia_gpu, rdma, mlx5, gpu_and_rdma, launcher };

/// The version that a library reports, and the function that returned it.
struct LibraryVersion {
  const char* function;
  std::string version;
};
using VersionCall = std::optional<LibraryVersion>(const DynamicLibrary&);

std::optional<LibraryVersion> cuda_version(const DynamicLibrary& library) {
  auto* const call = library.function<int(int*)>("cuDriverGetVersion");
  int version = 0;
  if (call == nullptr || call(&version) != 0)
    return std::nullopt;
  return LibraryVersion{"cuDriverGetVersion", cuda_version_text(version)};
}

std::optional<LibraryVersion> fabric_version(const DynamicLibrary& library) {
  auto* const call = library.function<std::uint32_t()>("fi_version");
  if (call == nullptr)
    return std::nullopt;
  const std::uint32_t version = call();
  return LibraryVersion{"fi_version", fmt::format("{}.{}", version >> 16, version & 0xffffU)};
}

std::optional<LibraryVersion> ucp_version(const DynamicLibrary& library) {
  auto* const call = library.function<void(unsigned*, unsigned*, unsigned*)>("ucp_get_version");
  if (call == nullptr)
    return std::nullopt;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  call(&major, &minor, &release);
  return LibraryVersion{"ucp_get_version", fmt::format("{}.{}.{}", major, minor, release)};
}

std::optional<LibraryVersion> mpi_version(const DynamicLibrary& library) {
  constexpr std::size_t longest = 8192; // MPICH's MPI_MAX_LIBRARY_VERSION_STRING; Open MPI's is 256
  auto* const call = library.function<int(char*, int*)>("MPI_Get_library_version");
  std::string text(longest, '\0');
  int length = 0;
  if (call == nullptr || call(text.data(), &length) != 0)
    return std::nullopt;
  const std::string line = split(text.c_str(), '\n').front();
  return LibraryVersion{"MPI_Get_library_version", line.substr(0, line.find(','))};
}

std::optional<LibraryVersion> pmix_version(const DynamicLibrary& library) {
  auto* const call = library.function<const char*()>("PMIx_Get_version");
  const char* const text = call != nullptr ? call() : nullptr;
  if (text == nullptr)
    return std::nullopt;
  return LibraryVersion{"PMIx_Get_version", split(text, ',').front()};
}

std::optional<LibraryVersion> gdrcopy_version(const DynamicLibrary& library) {
  auto* const call = library.function<void(int*, int*)>("gdr_runtime_get_version");
  if (call == nullptr)
    return std::nullopt;
  int major = 0;
  int minor = 0;
  call(&major, &minor);
  return LibraryVersion{"gdr_runtime_get_version", fmt::format("{}.{}", major, minor)};
}

/// One library that is checked. Package names are those of the distributions or, for NVIDIA's
/// packages, those of NVIDIA's repositories.
struct Library {
  const char* id;
  std::vector<std::string> names; ///< file names, in the order in which they are tried
  Need need;
  const char* enables;
  const char* debian;
  const char* redhat;
  VersionCall* version_call;
};

const std::vector<Library>& library_table() {
  static const std::vector<Library> table = {
      {"libcuda",
       {"libcuda.so.1"},
       Need::nvidia_gpu,
       "GPU memory and kernels",
       "libnvidia-compute || apt-get install -y libcuda1",
       "nvidia-driver-cuda-libs",
       cuda_version},
      {"libnvidia-ml",
       {"libnvidia-ml.so.1"},
       Need::nvidia_gpu,
       "NVLink and GPU health (NVML)",
       "libnvidia-compute || apt-get install -y libnvidia-ml1",
       "nvidia-driver-cuda",
       nullptr},
      {"libibverbs",
       {"libibverbs.so.1"},
       Need::rdma,
       "the transports ibrc, ibdevx and ibgda",
       "libibverbs1 ibverbs-providers",
       "libibverbs",
       nullptr},
      {"libmlx5",
       {"libmlx5.so.1"},
       Need::mlx5,
       "the transports ibdevx and ibgda",
       "ibverbs-providers",
       "libibverbs",
       nullptr},
      {"librdmacm",
       {"librdmacm.so.1"},
       Need::rdma,
       "libfabric's verbs provider",
       "librdmacm1",
       "librdmacm",
       nullptr},
      {"libfabric",
       {"libfabric.so.1"},
       Need::rdma,
       "the transport libfabric",
       "libfabric1",
       "libfabric",
       fabric_version},
      {"libucp", {"libucp.so.0"}, Need::rdma, "the transport ucx", "libucx0", "ucx", ucp_version},
      {"libmpi",
       {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"},
       Need::launcher,
       "the bootstrap mpi",
       "openmpi-bin",
       "openmpi",
       mpi_version},
      {"libpmix",
       {"libpmix.so.2"},
       Need::launcher,
       "the bootstrap pmix",
       "libpmix2",
       "pmix",
       pmix_version},
      {"liboshmem",
       {"liboshmem.so.40"},
       Need::launcher,
       "the bootstrap openshmem",
       "openmpi-bin",
       "openmpi",
       nullptr},
      {"libgdrapi",
       {"libgdrapi.so.2"},
       Need::gpu_and_rdma,
       "atomics on GPU memory by the CPU (GDRCopy)",
       "libgdrapi",
       "gdrcopy",
       gdrcopy_version},
  };
  return table;
}

/// Why the library is not needed on this node; empty if it may be.
std::optional<std::string> not_needed(const Library& library, const Node& node) {
  switch (library.need) {
  case Need::nvidia_gpu:
    return no_nvidia_gpu(node);
  case Need::rdma:
    return no_rdma_device(node);
  case Need::gpu_and_rdma:
    return no_gpu_or_rdma(node);
  case Need::mlx5: {
    const std::vector<const Nic*> nics = rdma_nics(node);
    for (const Nic* nic : nics)
      if (starts_with(nic->driver.value.value_or(""), "mlx5"))
        return std::nullopt;
    return "no mlx5 device on this node";
  }
  case Need::launcher:
    return std::nullopt;
  }
  return std::nullopt;
}

/// The path and version of the library, or why it was not found.
struct Found {
  bool present = false;
  std::string version, evidence; ///< version, "" if unknown, and where it was read
};

Found search_loader(const Library& library) {
  std::string why;
  const std::optional<DynamicLibrary> opened = DynamicLibrary::open(library.names, &why);
  if (!opened)
    return {false, "", "dlopen: " + why};
  const std::string file = opened->file();
  const std::string evidence = "dlopen(\"" + opened->name() + "\"): " + file;
  const std::optional<std::string> version = version_in_file_name(file);
  const std::optional<LibraryVersion> reported =
      library.version_call != nullptr ? library.version_call(*opened) : std::nullopt;
  if (!reported)
    return {true, version.value_or(""), evidence};
  return {true, version.value_or(reported->version),
          fmt::format("{}; {} says {}", evidence, reported->function, reported->version)};
}

Found search_tree(const Library& library, const Sysroot& sysroot) {
  const auto found = find_library(sysroot, library.names);
  if (!found)
    return {false, "", library.names.front() + ": in no library folder"};
  return {true, version_in_file_name(found->file).value_or(""),
          found->path + ": is " + found->file};
}

/// The branch of the loaded driver: "-550"; "" if it is unknown. Ubuntu includes it in the names of
/// the driver's library packages.
std::string driver_branch(const Sysroot& sysroot) {
  const auto text = sysroot.read("/proc/driver/nvidia/version");
  const auto version = parse_nvidia_version(text.value_or(""));
  return version ? "-" + split(version->version, '.').front() : "";
}

std::string install_fix(const Library& library, const Sysroot& sysroot) {
  std::string debian = library.debian;
  const std::string branched = "libnvidia-compute";
  if (starts_with(debian, branched))
    debian.insert(branched.size(), driver_branch(sysroot));
  return install_command(sysroot, debian, library.redhat);
}

CheckResult check_library(const Library& library, const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  if (!sysroot.live() && library_folders(sysroot).empty())
    return skipped("the copied tree has no library folders", absent("/usr/lib"));
  const Found found = sysroot.live() ? search_loader(library) : search_tree(library, sysroot);
  if (found.present)
    return passed(
        fmt::format("{}; enables {}",
                    found.version.empty() ? "of unknown version" : "version " + found.version,
                    library.enables),
        found.evidence);
  if (const auto reason = not_needed(library, context.node))
    return skipped("not installed, and not needed: " + *reason, found.evidence);
  // A node without a launcher is healthy: PEs can be started without one.
  if (library.need == Need::launcher)
    return {CheckStatus::skipped,
            fmt::format("not installed, and optional: it enables {}", library.enables),
            found.evidence, install_fix(library, sysroot)};
  const std::string missing = fmt::format("missing; it would enable {}", library.enables);
  return warned(missing, found.evidence, install_fix(library, sysroot));
}

} // namespace

std::map<std::string, std::string> installed_libraries(const Sysroot& sysroot) {
  std::map<std::string, std::string> installed;
  for (const Library& library : library_table())
    if (const Found found = search_tree(library, sysroot); found.present)
      installed[library.id] = found.version;
  return installed;
}

std::function<CheckResult(const CheckContext&)> library(const std::string& id) {
  for (const Library& entry : library_table())
    if (id == entry.id)
      return [&entry](const CheckContext& context) { return check_library(entry, context); };
  throw std::logic_error("no library " + id);
}

namespace {

constexpr const char* chosen_by_size = "n_pes"; // a value that the transport computes

bool has_driver(const Node& node, const std::string& driver) {
  return std::any_of(node.nics.begin(), node.nics.end(),
                     [&](const Nic& nic) { return nic.driver && *nic.driver == driver; });
}

/// The libfabric provider that the transport would use on this node, and the reason.
ExpectedProvider expected_provider(const CheckContext& context) {
  const Options options(context.environment);
  for (const char* name : {"LIBFABRIC_PROFILE", "LIBFABRIC_PROVIDER"}) {
    const OptionValue& value = options.value(name);
    if (!value.text.empty())
      return {value.text, value.origin_name + " requests it", true};
  }
  if (has_driver(context.node, "efa"))
    return {"efa", "there are EFA devices", true};
  if (has_driver(context.node, "cxi_core"))
    return {"cxi", "there are Slingshot NICs", true};
  if (!rdma_nics(context.node).empty())
    return {"verbs", "there are RDMA devices", false};
  return {"tcp", "there is no RDMA device", false};
}

std::string evidence_of(const ExpectedProvider& expected,
                        const fabric::ProviderPresence& presence) {
  std::string evidence = expected.provider + ", because " + expected.reason;
  if (!presence.library.empty())
    evidence += "; " + presence.library;
  if (!presence.provider.empty())
    evidence += "; fi_getinfo: " + presence.provider + " with " + name_list(presence.devices);
  return evidence;
}

} // namespace

CheckResult judge_libfabric_provider(const ExpectedProvider& expected,
                                     const fabric::ProviderPresence& presence) {
  const std::string evidence = evidence_of(expected, presence);
  if (!presence.provider.empty())
    return passed("libfabric has the provider " + presence.provider, evidence);
  const std::string reason = "the transport libfabric cannot be used: " + presence.problem;
  return expected.needed ? failed(reason, evidence, presence.fix)
                         : warned(reason, evidence, presence.fix);
}

namespace {

std::string to_text(const fabric::ProviderPresence& presence) {
  return nlohmann::json::array({presence.library, presence.provider, presence.devices,
                                presence.problem, presence.fix})
      .dump();
}

fabric::ProviderPresence parse_presence(const std::string& text) {
  const nlohmann::json all = nlohmann::json::parse(text);
  return {all.at(0).get<std::string>(), all.at(1).get<std::string>(),
          all.at(2).get<std::vector<std::string>>(), all.at(3).get<std::string>(),
          all.at(4).get<std::string>()};
}

/// Runs the query in a child process, because it starts libfabric's providers, which may leave
/// something behind that later aborts the process: EFA's of libfabric 1.11 aborts at the next
/// fork().
fabric::ProviderPresence probe_in_child(const fabric::ProviderRequest& request) {
  constexpr std::chrono::seconds deadline{30};
  const ChildOutput answer = call_in_child([&] { return to_text(fabric::probe_provider(request)); },
                                           "fi_getinfo", deadline);
  fabric::ProviderPresence presence;
  presence.problem = answer.problem;
  try {
    if (answer.problem.empty())
      return parse_presence(answer.text);
  } catch (const nlohmann::json::exception&) {
    presence.problem = "fi_getinfo returned no result";
  }
  presence.fix = "run fi_info -p " + request.provider + ", which makes the same query";
  return presence;
}

} // namespace

CheckResult libfabric_provider(const CheckContext& context) {
  if (!context.sysroot.live())
    return skipped("providers can only be queried on the live machine");
  const ExpectedProvider expected = expected_provider(context);
  const Options options(context.environment);
  return judge_libfabric_provider(
      expected,
      probe_in_child({options.text("LIBFABRIC_LIBRARY"), expected.provider,
                      options.text("LIBFABRIC_PROFILE"), options.text("LIBFABRIC_INTERFACE"), 1}));
}

CheckResult libfabric_environment(const CheckContext& context) {
  const ExpectedProvider expected = expected_provider(context);
  const auto needs = fabric::needs_of(expected.provider);
  if (!needs || needs->variables.empty())
    return skipped("libfabric's provider " + expected.provider + " needs no variables");
  std::vector<std::string> seen, wrong, exports;
  bool required = false;
  for (const fabric::ProviderVariable& variable : needs->variables) {
    const auto found = context.environment.find(variable.name);
    if (found == context.environment.end()) {
      seen.push_back(variable.name + " is not set");
      continue;
    }
    seen.push_back(file_evidence(variable.name, found->second));
    if (variable.value == chosen_by_size || found->second == variable.value)
      continue;
    wrong.push_back(variable.name);
    exports.push_back(variable.name + "=" + variable.value);
    required = required || variable.required;
  }
  const std::string evidence =
      expected.provider + ", because " + expected.reason + "; " + join(seen, "; ");
  if (wrong.empty())
    return passed("the transport sets the unset variables itself", evidence);
  const std::string reason =
      name_list(wrong) + " differs from what " + expected.provider + " needs";
  const std::string fix = "export " + join(exports, " ");
  return required ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

CheckResult libfabric_gdrcopy(const CheckContext& context) {
  const ExpectedProvider expected = expected_provider(context);
  const auto needs = fabric::needs_of(expected.provider);
  if (!needs || !needs->gdrcopy)
    return skipped("libfabric's provider " + expected.provider + " does not need GDRCopy");
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  CheckResult result = gdrcopy(context);
  if (result.status != CheckStatus::warning)
    return result;
  // There is no slower fallback: staged atomic operations on GPU memory need it.
  return failed("GDRCopy is incomplete, and " + expected.provider +
                    " executes atomic operations on GPU memory through it",
                result.evidence, result.fix);
}

} // namespace shmemctl::doctor
