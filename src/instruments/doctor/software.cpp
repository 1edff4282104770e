// Checks whether the installed software fits together: libraries in the loader's search order, the
// packages of a Python environment, the CUDA toolkit and environment modules.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/base/cuda_release.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/support.h"
#include "src/instruments/libraries/installed.h"
#include "src/instruments/libraries/versions.h"

namespace shmemctl {

void require_python(const Sysroot& sysroot, const std::string& python) {
  if (libraries::site_folders(sysroot, python).empty())
    throw Error(ExitCode::usage, "--python", "",
                "no folder of Python packages belongs to " + printable(python),
                "name an interpreter, the folder of an environment, or its site-packages");
}

namespace doctor {

namespace {

using libraries::InstalledFile;
using libraries::PythonPackage;
using libraries::PythonSite;

using LibraryPointer = std::shared_ptr<const libraries::Library>;

std::string variable(const CheckContext& context, const char* name) {
  const auto found = context.environment.find(name);
  return found == context.environment.end() ? "" : found->second;
}

/// The Python environment: the one that --python names or, without it, the active one.
struct PythonChoice {
  std::string path;
  std::string origin; ///< "--python", "VIRTUAL_ENV"
};
PythonChoice chosen_python(const CheckContext& context) {
  if (!context.python.empty())
    return {context.python, "--python"};
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string path = variable(context, name); !path.empty())
      return {path, name};
  return {};
}

std::vector<PythonSite> python_sites(const CheckContext& context) {
  std::vector<PythonSite> sites;
  for (const std::string& folder : chosen_site_folders(context))
    sites.push_back(libraries::read_python_site(context.sysroot, folder));
  return sites;
}

std::string described(const libraries::Library& library) {
  return printable(library.file.path) +
         (library.version.empty() ? "" : " (" + printable(library.version, 40) + ")");
}

/// A problem of the installed software, and its fix.
struct Problem {
  std::string reason, fix;
};

/// The first problem with its fix, and the reasons of the others.
CheckResult first_of(const std::vector<Problem>& problems, const std::string& evidence) {
  std::string reason = problems.front().reason;
  if (problems.size() > 1) {
    std::vector<std::string> others;
    for (std::size_t i = 1; i < problems.size(); ++i)
      others.push_back(problems[i].reason);
    reason += "; also: " + name_list(others);
  }
  return warned(reason, evidence, problems.front().fix);
}

/// Whether an older file that precedes a newer one deserves a warning: releases of these libraries
/// are not promised to be interchangeable. CUDA toolkits, MPIs and PyTorch are chosen on purpose.
bool should_be_newest(const libraries::LibraryKind& kind) {
  for (const char* chosen : {"cuda-runtime", "mpi", "torch"})
    if (std::string_view(kind.id) == chosen)
      return false;
  return true;
}

/// The problem with files that have the same name, the first of which is loaded.
std::optional<Problem> judge_files(const std::vector<InstalledFile>& files,
                                   libraries::LibraryReader& reader) {
  const LibraryPointer first = reader.installed(files.front().path);
  if (!first || !should_be_newest(*first->kind))
    return std::nullopt;
  const auto release = libraries::release_of(first->version);
  const bool nvshmem = first->kind->family == libraries::Family::nvshmem;
  for (std::size_t i = 1; i < files.size(); ++i) {
    const LibraryPointer other = reader.installed(files[i].path);
    const auto hidden = other ? libraries::release_of(other->version) : std::nullopt;
    if (!release || !hidden || (nvshmem ? *release == *hidden : *release >= *hidden))
      continue;
    const std::string& origin = files.front().origin;
    return Problem{
        fmt::format("{} is installed in two releases, and {} has {} before {}",
                    printable(files.front().name), origin, described(*first), described(*other)),
        origin == "LD_LIBRARY_PATH"
            ? fmt::format("put {} before {} in LD_LIBRARY_PATH",
                          printable(files[i].path.substr(0, files[i].path.rfind('/'))),
                          printable(files.front().path.substr(0, files.front().path.rfind('/'))))
            : fmt::format("remove {}, then ldconfig",
                          first->owner.empty() ? printable(first->file.path)
                                               : "the package " + printable(first->owner))};
  }
  return std::nullopt;
}

/// The CUDA major release in a package's name: 12 for "nvidia-nccl-cu12"; empty for other packages.
std::optional<int> cuda_major_of_package(const std::string& package) {
  const std::size_t at = package.rfind("-cu");
  if (!starts_with(package, "nvidia-") || at == std::string::npos)
    return std::nullopt;
  const auto number = parse_integer(package.substr(at + 3));
  return number && *number > 0 && *number < 1000 ? std::optional<int>(static_cast<int>(*number))
                                                 : std::nullopt;
}

/// Whether the version of this package matters here.
bool is_of_interest(const std::string& package) {
  for (const char* prefix : {"nvidia-nccl-", "nvidia-nvshmem-", "nvidia-cuda-runtime-"})
    if (starts_with(package, prefix))
      return true;
  for (const char* name : {"torch", "nvshmem4py", "deep-ep", "uccl", "nixl", "flashinfer-python"})
    if (package == name)
      return true;
  return false;
}

/// Whether an installed version fulfils the wanted one: "2.8.0+cu128" fulfils "2.8.0".
bool fulfils(const std::string& installed, const std::string& wanted) {
  return installed == wanted || (wanted.find('+') == std::string::npos &&
                                 installed.substr(0, installed.find('+')) == wanted);
}

/// The CUDA release that PyTorch was built with, from torch/version.py: "12.8".
std::string cuda_of_torch(const Sysroot& sysroot, const PythonSite& site) {
  const std::string text = sysroot.read(site.folder + "/torch/version.py").value_or("");
  for (const std::string& line : split(text, '\n')) {
    if (!starts_with(line, "cuda"))
      continue;
    const std::size_t equals = line.find('=');
    const std::size_t from = line.find_first_of("'\"", equals == std::string::npos ? 0 : equals);
    const std::size_t to = from == std::string::npos ? from : line.find_first_of("'\"", from + 1);
    if (equals != std::string::npos && to != std::string::npos)
      return line.substr(from + 1, to - from - 1);
  }
  return "";
}

/// The owner that another package requires; if there is none, the last one.
const std::string& package_to_keep(const PythonSite& site, const std::vector<std::string>& owners) {
  for (const std::string& owner : owners)
    for (const PythonPackage& package : site.packages)
      for (const libraries::ExactRequirement& requirement : package.requirements)
        if (requirement.package == owner)
          return owner;
  return owners.back();
}

void find_overwritten(const PythonSite& site, std::vector<Problem>& problems) {
  std::set<std::vector<std::string>> seen; // one row for all files of two packages
  for (const auto& [file, owners] : site.libraries)
    if (owners.size() > 1 && seen.insert(owners).second)
      problems.push_back(
          {fmt::format("{} belongs to {}: the one that was installed last has "
                       "overwritten the other's",
                       printable(site.folder + "/" + file), printable(join(owners, " and "))),
           fmt::format("pip uninstall -y {} && pip install {}", printable(join(owners, " ")),
                       printable(package_to_keep(site, owners)))});
}

void find_unfulfilled(const PythonSite& site, std::vector<Problem>& problems) {
  for (const PythonPackage& package : site.packages)
    for (const libraries::ExactRequirement& requirement : package.requirements) {
      const PythonPackage* const installed = site.package(requirement.package);
      if (!is_of_interest(requirement.package) || installed == nullptr ||
          fulfils(installed->version, requirement.version))
        continue;
      problems.push_back(
          {printable(fmt::format("{} {} needs {} {}, and {} is installed", package.name,
                                 package.version, requirement.package, requirement.version,
                                 installed->version)),
           printable(fmt::format("pip install {}=={}", requirement.package, requirement.version))});
    }
}

/// Adds problems for files whose release is not that of their package.
void find_foreign_files(const PythonSite& site, libraries::LibraryReader& reader,
                        std::vector<Problem>& problems) {
  for (const auto& [file, owners] : site.libraries) {
    if (owners.size() != 1)
      continue;
    const PythonPackage* const package = site.package(owners.front());
    const bool told = starts_with(owners.front(), "nvidia-nccl-") ||
                      starts_with(owners.front(), "nvidia-nvshmem-");
    const LibraryPointer library =
        told && package != nullptr ? reader.installed(site.folder + "/" + file) : nullptr;
    if (!library || library->version_source != "text in the file")
      continue;
    const auto own = libraries::release_of(library->version);
    const auto packaged = libraries::release_of(package->version);
    if (own && packaged && *own != *packaged)
      problems.push_back(
          {fmt::format("{} says that it is {}, but its package {} is {}",
                       printable(library->file.path), printable(library->version, 40),
                       package->name, printable(package->version, 40)),
           printable(fmt::format("pip install --force-reinstall --no-deps {}=={}", package->name,
                                 package->version))});
  }
}

/// Adds problems for wheels of another CUDA major release than PyTorch's.
void find_other_cuda(const Sysroot& sysroot, const PythonSite& site,
                     std::vector<Problem>& problems) {
  const std::string cuda = cuda_of_torch(sysroot, site);
  const std::vector<int> numbers = version_numbers(cuda);
  if (numbers.empty())
    return;
  for (const PythonPackage& package : site.packages) {
    const auto major = cuda_major_of_package(package.name);
    if (!is_of_interest(package.name) || !major || *major == numbers[0])
      continue;
    std::string fitting = package.name.substr(0, package.name.rfind("-cu"));
    fitting += fmt::format("-cu{}", numbers[0]);
    problems.push_back(
        {printable(fmt::format("{} {} is for CUDA {}, PyTorch for {}", package.name,
                               package.version, *major, cuda)),
         printable(fmt::format("pip uninstall -y {} && pip install {}", package.name, fitting))});
  }
}

std::string packages_text(const PythonSite& site) {
  std::vector<std::string> names;
  for (const PythonPackage& package : site.packages)
    if (is_of_interest(package.name))
      names.push_back(printable(package.name + " " + package.version, 80));
  return printable(site.folder) + ": " +
         (names.empty() ? counted(site.libraries.size(), "library file") : name_list(names));
}

bool has_communication(const PythonSite& site) {
  return !site.libraries.empty() ||
         std::any_of(site.packages.begin(), site.packages.end(),
                     [](const PythonPackage& package) { return is_of_interest(package.name); });
}

} // namespace

std::vector<std::string> chosen_site_folders(const CheckContext& context) {
  const PythonChoice python = chosen_python(context);
  return python.path.empty() ? std::vector<std::string>()
                             : libraries::site_folders(context.sysroot, python.path);
}

std::map<std::string, std::vector<InstalledFile>> loader_order(const Sysroot& sysroot,
                                                               const Environment& environment) {
  const auto path = environment.find("LD_LIBRARY_PATH");
  return libraries::search_order(sysroot, path == environment.end() ? "" : path->second,
                                 library_folders(sysroot));
}

CheckResult software_loader(const CheckContext& context) {
  const auto order = loader_order(context.sysroot, context.environment);
  if (order.empty())
    return skipped("the loader finds no communication library",
                   "LD_LIBRARY_PATH, /etc/ld.so.cache: none");
  libraries::LibraryReader reader(context.sysroot);
  std::vector<Problem> problems;
  std::vector<std::string> several, all;
  for (const auto& [name, files] : order) {
    all.push_back(printable(name) + " is " + printable(files.front().file));
    if (files.size() < 2)
      continue;
    several.push_back(printable(name) + " (" + printable(files.front().path) + " comes first)");
    if (auto problem = judge_files(files, reader))
      problems.push_back(std::move(*problem));
  }
  const std::string evidence = (variable(context, "LD_LIBRARY_PATH").empty()
                                    ? std::string("the loader's cache and folders: ")
                                    : std::string("LD_LIBRARY_PATH, then the loader's cache: ")) +
                               name_list(several.empty() ? all : several);
  if (!problems.empty())
    return first_of(problems, evidence);
  if (several.empty())
    return passed("each of " + counted(order.size(), "communication library name") +
                      " has one file in the search order",
                  evidence);
  return passed(
      "where a library is installed twice, no newer file that should be loaded comes later: " +
          name_list(several),
      evidence);
}

CheckResult software_python(const CheckContext& context) {
  const PythonChoice python = chosen_python(context);
  if (python.path.empty())
    return skipped("no Python environment is named or active", "VIRTUAL_ENV: not set",
                   "shmemctl doctor --python /path/to/python3");
  const std::vector<PythonSite> sites = python_sites(context);
  libraries::LibraryReader reader(context.sysroot);
  std::vector<Problem> problems;
  std::vector<std::string> seen;
  for (const PythonSite& site : sites) {
    if (!has_communication(site))
      continue;
    seen.push_back(packages_text(site));
    find_overwritten(site, problems);
    find_unfulfilled(site, problems);
    find_foreign_files(site, reader, problems);
    find_other_cuda(context.sysroot, site, problems);
  }
  if (seen.empty())
    return skipped("that Python environment has no communication library",
                   python.origin + ": " + printable(python.path));
  const std::string evidence = join(seen, "; ");
  return problems.empty() ? passed("the packages of the Python environment fit together", evidence)
                          : first_of(problems, evidence);
}

libraries::Libraries communication_libraries(const CheckContext& context) {
  libraries::LibraryReader reader(context.sysroot);
  libraries::Libraries together;
  std::set<std::pair<std::string, std::string>> taken; // kind and stem
  // An extension of Python finds the libraries of its environment by its RPATH, before others.
  for (const PythonSite& site : python_sites(context))
    for (const auto& entry : site.libraries)
      if (LibraryPointer library = reader.installed(site.folder + "/" + entry.first)) {
        taken.emplace(library->kind->id, library->stem);
        together.push_back(std::move(library));
      }
  for (const auto& entry : loader_order(context.sysroot, context.environment))
    if (LibraryPointer library = reader.installed(entry.second.front().path))
      if (taken.emplace(library->kind->id, library->stem).second)
        together.push_back(std::move(library));
  return together;
}

CheckResult software_versions(const CheckContext& context) {
  const libraries::Libraries together = communication_libraries(context);
  std::vector<std::string> names;
  names.reserve(together.size());
  for (const LibraryPointer& library : together)
    names.push_back(described(*library));
  if (together.size() < 2)
    return skipped("fewer than two communication libraries are installed",
                   names.empty() ? "LD_LIBRARY_PATH, /etc/ld.so.cache: none" : names.front());
  std::vector<Finding> findings;
  std::vector<std::string> remarks = {name_list(names)};
  for (Finding& finding : libraries::fit_findings(together))
    if (finding.severity == Severity::info) // looked up at run time, and there is an alternative
      remarks.push_back(printable(finding.message, 300));
    else
      findings.push_back(std::move(finding));
  const std::string evidence = join(remarks, "; ");
  if (findings.empty())
    return passed(counted(together.size(), "communication library file") +
                      " of the search order and the Python environment fit together",
                  evidence);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& left, const Finding& right) {
    return left.severity > right.severity;
  });
  const Finding& worst = findings.front();
  std::vector<std::string> others;
  for (std::size_t i = 1; i < findings.size(); ++i)
    others.push_back(printable(findings[i].message, 300));
  const std::string reason =
      printable(worst.message, 400) + (others.empty() ? "" : "; also: " + name_list(others));
  const std::string fix = printable(worst.fix, 300);
  return worst.severity == Severity::error ? failed(reason, evidence, fix)
                                           : warned(reason, evidence, fix);
}

