#include "src/topo/advice/env_change.h"

#include <algorithm>
#include <set>

#include "src/base/remote_transport.h"
#include "src/base/text.h"
#include "src/topo/advice/env_lines.h"

namespace shmemctl {

namespace {

/// NVSHMEM's settings with one variable set, or unset.
void apply(const std::string& variable, const std::optional<std::string>& value,
           NvshmemSettings& settings) {
  const bool on = value && *value == "1";
  if (variable == "NVSHMEM_HCA_LIST")
    settings.hca_list = value;
  else if (variable == "NVSHMEM_HCA_PE_MAPPING")
    settings.hca_pe_mapping = value;
  else if (variable == "NVSHMEM_HCA_PREFIX")
    settings.hca_prefix = value;
  else if (variable == "NVSHMEM_ENABLE_NIC_PE_MAPPING")
    settings.enable_nic_pe_mapping = on;
  else if (variable == "NVSHMEM_IBGDA_ENABLE_MULTI_PORT")
    settings.ibgda_multi_port = on;
  else if (variable == "NVSHMEM_IB_ENABLE_IBGDA")
    settings.transport = on ? NvshmemTransport::ibgda : settings.proxy_transport;
  else if (variable == "NVSHMEM_REMOTE_TRANSPORT") {
    const std::string word = value.value_or("ibrc");
    const auto known = parse_remote_transport(word);
    settings.proxy_transport = transport_of_word(known.value_or("none"));
    settings.unknown_transport = known ? "" : word;
    if (settings.transport != NvshmemTransport::ibgda)
      settings.transport = settings.proxy_transport;
  }
}

} // namespace

const EnvChange::Values* EnvChange::find(const std::string& variable) const {
  for (const auto& [name, values] : variables_)
    if (name == variable)
      return &values;
  return nullptr;
}

EnvChange& EnvChange::put(const std::string& variable, Values values) {
  for (auto& [name, known] : variables_)
    if (name == variable) {
      known = std::move(values);
      return *this;
    }
  variables_.emplace_back(variable, std::move(values));
  return *this;
}

EnvChange& EnvChange::set(const std::string& variable, const std::string& value) {
  return put(variable, std::vector<std::string>{value});
}

EnvChange& EnvChange::set_per_rank(const std::string& variable,
                                   const std::vector<std::string>& values) {
  const std::set<std::string> distinct(values.begin(), values.end());
  return distinct.size() == 1 ? set(variable, values[0]) : put(variable, values);
}

EnvChange& EnvChange::unset(const std::string& variable) {
  return put(variable, std::nullopt);
}

EnvChange& EnvChange::add(const EnvChange& other) {
  for (const auto& [variable, values] : other.variables_)
    put(variable, values);
  return *this;
}

bool EnvChange::contradicts(const EnvChange& other) const {
  return std::any_of(variables_.begin(), variables_.end(), [&other](const auto& variable) {
    const Values* theirs = other.find(variable.first);
    return theirs != nullptr && *theirs != variable.second;
  });
}

MappingRequest EnvChange::applied_to(MappingRequest request) const {
  const std::size_t pes = request.gpus.size();
  for (const auto& [variable, values] : variables_) {
    const bool per_rank = values && values->size() > 1;
    if (variable == "NCCL_IB_HCA") {
      request.nccl_ib_hca.clear();
      for (std::size_t pe = 0; values && pe < pes; ++pe)
        request.nccl_ib_hca.push_back(per_rank ? values->at(pe) : values->at(0));
      continue;
    }
    if (per_rank && request.nvshmem_per_pe.empty())
      request.nvshmem_per_pe.assign(pes, request.nvshmem);
    const auto value_of = [&values = values, per_rank](std::size_t pe) {
      return values ? std::optional(values->at(per_rank ? pe : 0)) : std::nullopt;
    };
    apply(variable, value_of(0), request.nvshmem);
    for (std::size_t pe = 0; pe < request.nvshmem_per_pe.size(); ++pe)
      apply(variable, value_of(pe), request.nvshmem_per_pe[pe]);
  }
  return request;
}

std::vector<std::string> EnvChange::lines() const {
  std::vector<std::string> unset, set, lines;
  for (const auto& [variable, values] : variables_)
    if (!values)
      unset.push_back(variable);
    else if (values->size() == 1)
      set.push_back(variable + "=" + shell_word(values->front()));
  if (!unset.empty())
    lines.push_back("unset " + join(unset, " "));
  if (!set.empty())
    lines.push_back("export " + join(set, " "));
  for (const auto& [variable, values] : variables_)
    if (values && values->size() > 1)
      for (std::string& line : lines_per_rank(variable, *values))
        lines.push_back(std::move(line));
  return lines;
}

std::string EnvChange::text() const {
  return join(lines(), "; ");
}

} // namespace shmemctl
