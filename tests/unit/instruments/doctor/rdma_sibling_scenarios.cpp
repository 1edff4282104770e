#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

std::function<void(Machine&)> with_firmware(const std::string& first, const std::string& second,
                                            const std::string& second_board = "MT_0000000838") {
  return [=](Machine& m) {
    m.node = healthy_node();
    m.files.write("/sys/class/infiniband/mlx5_0/fw_ver", first + "\n");
    m.files.write("/sys/class/infiniband/mlx5_1/fw_ver", second + "\n");
    m.files.write("/sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n");
    m.files.write("/sys/class/infiniband/mlx5_1/board_id", second_board + "\n");
  };
}

std::function<void(Machine&)> with_pkeys(const std::string& first, const std::string& second) {
  return [=](Machine& m) {
    m.node = healthy_node();
    for (int device = 0; device < 2; ++device) {
      const std::string folder =
          "/sys/class/infiniband/mlx5_" + std::to_string(device) + "/ports/1/pkeys/";
      m.files.write(folder + "0", (device == 0 ? first : second) + "\n");
      m.files.write(folder + "1", "0x0000\n");
    }
  };
}

void no_siblings(Machine& m) {
  m.node = node_without_rdma();
}

} // namespace

Scenarios rdma_sibling_scenarios() {
  const std::string firmware = "rdma-firmware", pkeys = "rdma-pkeys";
  return {
      {firmware, "the same", with_firmware("28.39.3004", "28.39.3004"), pass,
       "/sys/class/infiniband/mlx5_0/fw_ver: 28.39.3004", ""},
      {firmware, "another", with_firmware("28.39.3004", "28.35.1012"), warning,
       "28.35.1012 on mlx5_1; 28.39.3004 on mlx5_0", "mlxfwmanager"},
      {firmware, "another, of another board",
       with_firmware("28.39.3004", "26.35.1012", "MT_0000000359"), pass, "fw_ver: ", ""},
      {firmware, "not in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "fw_ver: not there", ""},
      {firmware, "no RDMA", no_siblings, skipped, "", ""},

      {pkeys, "the default partition", with_pkeys("0xffff", "0xffff"), pass,
       "0xffff on mlx5_0:1, mlx5_1:1", ""},
      {pkeys, "limited membership", with_pkeys("0x7fff", "0x7fff"), warning,
       "0x7fff on mlx5_0:1, mlx5_1:1", "full membership"},
      {pkeys, "different partitions", with_pkeys("0xffff", "0x8012"), warning,
       "0x8012 on mlx5_1:1; 0xffff on mlx5_0:1", "partitions.conf"},
      {pkeys, "not in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "pkeys: not there", ""},
      {pkeys, "RoCE", [](Machine& m) { m.node = roce_node(); }, skipped, "pkeys: not there", ""},
      {pkeys, "no RDMA", no_siblings, skipped, "", ""},
  };
}

} // namespace shmemctl