namespace {

/// A release of a CUDA toolkit, and the file that contains it.
struct ToolkitRelease {
  std::string version, evidence;
};

std::optional<ToolkitRelease> toolkit_release(const Sysroot& sysroot, const std::string& folder) {
  const std::string json_path = folder + "/version.json";
  if (const auto text = sysroot.read(json_path)) {
    const nlohmann::json document = nlohmann::json::parse(*text, nullptr, false);
    const nlohmann::json::json_pointer place("/cuda/version");
    if (document.is_object() && document.contains(place) && document[place].is_string()) {
      const std::string version = document[place].get<std::string>();
      return ToolkitRelease{printable(version, 40), file_evidence(json_path, "cuda " + version)};
    }
  }
  const std::string text_path = folder + "/version.txt"; // until CUDA 10
  if (const auto version = field_of(sysroot.read(text_path).value_or(""), "CUDA Version "))
    return ToolkitRelease{printable(*version, 40), file_evidence(text_path, *version)};
  const std::string header_path = folder + "/include/cuda.h";
  if (const auto number = field_of(sysroot.read(header_path).value_or(""), "#define CUDA_VERSION "))
    if (const auto value = parse_integer(*number); value && *value >= 1000 && *value < 1000000)
      return ToolkitRelease{fmt::format("{}.{}", *value / 1000, *value % 1000 / 10),
                            file_evidence(header_path, "CUDA_VERSION " + *number)};
  return std::nullopt;
}

} // namespace

