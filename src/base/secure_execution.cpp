#include "src/base/secure_execution.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sys/auxv.h>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::array<std::string_view, 8> code_variables = {
    "UCX_MODULE_DIR",        "UCX_MODULES",           "FI_PROVIDER_PATH", "HWLOC_PLUGINS_PATH",
    "CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "RDMAV_DRIVERS",    "IBV_DRIVERS"};
constexpr std::array<std::string_view, 4> code_prefixes = {"OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_",
                                                           "OPAL_"};

} // namespace

bool is_secure_execution() {
  static const bool secure = ::getauxval(AT_SECURE) != 0;
  return secure;
}

bool chooses_code(std::string_view option) {
  return ends_with(option, "_LIBRARY") || ends_with(option, "_PLUGIN") || option == "FAULT";
}

std::vector<std::string> foreign_code_variables(const Environment& environment) {
  std::vector<std::string> found;
  for (const auto& [name, value] : environment) {
    const bool by_prefix =
        std::any_of(code_prefixes.begin(), code_prefixes.end(),
                    [&name = name](std::string_view prefix) { return starts_with(name, prefix); });
    if (by_prefix ||
        std::find(code_variables.begin(), code_variables.end(), name) != code_variables.end())
      found.push_back(name);
  }
  return found;
}

std::vector<std::string> drop_code_variables(const Environment& environment) {
  if (!is_secure_execution())
    return {};
  std::vector<std::string> ignored = foreign_code_variables(environment);
  for (const std::string& name : ignored)
    ::unsetenv(name.c_str());
  for (const OptionSpec& spec : option_table())
    for (const char* prefix : {"SHMEMCTL_", "NVSHMEM_"})
      if (chooses_code(spec.name) && environment.count(prefix + spec.name) != 0)
        ignored.push_back(prefix + spec.name);
  return ignored;
}

} // namespace shmemctl
