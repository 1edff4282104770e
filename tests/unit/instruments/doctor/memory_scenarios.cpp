#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

void with_memlock(Machine& m, const std::string& limit) {
  m.node = healthy_node();
  m.files.write("/proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n"
                "Max open files            1024                 524288               files     \n"
                "Max locked memory         " +
                    limit + "              " + limit + "              bytes     \n");
}

void with_mount(Machine& m, const std::string& row) {
  m.node = healthy_node();
  m.files.write("/proc/mounts", "overlay / overlay rw,relatime 0 0\n" + row + "\n");
}

void with_huge_pages(Machine& m, const std::string& transparent, const std::string& reserved) {
  m.node = healthy_node();
  m.files.write("/sys/kernel/mm/transparent_hugepage/enabled", transparent + "\n");
  m.files.write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", reserved + "\n");
}

Scenarios locked() {
  const std::string id = "memlock";
  return {
      {id, "unlimited", [](Machine& m) { with_memlock(m, "unlimited"); }, pass,
       "/proc/self/limits: Max locked memory unlimited unlimited bytes", ""},
      {id, "limited", [](Machine& m) { with_memlock(m, "8388608"); }, fail,
       "Max locked memory 8388608 8388608 bytes", "/etc/security/limits.d/rdma.conf"},
      {id, "limited in a container",
       [](Machine& m) {
         with_memlock(m, "65536");
         m.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
       },
       fail, "Max locked memory 65536", "docker run --ulimit memlock=-1"},
      {id, "limited, but CAP_IPC_LOCK",
       [](Machine& m) {
         with_memlock(m, "8388608");
         m.files.write("/proc/self/status", "Name:\tshmemctl\nCapEff:\t0000000000004000\n");
       },
       pass, "CapEff 4000", ""},
      {id, "limited, without RDMA",
       [](Machine& m) {
         with_memlock(m, "8388608");
         m.node = node_without_rdma();
       },
       skipped, "8388608", ""},
      {id, "a word that is not a limit", [](Machine& m) { with_memlock(m, "much"); }, skipped, "",
       ""},
      {id, "not in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/proc/self/limits: not there", ""},
  };
}

Scenarios shared() {
  const std::string id = "dev-shm";
  return {
      {id, "by its size",
       [](Machine& m) { with_mount(m, "tmpfs /dev/shm tmpfs rw,nosuid,size=16777216k 0 0"); }, pass,
       "/proc/mounts: /dev/shm rw,nosuid,size=16777216k", ""},
      {id, "half of the memory",
       [](Machine& m) {
         with_mount(m, "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0");
         m.files.write("/proc/meminfo", "MemTotal:       2113511844 kB\nMemFree: 1 kB\n");
       },
       pass, "/proc/meminfo: MemTotal 2113511844 kB", ""},
      {id, "a container's 64 MiB",
       [](Machine& m) {
         with_mount(m, "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0");
         m.files.write("/.dockerenv", "");
       },
       warning, "size=65536k", "docker run --shm-size=16g"},
      {id, "small", [](Machine& m) { with_mount(m, "tmpfs /dev/shm tmpfs rw,size=512m 0 0"); },
       warning, "size=512m", "mount -o remount,size=50% /dev/shm"},
      {id, "not mounted", [](Machine& m) { with_mount(m, "tmpfs /run tmpfs rw 0 0"); }, fail,
       "/proc/mounts: no /dev/shm", "mount -t tmpfs tmpfs /dev/shm"},
      {id, "a size in other words",
       [](Machine& m) { with_mount(m, "tmpfs /dev/shm tmpfs rw,size=50% 0 0"); }, skipped,
       "size=50%", ""},
      {id, "not in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/proc/mounts: not there", ""},
  };
}

Scenarios pages() {
  const std::string id = "hugepages";
  const std::string balancing = "numa-balancing";
  const std::string balancing_path = "/proc/sys/kernel/numa_balancing";
  auto balance = [balancing_path](Machine& m, const char* value) {
    m.node = healthy_node();
    m.files.write(balancing_path, value);
  };
  return {
      {id, "transparent", [](Machine& m) { with_huge_pages(m, "always [madvise] never", "0"); },
       pass, "transparent_hugepage/enabled: always [madvise] never", ""},
      {id, "reserved", [](Machine& m) { with_huge_pages(m, "always madvise [never]", "1024"); },
       pass, "hugepages-2048kB 1024", ""},
      {id, "neither", [](Machine& m) { with_huge_pages(m, "always madvise [never]", "0"); },
       warning, "[never]", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"},
      {id, "not in the copy", [](Machine& m) { m.node = healthy_node(); }, skipped,
       "/sys/kernel/mm/transparent_hugepage/enabled: not there", ""},

      {balancing, "off", [balance](Machine& m) { balance(m, "0\n"); }, pass, balancing_path + ": 0",
       ""},
      {balancing, "on", [balance](Machine& m) { balance(m, "1\n"); }, warning,
       balancing_path + ": 1", "sysctl -w kernel.numa_balancing=0"},
      {balancing, "on, with one NUMA node",
       [balance](Machine& m) {
         balance(m, "1\n");
         m.node.numa_nodes.resize(1);
       },
       pass, balancing_path + ": 1", ""},
      {balancing, "not in this kernel", [](Machine& m) { m.node = healthy_node(); }, skipped,
       balancing_path + ": not there", ""},
  };
}

} // namespace

Scenarios memory_scenarios() {
  Scenarios all;
  for (const Scenarios& part : {locked(), shared(), pages()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

} // namespace shmemctl