CheckResult software_cuda(const CheckContext& context) {
  const Sysroot& sysroot = context.sysroot;
  std::string name = "CUDA_HOME", folder = variable(context, "CUDA_HOME");
  if (folder.empty()) {
    name = "CUDA_PATH";
    folder = variable(context, "CUDA_PATH");
  }
  if (folder.empty())
    return skipped("CUDA_HOME is not set: extensions are built with the first nvcc in PATH",
                   "CUDA_HOME, CUDA_PATH: not set");
  const std::string setting = name + "=" + printable(folder);
  const auto release = toolkit_release(sysroot, folder);
  if (!release) {
    if (!sysroot.live())
      return skipped("the copied tree has no release of the CUDA toolkit", setting);
    return warned(name + " does not name a CUDA toolkit",
                  setting + ": neither version.json, version.txt nor include/cuda.h has a release",
                  "export CUDA_HOME=/usr/local/cuda");
  }
  const std::vector<int> numbers = version_numbers(release->version);
  if (numbers.empty())
    return skipped("the release of the CUDA toolkit is unknown", release->evidence);
  const std::string evidence = setting + "; " + release->evidence;
  for (const PythonSite& site : python_sites(context)) {
    const std::string torch = cuda_of_torch(sysroot, site);
    const std::vector<int> wanted = version_numbers(torch);
    if (!wanted.empty() && wanted[0] != numbers[0])
      return warned(
          fmt::format("{} is CUDA {}, and PyTorch is built with CUDA {}: it refuses to "
                      "build extensions with another major release",
                      name, release->version, printable(torch, 40)),
          evidence + "; " + printable(site.folder) + "/torch/version.py: " + printable(torch, 40),
          fmt::format("export CUDA_HOME=/usr/local/cuda-{}  # that release of the toolkit",
                      printable(torch, 40)));
  }
  const auto driver =
      parse_nvidia_version(sysroot.read("/proc/driver/nvidia/version").value_or(""));
  const std::string oldest = oldest_driver_branch(numbers[0]);
  const std::vector<int> branch = version_numbers(driver ? driver->version : "");
  if (!branch.empty() && branch[0] < *parse_integer(oldest))
    return warned(fmt::format("{} is CUDA {}, whose programs need a driver of branch {} or newer, "
                              "and {} is loaded",
                              name, release->version, oldest, driver->version),
                  evidence + "; " + file_evidence("/proc/driver/nvidia/version", driver->version),
                  "install a driver of branch " + oldest + " or newer, or an older CUDA toolkit");
  return passed(fmt::format("{} is CUDA {}", name, release->version), evidence);
}

