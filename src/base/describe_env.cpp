#include "src/base/describe_env.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/secret_filter.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::string_view own_prefix = "SHMEMCTL_";
constexpr std::string_view nvshmem_prefix = "NVSHMEM_";

bool has_foreign_prefix(const std::string& name) {
  for (std::string_view prefix : {nvshmem_prefix, std::string_view("NCCL_"),
                                  std::string_view("UCX_"), std::string_view("FI_")})
    if (starts_with(name, prefix))
      return true;
  return false;
}

/// Names that appear in guides, but that no NVSHMEM release knows.
bool never_existed(const std::string& name) {
  static const std::set<std::string> names = {"NVSHMEM_PROXY_CHANNEL_BUF_SIZE",
                                              "NVSHMEM_NUM_PROXY_THREADS", "NVSHMEM_DISABLE_IB"};
  return names.count(name) != 0;
}

std::string own_name(const OptionSpec& spec) {
  return std::string(own_prefix) + spec.name;
}

std::vector<std::string> own_names() {
  std::vector<std::string> names;
  for (const OptionSpec& spec : option_table())
    names.push_back(own_name(spec));
  return names;
}

/// Whether `shmemctl run` sets the variable for its PEs, or `hotspots --during` for its command, or
/// a part of this project other than the command reads it: the Slurm prolog, the tests and their
/// fake libraries. These variables are not options.
bool is_of_this_project(const std::string& name) {
  static const std::set<std::string> names = {"SHMEMCTL_DURING_ID",       "SHMEMCTL_BINARY",
                                              "SHMEMCTL_BOOTSTRAP_PROBE", "SHMEMCTL_NVCC",
                                              "SHMEMCTL_SANITIZE",        "SHMEMCTL_SOAK"};
  for (const char* prefix :
       {"SHMEMCTL_LOCAL_", "SHMEMCTL_PROLOG_", "SHMEMCTL_TEST", "SHMEMCTL_FAKE_"})
    if (starts_with(name, prefix))
      return true;
  return names.count(name) != 0;
}

const OptionSpec* aliased_option(const std::string& name) {
  for (const OptionSpec& spec : option_table())
    if (spec.nvshmem_alias && name == std::string(nvshmem_prefix) + spec.name)
      return &spec;
  return nullptr;
}

std::string foreign_meaning(const std::string& name, const Options& options) {
  if (const OptionSpec* spec = aliased_option(name)) {
    const OptionValue& value = options.value(spec->name);
    if (value.origin_name == name)
      return "read as SHMEMCTL_" + spec->name;
    return "overridden by " + value.origin_name;
  }
  for (const auto& [known_name, meaning] : foreign_variable_table())
    if (known_name == name)
      return meaning;
  if (never_existed(name))
    return "no release of NVSHMEM reads it";
  return "not read here";
}

/// Whether a boolean may surprise its user: NVSHMEM treats every value that does not begin with 0,
/// n or f as true, so "off" enables an option.
bool surprises(const OptionSpec& spec, const OptionValue& value) {
  static const std::set<std::string> meant_false = {"off", "disable", "disabled", ""};
  return spec.type == OptionType::boolean && value.origin == OptionOrigin::nvshmem_environment &&
         meant_false.count(lower(value.text)) != 0;
}

void add_option_findings(const OptionSpec& spec, const OptionValue& value, Findings& findings) {
  const bool in_file = value.origin == OptionOrigin::config_file;
  if (!value.problem.empty())
    findings.push_back({"env-invalid", Severity::error, value.origin_name,
                        (in_file ? spec.name : value.origin_name) + "=" +
                            shown_value(own_name(spec), value.text) + " is " + value.problem +
                            (in_file ? ", in " + value.origin_name : ""),
                        in_file ? "correct it in " + value.origin_name
                                : "unset " + value.origin_name + ", or give it a legal value"});
  if (surprises(spec, value))
    findings.push_back({"env-surprising-boolean", Severity::warning, value.origin_name,
                        value.origin_name + "=" + value.text +
                            " means true: NVSHMEM reads only words that begin with 0, n or f as "
                            "false",
                        "export " + value.origin_name + "=0"});
}

