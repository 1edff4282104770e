#include <cerrno>

#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

constexpr const char* origin = "test";

void healthy(Machine& m) {
  m.node = healthy_node();
}
void without_rdma(Machine& m) {
  m.node = node_without_rdma();
}
NicPort& port_of(Machine& m, std::size_t nic) {
  return m.node.nics[nic].ports.front();
}

/// A 25 Gb/s Ethernet NIC beside the InfiniBand fabric, below a host bridge without a GPU.
void with_ethernet_nic(Machine& m, bool enumerated_first) {
  healthy(m);
  Nic management = m.node.nics[0];
  management.name = "mlx5_9";
  m.node.host_bridges.push_back({0, 0x60, {}, {}, true});
  PciDevice function;
  function.address = parse_pci_address("0000:60:01.0").value();
  function.host_bridge = static_cast<int>(m.node.host_bridges.size()) - 1;
  m.node.pci.push_back(function);
  management.pci = static_cast<int>(m.node.pci.size()) - 1;
  management.ports.front().link_layer = known(LinkLayer::ethernet, origin);
  management.ports.front().rate_Gbps = known(25.0, origin);
  m.node.nics.insert(enumerated_first ? m.node.nics.begin() : m.node.nics.end(), management);
}
void with_models(Machine& m) {
  for (const Nic& nic : m.node.nics) {
    PciDevice& function = m.node.pci[static_cast<std::size_t>(nic.pci)];
    function.vendor = known(pci_ids::mellanox, origin);
    function.device = known(std::uint16_t{0x1021}, origin);
  }
}

Scenarios devices() {
  const std::string id = "rdma-devices";
  return {
      {id, "two", healthy, pass, "/sys/class/infiniband: mlx5_0, mlx5_1", ""},
      {id, "one NIC without",
       [](Machine& m) {
         healthy(m);
         m.node.nics[1].rdma = known(false, origin);
         m.node.nics[1].name = "eth1";
       },
       warning, "/sys/class/infiniband: mlx5_0", "modprobe mlx5_ib"},
      {id, "no NIC with",
       [](Machine& m) {
         healthy(m);
         for (Nic& nic : m.node.nics)
           nic.rdma = known(false, origin);
       },
       fail, "/sys/class/infiniband: empty", "modprobe mlx5_ib"},
      {id, "the second function of a bond",
       [](Machine& m) {
         healthy(m);
         PciDevice second = function_at(m.node, nic_address[0]);
         second.address.function = 1;
         m.node.pci.push_back(second);
         Nic nic = m.node.nics[0];
         nic.name = "eth1";
         nic.rdma = known(false, origin);
         nic.pci = static_cast<int>(m.node.pci.size()) - 1;
         m.node.nics.push_back(nic);
       },
       pass, "mlx5_0, mlx5_1", ""},
      {id, "a NIC that has no RDMA to offer",
       [](Machine& m) {
         healthy(m);
         m.node.nics[1].rdma = known(false, origin);
         m.node.nics[1].driver = known<std::string>("virtio_net", origin);
       },
       pass, "/sys/class/infiniband: mlx5_0", ""},
      {id, "no RDMA", without_rdma, skipped, "", ""},
  };
}

Scenarios states() {
  const std::string id = "rdma-port-state";
  return {
      {id, "active", healthy, pass, "ACTIVE", ""},
      {id, "one InfiniBand port down",
       [](Machine& m) {
         healthy(m);
         port_of(m, 1).state = known(PortState::down, origin);
       },
       warning, "/sys/class/infiniband/mlx5_1/ports/1/state: DOWN", "ibstat mlx5_1 1"},
      {id, "waiting for a subnet manager",
       [](Machine& m) {
         healthy(m);
         for (std::size_t i = 0; i < 2; ++i)
           port_of(m, i).state = known(PortState::init, origin);
       },
       fail, "/sys/class/infiniband/mlx5_0/ports/1/state: INIT", "opensm"},
      {id, "one RoCE port down",
       [](Machine& m) {
         m.node = roce_node();
         port_of(m, 0).state = known(PortState::down, origin);
       },
       warning, "mlx5_0/ports/1/state: DOWN", "ip link set dev eth0 up"},
      {id, "unknown",
       [](Machine& m) {
         healthy(m);
         for (Nic& nic : m.node.nics)
           nic.ports.front().state = unknown<PortState>("no file");
       },
       skipped, "state: unknown", ""},
      {id, "no RDMA", without_rdma, skipped, "", ""},
  };
}