namespace {

/// An environment module: "nccl" and "2.21.5-CUDA-12.4" for "NCCL/2.21.5-CUDA-12.4".
struct Module {
  std::string text, name, version;
};

std::vector<Module> loaded_modules(const std::string& list) {
  std::vector<Module> modules;
  for (const std::string& text : split(list, ':')) {
    const std::size_t slash = text.rfind('/');
    if (text.empty())
      continue;
    // "mpi/openmpi/4.1": the part before the version names it.
    const std::string path = lower(text.substr(0, slash));
    modules.push_back({printable(text, 80), path.substr(path.rfind('/') + 1),
                       slash == std::string::npos ? "" : text.substr(slash + 1)});
  }
  return modules;
}

/// The kind of a module of which only one may be loaded: "an MPI", "a CUDA toolkit", or the
/// module's own name; "" for other modules.
std::string kind_of_module(const std::string& name) {
  for (const char* mpi : {"openmpi", "ompi", "mpich", "mvapich", "mvapich2", "intelmpi", "impi",
                          "intel-mpi", "hpcx", "hpcx-mt", "cray-mpich", "spectrum-mpi"})
    if (name == mpi)
      return "an MPI";
  for (const char* library : {"cuda", "cudatoolkit"})
    if (name == library)
      return "a CUDA toolkit";
  for (const char* library :
       {"nccl", "nvshmem", "ucx", "libfabric", "gdrcopy", "rdma-core", "aws-ofi-nccl", "pmix"})
    if (name == library)
      return name;
  return "";
}

} // namespace

