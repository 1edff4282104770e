// What ports of one fabric have in common, and what GPU-initiated networking needs.
#include <utility>
#include <vector>

#include "tests/support/elf_image.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

std::function<void(Machine&)> with_ecn(const std::string& first, const std::string& second) {
  return [=](Machine& m) {
    m.node = roce_node();
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i), value = i == 0 ? first : second;
      for (const char* role : {"roce_np", "roce_rp"})
        for (int priority = 0; priority < 8; ++priority)
          m.files.write("/sys/class/net/eth" + number + "/ecn/" + role + "/enable/" +
                            std::to_string(priority),
                        priority == 3 ? value + "\n" : "0\n");
      m.files.write("/sys/class/infiniband/mlx5_" + number + "/tc/1/traffic_class",
                    "Global tclass=106\n");
    }
  };
}

std::function<void(Machine&)> with_link_downs(const std::string& first, const std::string& second) {
  return [=](Machine& m) {
    m.node = healthy_node();
    m.files.write("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", first + "\n");
    m.files.write("/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed", second + "\n");
  };
}

void add_image(Machine& m, const std::string& path, const std::vector<std::string>& texts,
               const std::vector<std::string>& defined = {}) {
  fake::ElfImage image;
  image.texts = texts;
  image.defined = defined;
  m.files.write(path, image.bytes());
}

void add_gpu_memory(Machine& m) {
  m.files.write("/sys/module/nvidia_peermem/version", "580.65.06\n");
}

/// @param asked a variable that asks for it; "" for none
std::function<void(Machine&)> gin(const std::string& mlx5_version, const std::string& nccl,
                                  const std::string& asked) {
  return [=](Machine& m) {
    m.node = healthy_node();
    add_gpu_memory(m);
    m.files.write("/usr/lib64/libibverbs.so.1.14.58.0", "");
    m.files.symlink("/usr/lib64/libibverbs.so.1", "libibverbs.so.1.14.58.0");
    add_image(m, "/usr/lib64/libmlx5.so.1", {"x"}, {"MLX5_1.0", mlx5_version});
    add_image(m, "/usr/lib64/libnccl.so.2", {"NCCL version " + nccl});
    if (!asked.empty())
      m.environment[asked] = asked == "NCCL_GIN_TYPE" ? "3" : "1";
  };
}

std::function<void(Machine&)> efa(const std::string& driver, const std::string& asked_type) {
  return [=](Machine& m) {
    m.node = healthy_node();
    for (Nic& nic : m.node.nics)
      nic.driver = known<std::string>("efa", "test");
    m.files.write("/sys/module/efa/version", driver + "\n");
    m.files.write("/proc/driver/nvidia/params",
                  "EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n");
    m.files.write("/sys/module/gdrdrv/version", "2.5\n");
    m.files.write("/usr/lib64/libgdrapi.so.2.5.0", "");
    m.files.symlink("/usr/lib64/libgdrapi.so.2", "libgdrapi.so.2.5.0");
    add_image(m, "/usr/lib64/libefa.so.1", {"efadv_create_comp_cntr"});
    add_image(m, "/usr/lib64/libfabric.so.1", {"2.6.0"});
    add_image(m, "/usr/lib64/libnccl-net.so", {"ncclGinPlugin_v14"});
    if (!asked_type.empty())
      m.environment["NCCL_GIN_TYPE"] = asked_type;
  };
}

std::function<void(Machine&)> imex_domain(bool runs, bool channel, const std::string& nodes) {
  return [=](Machine& m) {
    m.node = healthy_node();
    m.files.write("/etc/nvidia-imex/nodes_config.cfg", nodes);
    m.files.write("/proc/1/comm", "systemd\n");
    m.files.directory("/dev");
    if (runs)
      m.files.write("/proc/77/comm", "nvidia-imex\n");
    if (channel)
      m.files.write("/dev/nvidia-caps-imex-channels/channel0", "");
  };
}

void plain_node(Machine& m) {
  m.node = healthy_node();
}

void plain_node_with_libraries(Machine& m) {
  m.node = healthy_node();
  m.files.directory("/usr/lib64");
}

void nothing_to_connect(Machine& m) {
  m.node = node_without_rdma();
}

Scenarios port_scenarios() {
  const std::string priorities = "roce-priorities", flaps = "link-flaps";
  return {
      {priorities, "the same on both", with_ecn("1", "1"), pass,
       "ECN, notification (roce_np): 3 on mlx5_0:1, mlx5_1:1", ""},
      {priorities, "off on one", with_ecn("1", "0"), warning, "3 on mlx5_0:1 but none on mlx5_1:1",
       "mlnx_qos"},
      {priorities, "another traffic class",
       [](Machine& m) {
         with_ecn("1", "1")(m);
         m.files.write("/sys/class/infiniband/mlx5_1/tc/1/traffic_class", "\n");
       },
       warning, "traffic class: Global tclass=106 on mlx5_0:1 but default on mlx5_1:1", "mlnx_qos"},
      {priorities, "on a port outside the fabric",
       [](Machine& m) {
         with_ecn("1", "0")(m);
         m.node.nics[1].ports[0].state = known(PortState::down, "test");
       },
       pass, "3 on mlx5_0:1", ""},
      {priorities, "not in the copy", [](Machine& m) { m.node = roce_node(); }, skipped,
       "not there", ""},
      {priorities, "InfiniBand", plain_node, skipped, "not there", ""},
      {priorities, "no RDMA", nothing_to_connect, skipped, "", ""},

      {flaps, "none", with_link_downs("0", "0"), pass, "link_downed: 0", ""},
      {flaps, "a few restarts of the switch", with_link_downs("5", "6"), pass, "link_downed: 5",
       ""},
      {flaps, "once more than the other", with_link_downs("1", "0"), pass, "link_downed: 1", ""},
      {flaps, "one much more often", with_link_downs("1", "40"), warning,
       "/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed: 40", "mlxlink -d mlx5_1"},
      {flaps, "counted by the netdev",
       [](Machine& m) {
         m.node = roce_node();
         m.files.write("/sys/class/net/eth0/carrier_down_count", "90\n");
         m.files.write("/sys/class/net/eth1/carrier_down_count", "2\n");
       },
       warning, "/sys/class/net/eth0/carrier_down_count: 90", "mlxlink -d mlx5_0"},
      {flaps, "not in the copy", plain_node, skipped, "not there", ""},
      {flaps, "no RDMA", nothing_to_connect, skipped, "", ""},
  };
}