Scenarios layers_and_rates() {
  const std::string layer = "rdma-link-layer";
  const std::string rate = "rdma-rate";
  auto no_active = [](Machine& m) {
    healthy(m);
    for (Nic& nic : m.node.nics)
      nic.ports.front().state = known(PortState::down, origin);
  };
  return {
      {layer, "InfiniBand", healthy, pass, "InfiniBand mlx5_0:1, mlx5_1:1", ""},
      {layer, "Ethernet", [](Machine& m) { m.node = roce_node(); }, pass, "Ethernet mlx5_0:1", ""},
      {layer, "mixed, and no PE uses the other one",
       [](Machine& m) { with_ethernet_nic(m, false); }, pass,
       "InfiniBand mlx5_0:1, mlx5_1:1; Ethernet mlx5_9:1", ""},
      {layer, "mixed, and a PE is pinned to the other one",
       [](Machine& m) {
         with_ethernet_nic(m, true);
         m.environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
       },
       fail, "InfiniBand mlx5_0:1, mlx5_1:1; Ethernet mlx5_9:1",
       "unset NVSHMEM_ENABLE_NIC_PE_MAPPING"},
      {layer, "mixed, and the operator excludes the other one",
       [](Machine& m) {
         with_ethernet_nic(m, true);
         m.environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
         m.environment["NVSHMEM_HCA_LIST"] = "^mlx5_9";
       },
       pass, "Ethernet mlx5_9:1", ""},
      {layer, "another layer, but not active",
       [](Machine& m) {
         healthy(m);
         port_of(m, 1).link_layer = known(LinkLayer::ethernet, origin);
         port_of(m, 1).state = known(PortState::down, origin);
       },
       pass, "InfiniBand mlx5_0:1", ""},
      {layer, "no active port", no_active, skipped, "link_layer: unknown", ""},
      {layer, "no RDMA", without_rdma, skipped, "", ""},

      {rate, "the same", healthy, pass, "400 Gb/s to 400 Gb/s", ""},
      {rate, "one of the same model is slower",
       [](Machine& m) {
         healthy(m);
         with_models(m);
         port_of(m, 1).rate_Gbps = known(100.0, origin);
       },
       warning, "100 Gb/s to 400 Gb/s", "mlxlink -d mlx5_1 -p 1 -m"},
      {rate, "a NIC of another network, which no PE uses",
       [](Machine& m) {
         with_ethernet_nic(m, false);
         m.node.nics.back().ports.front().link_layer = known(LinkLayer::infiniband, origin);
       },
       pass, "25 Gb/s to 400 Gb/s", ""},
      {rate, "a NIC of another network, to which a PE is pinned",
       [](Machine& m) {
         with_ethernet_nic(m, true);
         m.node.nics.front().ports.front().link_layer = known(LinkLayer::infiniband, origin);
         m.environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1";
       },
       fail, "25 Gb/s to 400 Gb/s", "unset NVSHMEM_ENABLE_NIC_PE_MAPPING"},
      {rate, "no active port", no_active, skipped, "rate: unknown", ""},
      {rate, "no RDMA", without_rdma, skipped, "", ""},
  };
}

void with_netdev_mtu(Machine& m, const std::string& mtu) {
  m.node = roce_node();
  m.files.write("/sys/class/net/eth0/mtu", "9000\n");
  m.files.write("/sys/class/net/eth1/mtu", mtu + "\n");
}

