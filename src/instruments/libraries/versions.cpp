#include "src/instruments/libraries/versions.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::libraries {

namespace {

using Release = std::array<int, 3>;

/// The first NVSHMEM whose RC queue pairs of IBGDA are in another order than in older releases.
constexpr Release new_qp_layout = {3, 5, 19};

std::string described(const Library& library) {
  return library.file.path + (library.version.empty() ? "" : " (" + library.version + ")");
}

/// The command that installs an NVSHMEM release, guessed from the owner of the file.
std::string install_nvshmem(const Library& host, const std::string& version) {
  const std::string package = host.owner.substr(0, host.owner.find(' '));
  return (starts_with(package, "nvidia-nvshmem") ? "pip install " + package + "==" + version
                                                 : "install NVSHMEM " + version);
}

std::vector<const Library*> of_kind(const Libraries& libraries, std::string_view id) {
  std::vector<const Library*> found;
  for (const auto& library : libraries)
    if (id == library->kind->id)
      found.push_back(library.get());
  return found;
}

void find_split(const Libraries& libraries, const Library& host, Findings& findings) {
  const auto loaded = release_of(host.version);
  if (!loaded)
    return;
  for (const auto& each : libraries) {
    const bool plugin = each->kind->family == Family::nvshmem && each->kind != host.kind;
    const std::string& version = plugin ? each->version : each->nvshmem_inside;
    const auto linked = release_of(version);
    if (!linked || *linked == *loaded)
      continue;
    if (plugin) {
      findings.push_back({"nvshmem-version-split", Severity::error, "",
                          fmt::format("the plugin {} is of NVSHMEM {}, the host library {} of {}",
                                      each->file.path, version, host.file.path, host.version),
                          "let both come from one installation: begin LD_LIBRARY_PATH with the "
                          "folder of the host library, and unset NVSHMEM_BOOTSTRAP_PLUGIN or set "
                          "it to a plugin in that folder"});
      continue;
    }
    // Within a major release, NVSHMEM's host library supports older device libraries. This promise
    // does not hold for code that reads private state.
    const bool breaks = (*linked)[0] != (*loaded)[0] || *linked > *loaded || each->has_ibgda_state;
    findings.push_back(
        {"nvshmem-version-split", breaks ? Severity::error : Severity::warning, "",
         fmt::format("{} has NVSHMEM's device library {} in it, the host library {} is {}",
                     each->file.path, version, host.file.path, host.version),
         fmt::format("rebuild {} against NVSHMEM {}, or {}", each->stem, host.version,
                     install_nvshmem(host, version))});
  }
}

void find_layout(const Libraries& libraries, const Library& host, Findings& findings) {
  const auto loaded = release_of(host.version);
  if (!loaded || *loaded < new_qp_layout)
    return;
  for (const auto& each : libraries) {
    if (!each->has_ibgda_state || each->kind->family == Family::nvshmem)
      continue;
    const auto linked = release_of(each->nvshmem_inside);
    if (linked && *linked >= new_qp_layout)
      continue;
    const std::string inside = linked ? "NVSHMEM " + each->nvshmem_inside
                                      : std::string("an NVSHMEM whose version it does not report");
    findings.push_back(
        {"nvshmem-qp-layout", linked ? Severity::error : Severity::warning, "",
         fmt::format("{} was built with {} and reads IBGDA's queue pairs, which {} ({}) keeps in "
                     "another order since 3.5.19: transfers between nodes time out or access "
                     "memory illegally",
                     each->file.path, inside, host.file.path, host.version),
         fmt::format("rebuild {} from a revision that knows the order of 3.5.19, or {}", each->stem,
                     install_nvshmem(host, linked ? each->nvshmem_inside : "3.4.5"))});
  }
}

void find_twice(const Libraries& libraries, Findings& findings) {
  std::map<std::pair<std::string, std::string>, std::vector<const Library*>> by_name;
  for (const auto& library : libraries)
    by_name[{library->kind->id, library->stem}].push_back(library.get());
  for (const auto& [name, files] : by_name) {
    if (files.size() < 2)
      continue;
    std::vector<std::string> paths;
    for (const Library* file : files)
      paths.push_back(described(*file) + (file->file.deleted ? " (deleted)" : ""));
    const bool breaks = name.first == "nvshmem-host";
    const Library& last = *files.back();
    findings.push_back(
        {"library-twice", breaks ? Severity::error : Severity::warning, "",
         fmt::format("{} ({}) is loaded {} times: {}", name.second, files.front()->kind->title,
                     files.size(), join(paths, ", ")),
         fmt::format("keep one of them: {}, and look for the others in LD_LIBRARY_PATH, LD_PRELOAD "
                     "and RPATHs",
                     last.owner.empty()
                         ? "remove " + last.file.path + " from the search path"
                         : "uninstall " + last.owner.substr(0, last.owner.find(' ')) +
                               " or the "
                               "package of " +
                               files.front()->file.path)});
  }
}

void find_missing_symbols(const Libraries& libraries, Findings& findings) {
  for (const auto& provider : libraries) {
    if (!provider->elf.problem.empty() || provider->elf.soname.empty())
      continue;
    const auto& defined = provider->elf.defined_versions;
    const auto lacks = [&defined](const std::string& version) {
      return std::find(defined.begin(), defined.end(), version) == defined.end();
    };
    for (const auto& user : libraries) {
      if (user == provider)
        continue;
      std::vector<std::string> missing;
      for (const NeededVersions& needs : user->elf.needed_versions)
        if (needs.file == provider->elf.soname)
          std::copy_if(needs.versions.begin(), needs.versions.end(), std::back_inserter(missing),
                       lacks);
      const bool linked = !missing.empty();
      // Versions that `user` looks up with dlvsym(): it must be prepared for a failure. The prefix
      // identifies the versions of `provider`.
      const std::string prefix = provider->stem == "libmlx5"      ? "MLX5_"
                                 : provider->stem == "libibverbs" ? "IBVERBS_"
                                 : provider->stem == "libefa"     ? "EFA_"
                                                                  : "";
      if (!linked && !prefix.empty() && !defined.empty())
        for (const std::string& version : user->asked_versions)
          if (starts_with(version, prefix) && lacks(version))
            missing.push_back(version);
      if (missing.empty())
        continue;
      const std::string install =
          fmt::format("install a newer {}{}, or an older {}", provider->kind->title,
                      provider->owner.empty() ? "" : " than " + provider->owner,
                      user->owner.empty() ? user->stem : user->owner);
      findings.push_back(
          {"symbol-missing", linked ? Severity::error : Severity::info, "",
           fmt::format("{} {} {} of {}, which {} does not have{}", described(*user),
                       linked ? "needs" : "asks at run time for", join(missing, ", "),
                       provider->elf.soname, described(*provider),
                       linked ? "" : ": what needs it is not available, the rest works"),
           linked ? install
                  : "nothing if the job works; if it needs a feature of that version (in NCCL, "
                    "GPU-initiated networking), " +
                        install});
    }
  }
}

} // namespace

std::optional<Release> release_of(std::string_view version) {
  Release release = {0, 0, 0};
  std::size_t count = 0;
  while (count < release.size()) {
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), release[count]);
    if (error != std::errc() || release[count] < 0)
      break;
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    ++count;
    if (version.empty() || version.front() != '.')
      break;
    version.remove_prefix(1);
  }
  return count > 0 ? std::optional(release) : std::nullopt;
}

Findings fit_findings(const Libraries& libraries) {
  Findings findings;
  if (const auto hosts = of_kind(libraries, "nvshmem-host"); !hosts.empty()) {
    find_split(libraries, *hosts.front(), findings);
    find_layout(libraries, *hosts.front(), findings);
  }
  find_missing_symbols(libraries, findings);
  return findings;
}

Findings version_findings(const Libraries& libraries) {
  Findings findings = fit_findings(libraries);
  find_twice(libraries, findings);
  return findings;
}

} // namespace shmemctl::libraries