void add_if_unknown(const std::string& name, Findings& findings) {
  const std::vector<std::string> names = own_names();
  if (is_of_this_project(name) || std::find(names.begin(), names.end(), name) != names.end())
    return;
  findings.push_back({"env-unknown", Severity::warning, name,
                      printable(name) + " is not an option of shmemctl, so it does nothing",
                      did_you_mean(name, names) + "shmemctl env lists every option"});
}

void add_variable_findings(const std::string& name, const Options& options, Findings& findings) {
  if (starts_with(name, own_prefix)) {
    add_if_unknown(name, findings);
  } else if (never_existed(name)) {
    findings.push_back({"env-no-such-nvshmem-variable", Severity::warning, name,
                        name + " is set, but no release of NVSHMEM reads a variable of that name",
                        "unset " + name});
  } else if (const OptionSpec* spec = aliased_option(name)) {
    const OptionValue& value = options.value(spec->name);
    if (value.origin_name != name)
      findings.push_back({"env-shadowed", Severity::info, name,
                          name + " is set, but " + value.origin_name + " wins",
                          "unset one of the two"});
  }
}

} // namespace

const std::vector<std::pair<std::string, std::string>>& foreign_variable_table() {
  static const std::vector<std::pair<std::string, std::string>> table = {
      {"CUDA_VISIBLE_DEVICES",
       "renumbers GPUs for CUDA programs; topo shows all GPUs all the same"},
      {"NCCL_IB_HCA", "read by NCCL only; topo's advice prints the value it should have"},
      {"NCCL_TOPO_FILE", "read by NCCL only (NVSHMEM ignores it); show it with topo --from FILE"},
      {"NCCL_TOPO_DUMP_FILE", "read by NCCL only: it writes a file that topo --from reads"},
      {"NCCL_IB_GID_INDEX", "read by NCCL; doctor checks whether the index is right"},
      {"NCCL_NET_GDR_LEVEL", "read by NCCL only; topo's distances are what it compares with"},
      {"UCX_NET_DEVICES", "read by UCX only; topo's advice prints the value it should have"},
      {"UCX_IB_GID_INDEX", "read by UCX; doctor checks whether the index is right"},
      {"FI_PROVIDER", "read by libfabric only"},
      {"FI_EFA_USE_DEVICE_RDMA", "read by libfabric's EFA provider only"},
      {"NVSHMEM_DISABLE_P2P", "read by NVSHMEM only"},
      {"NVSHMEM_DEBUG", "read by NVSHMEM only; its INFO lines name the chosen device ids"},
  };
  return table;
}

Findings unknown_variables(const Environment& environment) {
  Findings findings;
  for (const auto& [name, value] : environment)
    if (starts_with(name, own_prefix))
      add_if_unknown(name, findings);
  return findings;
}

EnvDescription describe_environment(const Options& options, const Environment& environment) {
  EnvDescription result;
  const SecretFilter filter(options);
  for (const OptionSpec& spec : option_table()) {
    const OptionValue& value = options.value(spec.name);
    result.options.push_back({spec.name, shown_value(own_name(spec), value.text),
                              to_string(value.origin), value.origin_name, spec.default_value,
                              to_string(spec.type), spec.doc, value.problem,
                              spec.nvshmem_alias ? std::string(nvshmem_prefix) + spec.name : ""});
    add_option_findings(spec, value, result.findings);
  }
  const auto unknown_transport = check_remote_transport(options);
  // otherwise the finding is env-invalid
  if (unknown_transport && options.value("REMOTE_TRANSPORT").problem.empty())
    result.findings.push_back(*unknown_transport);
  for (const auto& [name, value] : environment) {
    add_variable_findings(name, options, result.findings);
    if (has_foreign_prefix(name))
      result.foreign.push_back(
          {name, shown_value(name, filter(value)), foreign_meaning(name, options)});
  }
  return result;
}

} // namespace shmemctl