CheckResult software_modules(const CheckContext& context) {
  const std::string list = variable(context, "LOADEDMODULES");
  const std::vector<Module> modules = loaded_modules(list);
  std::map<std::string, std::vector<const Module*>> kinds;
  for (const Module& module : modules)
    if (const std::string kind = kind_of_module(module.name); !kind.empty())
      kinds[kind].push_back(&module);
  if (kinds.empty())
    return skipped("no module of a communication library or of CUDA is loaded",
                   list.empty() ? "LOADEDMODULES: not set" : file_evidence("LOADEDMODULES", list));
  const std::string evidence = file_evidence("LOADEDMODULES", list);
  std::vector<std::string> names;
  std::vector<Problem> problems;
  const auto cuda = kinds.find("a CUDA toolkit");
  for (const auto& [kind, loaded] : kinds) {
    for (const Module* module : loaded)
      names.push_back(module->text);
    if (loaded.size() > 1)
      problems.push_back({fmt::format("two modules provide {}: {} and {}", kind,
                                      loaded.front()->text, loaded.back()->text),
                          "module unload " + loaded.front()->text});
  }
  // EasyBuild appends the CUDA toolkit with which a library was built to the library's version.
  if (cuda != kinds.end()) {
    const std::vector<int> toolkit = version_numbers(cuda->second.back()->version);
    for (const Module& module : modules) {
      const std::size_t at = lower(module.version).find("-cuda-");
      const std::vector<int> built = at == std::string::npos
                                         ? std::vector<int>()
                                         : version_numbers(module.version.substr(at + 6));
      if (!built.empty() && !toolkit.empty() && built[0] != toolkit[0])
        problems.push_back({fmt::format("{} is built for CUDA {}, and {} is loaded", module.text,
                                        built[0], cuda->second.back()->text),
                            fmt::format("module swap {} # one that is built for CUDA {}",
                                        module.text, toolkit[0])});
    }
  }
  return problems.empty() ? passed("loaded modules: " + name_list(names), evidence)
                          : first_of(problems, evidence);
}

} // namespace doctor

} // namespace shmemctl
