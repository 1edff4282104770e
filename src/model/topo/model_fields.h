// The fields of the model by name: one list per struct, which every file format of ours (a report,
// and our additions to XML dumps) iterates over to write and to read. `added` marks fields that
// files of earlier releases lack; they keep their defaults.
#pragma once

#include <array>
#include <concepts>
#include <type_traits>

#include "src/model/topo/node.h"

namespace shmemctl {

/// T or const T: an archive that writes takes constants.
template <class T, class U>
concept SameAs = std::same_as<std::remove_const_t<T>, U>;

template <class Archive, SameAs<Package> T>
void fields(Archive& archive, T& package) {
  archive("os_index", package.os_index);
  archive("model", package.model);
}

template <class Archive, SameAs<NumaNode> T>
void fields(Archive& archive, T& numa) {
  archive("os_index", numa.os_index);
  archive("kind", numa.kind);
  archive("package", numa.package);
  archive("cpus", numa.cpus);
  archive("memory_bytes", numa.memory_bytes);
}

template <class Archive, SameAs<PcieLink> T>
void fields(Archive& archive, T& link) {
  archive("speed_GTps", link.speed_GTps);
  archive("width", link.width);
  archive("max_speed_GTps", link.max_speed_GTps);
  archive("max_width", link.max_width);
}

template <class Archive, SameAs<HostBridge> T>
void fields(Archive& archive, T& bridge) {
  archive("domain", bridge.domain);
  archive("bus", bridge.bus);
  archive("numa", bridge.numa);
  archive("package", bridge.package);
  archive("exact", bridge.exact);
}

template <class Archive, SameAs<PciDevice> T>
void fields(Archive& archive, T& device) {
  archive("address", device.address);
  archive("kind", device.kind);
  archive("parent", device.parent);
  archive("host_bridge", device.host_bridge);
  archive("class_code", device.class_code);
  archive("vendor", device.vendor);
  archive("device", device.device);
  archive("subsystem_vendor", device.subsystem_vendor);
  archive("subsystem_device", device.subsystem_device);
  archive("numa", device.numa);
  archive("link", device.link);
  archive("sysfs_path", device.sysfs_path);
}

template <class Archive, SameAs<GpuLink> T>
void fields(Archive& archive, T& link) {
  archive("kind", link.kind);
  archive("target", link.target);
  archive("target_address", link.target_address);
  archive("count", link.count);
  archive("bandwidth_GBps", link.bandwidth_GBps);
}

template <class Archive, SameAs<Gpu> T>
void fields(Archive& archive, T& gpu) {
  archive("index", gpu.index);
  archive("pci", gpu.pci);
  archive("vendor", gpu.vendor);
  archive("name", gpu.name);
  archive("uuid", gpu.uuid);
  archive("numa", gpu.numa);
  archive.added("numa_affinity", gpu.numa_affinity);
  archive.added("memory_numa", gpu.memory_numa);
  archive("cpus", gpu.cpus);
  archive("driver_index", gpu.driver_index);
  archive("links", gpu.links);
}

template <class Archive, SameAs<Gid> T>
void fields(Archive& archive, T& gid) {
  archive("index", gid.index);
  archive("value", gid.value);
  archive("type", gid.type);
  archive("netdev", gid.netdev);
}

template <class Archive, SameAs<NicPort> T>
void fields(Archive& archive, T& port) {
  archive("number", port.number);
  archive("state", port.state);
  archive("link_layer", port.link_layer);
  archive("rate_Gbps", port.rate_Gbps);
  archive("lid", port.lid);
  archive("active_mtu_bytes", port.active_mtu_bytes);
  archive("netdev", port.netdev);
  archive("gids", port.gids);
}

template <class Archive, SameAs<Nic> T>
void fields(Archive& archive, T& nic) {
  archive("name", nic.name);
  archive.added("unnamed", nic.unnamed);
  archive.added("source_number", nic.source_number);
  archive("pci", nic.pci);
  archive("rdma", nic.rdma);
  archive("driver", nic.driver);
  archive("numa", nic.numa);
  archive("firmware", nic.firmware);
  archive("node_guid", nic.node_guid);
  archive("virtual_device", nic.virtual_device);
  archive("data_direct", nic.data_direct);
  archive("ports", nic.ports);
}

/// All fields except the recorded matrix, which has its own forms, `format`, which only a report
/// keeps, and the versions of the driver and of CUDA, which only the live machine has.
template <class Archive, SameAs<Node> T>
void fields(Archive& archive, T& node) {
  archive("hostname", node.hostname);
  archive("packages", node.packages);
  archive("numa_nodes", node.numa_nodes);
  archive("host_bridges", node.host_bridges);
  archive("pci", node.pci);
  archive("gpus", node.gpus);
  archive("nics", node.nics);
  archive("nvswitches", node.nvswitches);
  archive.added("hidden_nics", node.hidden_nics);
  archive("notes", node.notes);
  archive.added("remarks", node.remarks);
}

/// The texts of each enumeration's values.
template <class Enum>
struct EnumName {
  Enum value;
  const char* word;
};
inline constexpr auto enum_names(NumaKind) {
  return std::array<EnumName<NumaKind>, 3>{{{NumaKind::cpu, "cpu"},
                                            {NumaKind::gpu_memory, "gpu_memory"},
                                            {NumaKind::other_memory, "other_memory"}}};
}
inline constexpr auto enum_names(PciKind) {
  return std::array<EnumName<PciKind>, 3>{{{PciKind::endpoint, "endpoint"},
                                           {PciKind::bridge, "bridge"},
                                           {PciKind::whole_switch, "whole_switch"}}};
}
inline constexpr auto enum_names(GpuLinkKind) {
  return std::array<EnumName<GpuLinkKind>, 3>{
      {{GpuLinkKind::nvlink, "nvlink"}, {GpuLinkKind::xgmi, "xgmi"}, {GpuLinkKind::c2c, "c2c"}}};
}
inline constexpr auto enum_names(LinkTarget) {
  return std::array<EnumName<LinkTarget>, 4>{{{LinkTarget::gpu, "gpu"},
                                              {LinkTarget::nvswitch, "nvswitch"},
                                              {LinkTarget::cpu, "cpu"},
                                              {LinkTarget::unknown, "unknown"}}};
}
inline constexpr auto enum_names(PortState) {
  return std::array<EnumName<PortState>, 4>{{{PortState::down, "down"},
                                             {PortState::init, "init"},
                                             {PortState::armed, "armed"},
                                             {PortState::active, "active"}}};
}
inline constexpr auto enum_names(LinkLayer) {
  return std::array<EnumName<LinkLayer>, 3>{{{LinkLayer::infiniband, "infiniband"},
                                             {LinkLayer::ethernet, "ethernet"},
                                             {LinkLayer::other, "other"}}};
}

template <class Enum>
const char* enum_name(Enum value) {
  for (const auto& entry : enum_names(value))
    if (entry.value == value)
      return entry.word;
  return "";
}

} // namespace shmemctl