Scenarios mtus() {
  const std::string id = "rdma-mtu";
  return {
      {id, "jumbo frames", [](Machine& m) { with_netdev_mtu(m, "9000"); }, pass,
       "/sys/class/net/eth0/mtu: 9000, so mlx5_0:1 carries 4096", ""},
      {id, "4200 is enough", [](Machine& m) { with_netdev_mtu(m, "4200"); }, pass, "4096", ""},
      {id, "a management port at 1500",
       [](Machine& m) {
         with_ethernet_nic(m, false);
         m.node.nics.back().ports.front().netdev = known<std::string>("eth9", origin);
         port_of(m, 0).active_mtu_bytes = known(4096, origin);
         m.files.write("/sys/class/net/eth9/mtu", "1500\n");
       },
       pass, "mlx5_0:1: active MTU 4096", ""},
      {id, "one port at 1500", [](Machine& m) { with_netdev_mtu(m, "1500"); }, warning,
       "/sys/class/net/eth1/mtu: 1500, so mlx5_1:1 carries 1024", "ip link set dev eth1 mtu 9000"},
      {id, "InfiniBand tells 2048",
       [](Machine& m) {
         healthy(m);
         port_of(m, 0).active_mtu_bytes = known(4096, origin);
         port_of(m, 1).active_mtu_bytes = known(2048, origin);
       },
       warning, "mlx5_1:1: active MTU 2048", "mtu=5"},
      {id, "a netdev that says nonsense",
       [](Machine& m) {
         m.node = roce_node();
         m.files.write("/sys/class/net/eth0/mtu", "many\n");
       },
       skipped, "/sys/class/net/*/mtu", ""},
      {id, "InfiniBand does not tell", healthy, skipped, "/sys/class/net/*/mtu", ""},
      {id, "no RDMA", without_rdma, skipped, "", ""},
  };
}

void with_uverbs(Machine& m) {
  healthy(m);
  for (int i = 0; i < 2; ++i) {
    const std::string name = "uverbs" + std::to_string(i);
    m.files.write("/sys/class/infiniband_verbs/" + name + "/ibdev",
                  "mlx5_" + std::to_string(i) + "\n");
    m.files.write("/dev/infiniband/" + name, "");
  }
  m.files.write("/sys/class/infiniband_verbs/abi_version", "6\n");
  m.files.write("/dev/infiniband/rdma_cm", "");
}

Scenarios nodes() {
  const std::string id = "rdma-uverbs";
  return {
      {id, "all there", with_uverbs, pass, "/dev/infiniband: rdma_cm, uverbs0, uverbs1", ""},
      {id, "ib_uverbs not loaded", healthy, fail, "/sys/class/infiniband_verbs",
       "modprobe ib_uverbs"},
      {id, "one node missing",
       [](Machine& m) {
         with_uverbs(m);
         m.files.remove("/dev/infiniband/uverbs1");
       },
       fail, "/dev/infiniband: rdma_cm, uverbs0", "udevadm trigger"},
      {id, "not given to the container",
       [](Machine& m) {
         with_uverbs(m);
         m.files.remove("/dev/infiniband");
         m.files.write("/.dockerenv", "");
       },
       fail, "/dev/infiniband", "docker run --device=/dev/infiniband"},
      {id, "no connection manager",
       [](Machine& m) {
         with_uverbs(m);
         m.files.remove("/dev/infiniband/rdma_cm");
       },
       warning, "/dev/infiniband/rdma_cm: not there", "modprobe rdma_ucm"},
      {id, "no /dev in the copy",
       [](Machine& m) {
         with_uverbs(m);
         m.files.remove("/dev");
       },
       skipped, "/dev: not there", ""},
      {id, "no RDMA", without_rdma, skipped, "", ""},
  };
}