Scenarios gin_scenarios() {
  const std::string id = "nccl-gin";
  return {
      {id, "all there", gin("MLX5_1.25", "2.30.7", ""), pass, "rdma-core 58", ""},
      {id, "asked for", gin("MLX5_1.26", "2.30.7", "NCCL_GIN_TYPE"), pass, "MLX5_1.25", ""},
      {id, "libmlx5 too old", gin("MLX5_1.24", "2.30.7", "NCCL_GIN_TYPE"), fail,
       "libmlx5.so.1: the symbol version MLX5_1.25", "the newest rdma-core"},
      {id, "NCCL too old", gin("MLX5_1.25", "2.27.3", "NCCL_GIN_ENABLE"), fail, "2.27.3",
       "install NCCL 2.28"},
      {id, "NCCL too old, and not asked for", gin("MLX5_1.25", "2.27.3", ""), skipped, "2.27.3",
       "install NCCL 2.28"},
      {id, "two ports of one card",
       [](Machine& m) {
         gin("MLX5_1.25", "2.29.7", "NCCL_GIN_TYPE")(m);
         m.node.nics[1].pci = m.node.nics[0].pci;
       },
       fail, "joins the ports mlx5_0:1, mlx5_1:1", "NCCL_IB_MERGE_NICS=0"},
      {id, "not in the copy", plain_node, skipped, "/usr/lib: not there", ""},
      {id, "no RDMA", nothing_to_connect, skipped, "", ""},
  };
}

Scenarios efa_scenarios() {
  const std::string id = "efa-gda";
  return {
      {id, "all there", efa("3.3.0g", ""), pass, "/sys/module/efa/version: 3.3.0g", ""},
      {id, "all there and asked for", efa("3.4.0", "5"), pass, "ncclGinPlugin_v", ""},
      {id, "an older driver", efa("3.1.0g", "5"), fail, "/sys/module/efa/version: 3.1.0g",
       "EFA installer 1.50"},
      {id, "an older driver, and not asked for", efa("3.1.0g", ""), skipped, "3.1.0g",
       "EFA installer 1.50"},
      {id, "no PeerMappingOverride",
       [](Machine& m) {
         efa("3.3.0", "5")(m);
         m.files.write("/proc/driver/nvidia/params",
                       "EnableStreamMemOPs: 1\nRegistryDwords: \"\"\n");
       },
       fail, "PeerMappingOverride is not set", "PeerMappingOverride=1"},
      {id, "a driver that does not show its parameters",
       [](Machine& m) {
         efa("3.3.0", "5")(m);
         m.files.remove("/proc/driver/nvidia/params");
       },
       skipped, "unknown: the NVIDIA driver does not show its parameters", ""},
      {id, "a plugin without GIN",
       [](Machine& m) {
         efa("3.3.0", "5")(m);
         add_image(m, "/usr/lib64/libnccl-net.so", {"ncclNetPlugin_v11"});
       },
       fail, "libnccl-net.so: the symbol ncclGinPlugin_v*", "EFA installer 1.50"},
      {id, "no EFA", plain_node_with_libraries, skipped, "", ""},
      {id, "no RDMA", nothing_to_connect, skipped, "", ""},
  };
}

Scenarios imex_scenarios() {
  const std::string id = "imex", two = "10.0.0.1\n# spare\n10.0.0.2\n";
  return {
      {id, "runs with a channel", imex_domain(true, true, two), pass,
       "nodes_config.cfg: 2 nodes; /dev/nvidia-caps-imex-channels: channel0", ""},
      {id, "does not run", imex_domain(false, true, two), fail, "no nvidia-imex",
       "systemctl enable --now nvidia-imex"},
      {id, "no channel", imex_domain(true, false, two), fail,
       "/dev/nvidia-caps-imex-channels: not there", "mknod -m 666"},
      {id, "one node", imex_domain(true, true, "10.0.0.1\n"), warning, "1 node",
       "nodes_config.cfg"},
      {id, "in a container",
       [two](Machine& m) {
         imex_domain(false, true, two)(m);
         m.files.write("/.dockerenv", "");
       },
       skipped, "2 nodes", ""},
      {id, "not configured", plain_node, skipped, "nodes_config.cfg: not there", ""},
      {id, "no GPU", [](Machine& m) { m.node = node_without_gpus(); }, skipped, "", ""},
  };
}

} // namespace

Scenarios network_setting_scenarios() {
  Scenarios all = port_scenarios();
  for (const Scenarios& part : {gin_scenarios(), efa_scenarios(), imex_scenarios()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
