// The fields of the model's structs, in one description that writes and reads them.
//
// A record is found by its place, "at": the position in its list, below that of its owner where it
// has one: nic_port at "2.0" is the first port of the third NIC.
#pragma once

#include "src/topo/node.h"

namespace shmemctl::node_records {

template <class Visit, class Each>
void package(Visit& visit, Each& it) {
  visit("os_index", it.os_index);
  visit("model", it.model);
}

template <class Visit, class Each>
void numa(Visit& visit, Each& it) {
  visit("os_index", it.os_index);
  visit("kind", it.kind);
  visit("package", it.package);
  visit("cpus", it.cpus);
  visit("memory_bytes", it.memory_bytes);
}

template <class Visit, class Each>
void host_bridge(Visit& visit, Each& it) {
  visit("domain", it.domain);
  visit("bus", it.bus);
  visit("numa", it.numa);
  visit("package", it.package);
  visit("exact", it.exact);
}

template <class Visit, class Each>
void pci(Visit& visit, Each& it) {
  visit("address", it.address);
  visit("kind", it.kind);
  visit("parent", it.parent);
  visit("host_bridge", it.host_bridge);
  visit("class_code", it.class_code);
  visit("vendor", it.vendor);
  visit("device", it.device);
  visit("subsystem_vendor", it.subsystem_vendor);
  visit("subsystem_device", it.subsystem_device);
  visit("numa", it.numa);
  visit("speed_GTps", it.link.speed_GTps);
  visit("width", it.link.width);
  visit("max_speed_GTps", it.link.max_speed_GTps);
  visit("max_width", it.link.max_width);
  visit("sysfs_path", it.sysfs_path);
}

template <class Visit, class Each>
void gpu(Visit& visit, Each& it) {
  visit("pci", it.pci);
  visit("vendor", it.vendor);
  visit("name", it.name);
  visit("uuid", it.uuid);
  visit("numa", it.numa);
  visit("cpus", it.cpus);
  visit("driver_index", it.driver_index);
}

template <class Visit, class Each>
void gpu_link(Visit& visit, Each& it) {
  visit("kind", it.kind);
  visit("target", it.target);
  visit("target_address", it.target_address);
  visit("count", it.count);
  visit("bandwidth_GBps", it.bandwidth_GBps);
}

template <class Visit, class Each>
void nic(Visit& visit, Each& it) {
  visit("name", it.name);
  visit("pci", it.pci);
  visit("rdma", it.rdma);
  visit("driver", it.driver);
  visit("numa", it.numa);
  visit("firmware", it.firmware);
  visit("node_guid", it.node_guid);
  visit("virtual_device", it.virtual_device);
  visit("data_direct", it.data_direct);
}

template <class Visit, class Each>
void nic_port(Visit& visit, Each& it) {
  visit("number", it.number);
  visit("state", it.state);
  visit("link_layer", it.link_layer);
  visit("rate_Gbps", it.rate_Gbps);
  visit("lid", it.lid);
  visit("active_mtu_bytes", it.active_mtu_bytes);
  visit("netdev", it.netdev);
}

template <class Visit, class Each>
void gid(Visit& visit, Each& it) {
  visit("index", it.index);
  visit("value", it.value);
  visit("type", it.type);
  visit("netdev", it.netdev);
}

} // namespace shmemctl::node_records