Scenarios handles() {
  const std::string id = "rdma-address-handles";
  const auto answered = [&id](const std::string& name, const std::string& answer,
                              CheckStatus status, const std::string& evidence,
                              const std::string& fix) {
    return Scenario{id, name, nullptr, status, evidence, fix, [answer] {
                      return doctor::judge_address_handles(answer);
                    }};
  };
  const std::string good = "ok\tmlx5_0:1\t3\t10.0.0.1\n";
  const auto bad = [](int port, const std::string& address, int error_number) {
    return "bad\tmlx5_" + std::to_string(port) + ":1\t3\t" + address + "\t" +
           std::to_string(error_number) + "\n";
  };
  return {
      answered("all", good + "ok\tmlx5_1:1\t0\tLID 7\n", pass, "ibv_create_ah: 2 made", ""),
      answered("an interface of another network namespace", good + bad(1, "10.0.1.1", ENODEV), fail,
               "refused for mlx5_1:1 GID 3 (10.0.1.1): No such device", "--network=host"),
      answered("an address without a route", bad(0, "10.0.0.1", EHOSTUNREACH), fail,
               "mlx5_0:1 GID 3 (10.0.0.1): No route to host", "ip route get 10.0.0.1"),
      answered("one of two of a port", "ok\tmlx5_0:1\t1\t10.0.0.1\n" + bad(0, "10.0.0.2", EINVAL),
               warning, "1 made, refused for mlx5_0:1 GID 3", "ip -brief address"),
      answered("a limit of the cgroup", bad(0, "10.0.0.1", ENOMEM), fail, "Cannot allocate memory",
               "rdma.max"),
      answered("a port without a LID", bad(0, "LID 0", EINVAL), fail, "LID 0", "ibstat mlx5_0"),
      answered("devices that cannot be opened",
               "untried\tmlx5_0:1\t3\t/dev/infiniband/uverbs0 is missing\n", skipped,
               "not tried: mlx5_0:1 GID 3: /dev/infiniband/uverbs0 is missing", ""),
      answered("no libibverbs", "none\tcannot open libibverbs.so.1\n", skipped,
               "cannot open libibverbs.so.1", ""),
      {id, "a copied tree", healthy, skipped, "", ""},
      {id, "no RDMA", without_rdma, skipped, "", ""},
  };
}

} // namespace

