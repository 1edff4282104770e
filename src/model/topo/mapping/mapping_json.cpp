#include "src/model/topo/mapping/mapping_json.h"

#include "src/model/topo/mapping/request.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/model/topo/distance.h"

namespace shmemctl {

namespace {

using nlohmann::json;

const std::string& nic_name(const Node& node, int nic) {
  return node.nics[static_cast<std::size_t>(nic)].name;
}

void put_unknown(json& object, const std::string& key, const std::string& reason) {
  object[key] = nullptr;
  object[key + "_reason"] = reason;
}

json nic_use_json(const Node& node, const NicUse& use) {
  json object = {{"device", nic_name(node, use.nic)}, {"port", use.port}};
  if (use.distance.path)
    object["distance"] = to_string(use.distance);
  else
    put_unknown(object, "distance", use.distance.reason);
  return object;
}

json pe_json(const Node& node, const PeMapping& pe) {
  json object = {{"pe", pe.pe},
                 {"nics", json::array()},
                 {"used", pe.used},
                 {"chosen_by", pe.chosen_by},
                 {"reason", pe.reason}};
  if (pe.gpu >= 0)
    object["gpu"] = pe.gpu;
  else
    put_unknown(object, "gpu", "this node has no GPU");
  for (const NicUse& use : pe.nics)
    object["nics"].push_back(nic_use_json(node, use));
  return object;
}

json nic_load_json(const Node& node, const NicLoad& load) {
  return {{"device", nic_name(node, load.nic)},
          {"port", load.port},
          {"pes", load.pes},
          {"load", load.load},
          {"load_factor", load.load_factor}};
}

/// The device's name by its number in the enumeration.
json table_device(const Node& node, const Mapping& mapping, int device) {
  const auto index = static_cast<std::size_t>(device);
  return index < mapping.table_nics.size() ? json(nic_name(node, mapping.table_nics[index]))
                                           : json(nullptr);
}

json list_json(const DeviceTable& table) {
  json object = {{"name", "NVSHMEM_" + table.list_name},
                 {"exclude", table.list.exclude},
                 {"entries", json::array()},
                 {"unmatched", json::array()}};
  auto entry_json = [](const HcaListEntry& entry) {
    json row = {{"name", printable(entry.name)}, {"column", entry.column}, {"count", entry.count}};
    if (entry.port >= 0)
      row["port"] = entry.port;
    else
      put_unknown(row, "port", "the entry names no port: every port");
    return row;
  };
  for (const HcaListEntry& entry : table.list.entries)
    object["entries"].push_back(entry_json(entry));
  for (const HcaListEntry& entry : table.unmatched)
    object["unmatched"].push_back(entry_json(entry));
  return object;
}

/// Adds the keys that only NVSHMEM's policy fills: version, version_source, generation, table,
/// exclusions, list.
void put_nvshmem(json& object, const Node& node, const Mapping& mapping) {
  object["version"] = to_string(mapping.request.nvshmem.version);
  if (const std::string& source = mapping.request.nvshmem.version_source; !source.empty())
    object["version_source"] = source;
  object["generation"] = generation_letter(family_of(mapping.request.nvshmem.version));
  object["table"] = json::array();
  for (const TableEntry& row : mapping.table.entries)
    object["table"].push_back(
        {{"device", table_device(node, mapping, row.device)}, {"port", row.port}});
  object["exclusions"] = json::array();
  for (const TableExclusion& exclusion : mapping.table.exclusions) {
    json row = {{"device", table_device(node, mapping, exclusion.device)},
                {"reason", exclusion.reason}};
    if (exclusion.port > 0)
      row["port"] = exclusion.port;
    else
      put_unknown(row, "port", "the whole device");
    object["exclusions"].push_back(row);
  }
  if (mapping.table.list_name.empty())
    put_unknown(object, "list", "neither NVSHMEM_HCA_LIST nor NVSHMEM_HCA_PE_MAPPING is in effect");
  else
    object["list"] = list_json(mapping.table);
}

} // namespace

nlohmann::json mapping_json(const Node& node, const Mapping& mapping,
                            const std::vector<Advice>& advice) {
  json object = {{"policy", to_string(mapping.request.policy)},
                 {"world", to_string(mapping.request.world)},
                 {"load_factor", mapping.load_factor},
                 {"pes", json::array()},
                 {"nics", json::array()},
                 {"advice", json::array()}};
  if (mapping.request.policy == Policy::nvshmem)
    put_nvshmem(object, node, mapping);
  else
    for (const char* key : {"version", "generation", "table", "exclusions", "list"})
      put_unknown(object, key,
                  std::string("policy ") + to_string(mapping.request.policy) + " has none");
  for (const PeMapping& pe : mapping.pes)
    object["pes"].push_back(pe_json(node, pe));
  for (const NicLoad& load : mapping.nics)
    object["nics"].push_back(nic_load_json(node, load));
  for (const Advice& each : advice)
    object["advice"].push_back({{"world", to_string(each.world)},
                                {"library", each.library},
                                {"lines", each.lines},
                                {"note", each.note}});
  return object;
}

Mapping numbered_by_job(Mapping mapping, const std::vector<int>& pes) {
  if (pes.size() != mapping.pes.size())
    return mapping;
  for (PeMapping& pe : mapping.pes)
    pe.pe = pes[static_cast<std::size_t>(pe.pe)];
  for (NicLoad& load : mapping.nics)
    for (int& pe : load.pes)
      pe = pes[static_cast<std::size_t>(pe)];
  return mapping;
}

nlohmann::json compare_versions_json(const Node& node, const MappingRequest& request) {
  json groups = json::array();
  for (const VersionDifference& group : compare_versions(node, request)) {
    json object = {{"versions", json::array()}, {"pes", json::array()}};
    for (const NvshmemVersion& version : group.versions)
      object["versions"].push_back(to_string(version));
    for (const PeMapping& pe : group.pes)
      object["pes"].push_back(pe_json(node, pe));
    groups.push_back(object);
  }
  return groups;
}

} // namespace shmemctl