Scenarios rdma_scenarios() {
  Scenarios all;
  for (const Scenarios& part :
       {devices(), states(), layers_and_rates(), mtus(), nodes(), handles()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Scenarios gid_scenarios() {
  const std::string table = "rdma-gid-table";
  const std::string index = "rdma-gid-index";
  auto roce = [](Machine& m) { m.node = roce_node(); };
  auto keep = [](Machine& m, std::initializer_list<std::size_t> slots) {
    std::vector<Gid> kept;
    for (const std::size_t slot : slots)
      kept.push_back(port_of(m, 1).gids[slot]);
    port_of(m, 1).gids = kept;
  };
  auto shifted = [](Machine& m) {
    m.node = roce_node();
    port_of(m, 1).gids[3].index = 5;
  };
  return {
      {table, "IPv4 over RoCE v2", roce, pass,
       "mlx5_0/ports/1/gids: 0 is fe80:0000:0000:0000:0000:00ff:fe00:0000 (IB/RoCE v1)", ""},
      {table, "only link-local",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 1});
       },
       fail, "mlx5_1/ports/1/gids: 0 is fe80:", "ip address add 192.0.2.1/24 dev eth1"},
      {table, "only RoCE v1",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 2});
       },
       fail, "(IB/RoCE v1)", "cma_roce_mode -d mlx5_1 -p 1 -m 2"},
      {table, "only RoCE v1 on every port",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 2});
         port_of(m, 0).gids = port_of(m, 1).gids;
       },
       fail, "mlx5_0/ports/1/gids: 0 is", "export NVSHMEM_IB_ROCE_VERSION_NUM=1"},
      {table, "empty",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {});
       },
       fail, "mlx5_1/ports/1/gids: no entry", "dev eth1"},
      {table, "only IPv6",
       [](Machine& m) {
         m.node = roce_node();
         port_of(m, 1).gids[3].value = "2001:0db8:0000:0000:0000:0000:0000:0001";
       },
       warning, "3 is 2001:0db8", "NVSHMEM_IB_ADDR_FAMILY=AF_INET6"},
      {table, "two ports with different faults",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 2});
         port_of(m, 0).gids.clear();
       },
       fail, "mlx5_1/ports/1/gids: 0 is", "mlx5_0:1: ip address add"},
      {table, "the version that the only ports have is asked for",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 2});
         port_of(m, 0).gids = port_of(m, 1).gids;
         m.environment["NVSHMEM_IB_ROCE_VERSION_NUM"] = "1";
         m.environment["NCCL_IB_ROCE_VERSION_NUM"] = "1";
       },
       pass, "(IB/RoCE v1)", ""},
      {table, "types not told",
       [](Machine& m) {
         m.node = roce_node();
         for (Gid& gid : port_of(m, 1).gids)
           gid.type = unknown<std::string>("no file");
       },
       skipped, "gids", ""},
      {table, "InfiniBand", healthy, skipped, "", ""},
      {table, "a management port without an address",
       [](Machine& m) { with_ethernet_nic(m, false); }, skipped, "", ""},
      {table, "no RDMA", without_rdma, skipped, "", ""},

      {index, "the same", roce, pass, "mlx5_0:1 3, mlx5_1:1 3", ""},
      {index, "different", shifted, warning, "mlx5_0:1 3, mlx5_1:1 5",
       "export NVSHMEM_IB_GID_INDEX=-1 NCCL_IB_GID_INDEX=-1"},
      {index, "different, but one in common",
       [shifted](Machine& m) {
         shifted(m);
         Gid second = port_of(m, 0).gids[3];
         second.index = 5;
         port_of(m, 0).gids.push_back(second);
       },
       warning, "mlx5_0:1 3/5, mlx5_1:1 5", "export NVSHMEM_IB_GID_INDEX=5 NCCL_IB_GID_INDEX=5"},
      {index, "a setting that fits",
       [roce](Machine& m) {
         roce(m);
         m.environment["NCCL_IB_GID_INDEX"] = "3";
       },
       pass, "environment: NCCL_IB_GID_INDEX=3", ""},
      {index, "a setting that names RoCE v1",
       [roce](Machine& m) {
         roce(m);
         m.environment["NVSHMEM_IB_GID_INDEX"] = "0";
       },
       fail, "environment: NVSHMEM_IB_GID_INDEX=0", "export NVSHMEM_IB_GID_INDEX=3"},
      {index, "a setting that fits one of two",
       [shifted](Machine& m) {
         shifted(m);
         m.environment["NVSHMEM_IB_GID_INDEX"] = "3";
       },
       fail, "mlx5_0:1 3, mlx5_1:1 5", "NVSHMEM_IB_GID_INDEX=-1"},
      {index, "no such address",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 1});
       },
       skipped, "mlx5_1/ports/1/gids", ""},
      {index, "a link-local address where no port has one on IPv4",
       [](Machine& m) {
         m.node = roce_node();
         for (const std::size_t nic : {0U, 1U}) {
           std::vector<Gid>& gids = port_of(m, nic).gids;
           gids.erase(gids.begin() + 2, gids.end());
           gids[0].type = gids[1].type;
           gids[1].value = "fd93:16d3:59b6:0000:0690:81ff:fe37:0000";
         }
         m.environment["NVSHMEM_IB_GID_INDEX"] = "0";
       },
       fail, "environment: NVSHMEM_IB_GID_INDEX=0", "export NVSHMEM_IB_GID_INDEX=1"},
      {index, "a setting that fits where one port has none on IPv4",
       [keep](Machine& m) {
         m.node = roce_node();
         keep(m, {0, 1});
         m.environment["NVSHMEM_IB_GID_INDEX"] = "3";
       },
       fail, "mlx5_1:1 none", "NVSHMEM_IB_GID_INDEX=-1"},
      {index, "different, and left to the libraries",
       [shifted](Machine& m) {
         shifted(m);
         m.environment["NVSHMEM_IB_GID_INDEX"] = "-1";
         m.environment["NCCL_IB_GID_INDEX"] = "-1";
       },
       pass, "mlx5_0:1 3, mlx5_1:1 5", ""},
      {index, "InfiniBand", healthy, skipped, "", ""},
  };
}

} // namespace shmemctl
