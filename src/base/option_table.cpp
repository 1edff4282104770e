// Every option, on one page.
#include <algorithm>

#include "src/base/options.h"

namespace shmemctl {

namespace {

OptionSpec choice(std::string name, std::string default_value, std::vector<std::string> choices,
                  std::string doc, bool nvshmem_alias = false) {
  OptionSpec spec{std::move(name), OptionType::choice, std::move(default_value), std::move(doc),
                  nvshmem_alias};
  spec.choices = std::move(choices);
  return spec;
}

OptionSpec number(std::string name, std::string default_value, long long minimum, long long maximum,
                  std::string doc) {
  OptionSpec spec{std::move(name), OptionType::number, std::move(default_value), std::move(doc)};
  spec.minimum = minimum;
  spec.maximum = maximum;
  return spec;
}

OptionSpec integer(std::string name, std::string default_value, long long minimum,
                   long long maximum, std::string doc) {
  OptionSpec spec =
      number(std::move(name), std::move(default_value), minimum, maximum, std::move(doc));
  spec.type = OptionType::integer;
  return spec;
}

OptionSpec secret(std::string name, std::string doc) {
  OptionSpec spec{std::move(name), OptionType::text, "", std::move(doc)};
  spec.secret = true;
  return spec;
}

std::vector<OptionSpec> make_table() {
  constexpr bool in_nvshmem = true;
  return {
      choice("COLOR", "auto", {"auto", "always", "never"}, "Colour on the terminal."),
      number("TIMEOUT", "60", 1, 86400, "Deadline of every wait, in seconds."),
      choice("LOG_LEVEL", "warning", {"error", "warning", "info", "debug"},
             "What is logged on stderr."),
      {"LOG_SUBSYSTEMS", OptionType::text, "", "Comma list of subsystems to log; empty is all."},
      {"SYSROOT", OptionType::text, "",
       "Folder with a copy of a machine's /sys and /proc to read instead of this machine."},
      {"NVML_LIBRARY", OptionType::text, "libnvidia-ml.so.1",
       "The file that is opened as NVIDIA's management library."},
      choice("POLICY", "nvshmem", {"nvshmem", "nccl", "optimal"},
             "Whose choice of NICs to show: NVSHMEM's, NCCL's, or the best one."),
      choice(
          "WORLD", "node", {"node", "deepep-ht", "deepep-ll"},
          "Which PEs of the node share one NVSHMEM world: all of them, each alone as in DeepEP's "
          "high-throughput mode, or all as in its low-latency mode."),
      {"NVSHMEM_VERSION", OptionType::text, "",
       "The NVSHMEM release to simulate, as X.Y.Z; empty is the newest that is known."},
      integer("PES_PER_NODE", "0", 0, 4096, "PEs on the node; 0 is one per GPU."),
      {"GPUS", OptionType::text, "", "Comma list: the GPU of each PE; empty is PE i on GPU i."},
      {"HCA_LIST", OptionType::text, "",
       "Comma list of name[:port] that may be used; a leading ^ excludes them instead.",
       in_nvshmem},
      {"HCA_PE_MAPPING", OptionType::text, "",
       "Comma list of name:port:count: it filters and replicates devices.", in_nvshmem},
      {"ENABLE_NIC_PE_MAPPING", OptionType::boolean, "0",
       "Give PE i the device i modulo the number of devices, instead of choosing by distance.",
       in_nvshmem},
      {"HCA_PREFIX", OptionType::text, "",
       "Devices that IBGDA and IBDEVX accept: a part of their name; after ^, one they must not "
       "have.",
       in_nvshmem},
      {"DISABLE_DATA_DIRECT", OptionType::boolean, "0",
       "Take distances from the HCA's own PCI path, not from its data-direct function's.",
       in_nvshmem},
      {"NETDEVS_POLICY", OptionType::text, "AUTO",
       "Among whom NVSHMEM 3.7 shares the NICs: AUTO (the PEs) or "
       "EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE (all GPUs of the node).",
       in_nvshmem},
      choice(
          "REMOTE_TRANSPORT", "auto", {"auto", "none", "ibrc", "ucx", "ibdevx", "libfabric"},
          "The transport to other nodes, for which NICs are chosen as NVSHMEM would; auto is the "
          "first of ibrc, libfabric and ucx that reaches all PEs.",
          in_nvshmem),
      {"IB_ENABLE_IBGDA", OptionType::boolean, "0",
       "Kernels post to the HCA themselves (IBGDA) where they cannot load and store; with "
       "DEVICE_PATH=auto, and ibgda among the transports.",
       in_nvshmem},
      {"IBGDA_ENABLE_MULTI_PORT", OptionType::boolean, "0",
       "Let IBGDA use every NIC that a PE was given, not only the first.", in_nvshmem},
  };
}

// How the processes of a job find each other, and the memory that they share.
std::vector<OptionSpec> runtime_options() {
  constexpr bool in_nvshmem = true;
  return {
      choice("BOOTSTRAP", "auto",
             {"auto", "uid", "local", "mpi", "pmi", "pmi2", "pmix", "openshmem", "shmem", "plugin",
              "single"},
             "How the PEs of a job find each other; auto looks at what the launcher left; shmem is "
             "NVSHMEM's word for openshmem.",
             in_nvshmem),
      choice("BOOTSTRAP_PMI", "auto", {"auto", "pmi", "pmi2", "pmi-2", "pmix"},
             "Which process management interface BOOTSTRAP=pmi means.", in_nvshmem),
      {"BOOTSTRAP_PLUGIN", OptionType::text, "", "The shared object that BOOTSTRAP=plugin loads.",
       in_nvshmem},
      secret("BOOTSTRAP_UID",
             "The unique id of the job, as the PE that made it printed it; it holds "
             "the job's secret."),
      {"BOOTSTRAP_UID_SESSION_ID", OptionType::text, "",
       "host:port at which PE 0 listens for the others, instead of a unique id.", in_nvshmem},
      secret("BOOTSTRAP_UID_SECRET",
             "The secret of the job that a session id names: any text, the same for all PEs."),
      {"BOOTSTRAP_UID_SECRET_FILE", OptionType::text, "",
       "A file with that secret, instead of the variable."},
      {"BOOTSTRAP_UID_SOCK_IFNAME", OptionType::text, "",
       "Network interfaces to use: a comma list of prefixes; ^ before it excludes, = is exact.",
       in_nvshmem},
      choice("BOOTSTRAP_UID_SOCK_FAMILY", "", {"", "AF_INET", "AF_INET6"},
             "Address family of the bootstrap; empty takes both.", in_nvshmem),
      integer("BOOTSTRAP_UID_RANK", "-1", -1, 1 << 20,
              "Rank of this PE for BOOTSTRAP=uid; -1 asks the launcher's variables."),
      integer("BOOTSTRAP_UID_SIZE", "-1", -1, 1 << 20,
              "Number of PEs for BOOTSTRAP=uid; -1 asks the launcher's variables."),
      {"MPI_LIBRARY", OptionType::text, "libmpi.so.40", "The file that is opened as Open MPI."},
      {"PMIX_LIBRARY", OptionType::text, "libpmix.so.2", "The file that is opened as PMIx."},
      {"OPENSHMEM_LIBRARY", OptionType::text, "liboshmem.so.40",
       "The file that is opened as OpenSHMEM."},
      {"NODE_ID", OptionType::text, "",
       "Makes PEs with the same text one virtual node, whatever machine they are on."},
      choice("INIT_MODE", "whole", {"whole", "per-local-rank", "low-latency"},
             "One world of all PEs, one for each local rank as DeepEP's high-throughput mode has "
             "it, or one with strided sub-teams as in its low-latency mode."),
      {"SYMMETRIC_SIZE", OptionType::size, "1G", "Size of the symmetric heap of each PE.",
       in_nvshmem},
      {"HEAP_CHUNK", OptionType::size, "64M", "The heap grows by multiples of this."},
      choice("HEAP_BACKING", "auto", {"auto", "memfd", "devshm"},
             "Host memory of the heap: an anonymous file, or one in /dev/shm."),
      {"HUGE_PAGES", OptionType::boolean, "1",
       "Use huge pages for the heap if there are free ones."},
      {"CHECK", OptionType::boolean, "0",
       "Check every call: sizes equal on all PEs, addresses symmetric, nothing freed twice."},
      {"FAULT", OptionType::text, "",
       "For tests: kill:PE:PHASE, stop:PE:PHASE or exit:PE:PHASE makes that PE fail there; "
       "corrupt:PE:verify spoils what bench has measured."},
  };
}

// GPUs of a job.
std::vector<OptionSpec> gpu_options() {
  return {
      choice("HEAP", "auto", {"auto", "vmm", "fabric", "ipc", "host", "none"},
             "What the symmetric heap of kernels is made of: GPU memory by CUDA's virtual memory "
             "calls, for other machines of an NVLink domain too (fabric), or by its older ones "
             "(ipc), or host memory that GPUs map; auto is fabric where machines share such a "
             "domain, vmm where all GPUs have it, else ipc; none is a job without GPUs."),
      choice("DEVICE_PATH", "auto", {"auto", "p2p", "proxy", "ibgda"},
             "How kernels reach other PEs: p2p is loads and stores only; proxy and ibgda also to "
             "PEs whose memory is mapped; auto is p2p, and a network for the rest."),
      choice("GPUDIRECT", "auto", {"auto", "dmabuf", "peermem", "off"},
             "Whether NICs read and write GPU memory themselves: registered by dma-buf or through "
             "nvidia-peermem; auto is one of them where all PEs can, else transfers are staged "
             "through host memory; off is staged."),
      {"CUDA_LIBRARY", OptionType::text, "libcuda.so.1",
       "The file that is opened as the CUDA driver."},
  };
}

// How PEs of different nodes reach each other.
std::vector<OptionSpec> transport_options() {
  constexpr bool in_nvshmem = true;
  OptionSpec gid_index = integer("IB_GID_INDEX", "-1", -1, 4095,
                                 "Index of the RoCE port's GID to use; -1 chooses one.");
  OptionSpec roce_version =
      integer("IB_ROCE_VERSION_NUM", "2", 1, 2, "RoCE version of the GID that is chosen.");
  OptionSpec service_level = integer("IB_SL", "0", 0, 15, "Service level of connections.");
  OptionSpec traffic_class =
      integer("IB_TRAFFIC_CLASS", "0", 0, 255,
              "Traffic class of RoCE connections; an InfiniBand port has none.");
  OptionSpec queue_pairs = integer("IB_NUM_RC_PER_DEVICE", "1", 1, 64,
                                   "RC queue pairs to each peer on each NIC, besides the first.");
  OptionSpec receives =
      integer("SRQ_DEPTH", "16384", 1, 1 << 20,
              "Messages that one device can hold for a PE in its shared receive queue.");
  OptionSpec depth = integer("QP_DEPTH", "1024", 128, 32768,
                             "Send queue of ibdevx and ibgda, in blocks of 64 bytes; rounded up to "
                             "a power of two.");
  OptionSpec gda_queues = integer("IBGDA_NUM_RC_PER_PE", "2", 1, 64,
                                  "RC queue pairs of ibgda to each peer on each NIC.");
  OptionSpec gda_batch = integer("IBGDA_NUM_REQUESTS_IN_BATCH", "32", 1, 32768,
                                 "ibgda rings a doorbell for at most so many blocks at once; "
                                 "rounded up to a power of two.");
  OptionSpec gda_map = choice("IBGDA_RC_MAP_BY", "cta", {"cta", "warp"},
                              "Which threads of kernels share a queue pair of ibgda: those of a "
                              "block, or of a warp.");
  for (OptionSpec* row : {&gid_index, &roce_version, &service_level, &traffic_class, &queue_pairs,
                          &receives, &depth, &gda_queues, &gda_batch, &gda_map})
    row->nvshmem_alias = in_nvshmem;
  return {
      {"TRANSPORT", OptionType::text, "",
       "Comma list of the transports that may be used, best first: shm, ibrc, ibdevx, ibgda, "
       "libfabric, ucx; empty is shm within a node and REMOTE_TRANSPORT beyond it."},
      gid_index,
      roce_version,
      service_level,
      traffic_class,
      queue_pairs,
      depth,
      gda_queues,
      gda_batch,
      gda_map,
      choice("IB_ADDR_FAMILY", "AF_INET", {"AF_INET", "AF_INET6"},
             "Address family of the GID that is chosen.", in_nvshmem),
      {"IB_ADDR_RANGE", OptionType::text, "",
       "Network, as address/bits, in which the GID that is chosen has to lie; empty is any.",
       in_nvshmem},
      choice("IB_ATOMICS", "auto", {"auto", "device", "message"},
             "Who makes ibrc's atomics: the HCA, or by message the target's processor; auto is the "
             "HCA where all HCAs of the job can."),
      receives,
      choice("IB_WRITE_ORDER", "auto", {"auto", "any", "kept"},
             "Whether RDMA WRITEs of one queue pair are placed in the order of their posting, for "
             "ibrc, ibdevx and ibgda: any relies on nothing, as adaptive routing demands; kept "
             "forces it where the HCA can, and is believed elsewhere; auto is any, but where only "
             "forcing it makes signals safe without waiting."),
      {"IB_DISABLE_DMABUF", OptionType::boolean, "0",
       "Register GPU memory through the peer memory module, not by dma-buf.", in_nvshmem},
      choice("IB_MTU", "", {"", "256", "512", "1024", "2048", "4096"},
             "Path MTU of connections in bytes; empty is the smaller one of both ports."),
      integer("IB_TIMEOUT", "18", 1, 31,
              "Local ACK timeout of queue pairs: 4.096 us times 2 to this power."),
      integer("IB_RETRY_COUNT", "6", 0, 7,
              "How often a queue pair sends again before its peer counts as lost."),
      choice("MLX5_DEVICE", "auto", {"auto", "real", "soft"},
             "What ibdevx and ibgda drive: an mlx5 HCA, or the HCA in software that stands in for "
             "it; auto is an HCA, or where there is none, and SOFT_HCA_OVER is set, software."),
      choice("SOFT_HCA_OVER", "shm", {"shm", "ibrc", "libfabric", "ucx"},
             "The transport that carries what the software HCA executes."),
      choice("SOFT_HCA_PLACEMENT", "ordered", {"ordered", "any"},
             "In which order the software HCA carries out a queue's operations: that of their "
             "posting, or any that HCAs with out-of-order placement may take; for tests."),
      integer("PROXY_THREADS", "1", 1, 8,
              "Threads that carry out the requests of kernels and other producers, each for a "
              "part of the PEs."),
      {"PROXY_CPUS", OptionType::text, "",
       "CPUs of these threads, like 2,4-7: one each if there are enough; empty: those that the "
       "process had at its start."},
      {"LIBFABRIC_PROVIDER", OptionType::text, "",
       "Provider of libfabric: tcp, verbs, efa, cxi; empty takes the best that is there.",
       in_nvshmem},
      choice("LIBFABRIC_PROFILE", "", {"", "tcp", "verbs", "efa", "cxi"},
             "Whose rules are followed; empty are the provider's own."),
      {"LIBFABRIC_INTERFACE", OptionType::text, "",
       "Network interface or domain of the provider; empty is the provider's first."},
      {"UCX_LIBRARY", OptionType::text, "libucp.so.0", "The file that is opened as UCX."},
      {"LIBFABRIC_LIBRARY", OptionType::text, "libfabric.so.1",
       "The file that is opened as libfabric."},
      {"VERBS_LIBRARY", OptionType::text, "libibverbs.so.1",
       "The file that is opened as libibverbs."},
  };
}

} // namespace

const std::vector<OptionSpec>& option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> rows = make_table();
    for (OptionSpec& row : runtime_options())
      rows.push_back(std::move(row));
    for (OptionSpec& row : transport_options())
      rows.push_back(std::move(row));
    for (OptionSpec& row : gpu_options())
      rows.push_back(std::move(row));
    std::sort(rows.begin(), rows.end(),
              [](const OptionSpec& a, const OptionSpec& b) { return a.name < b.name; });
    return rows;
  }();
  return table;
}

bool is_secret_option(std::string_view name) {
  const std::vector<OptionSpec>& table = option_table();
  return std::any_of(table.begin(), table.end(),
                     [name](const OptionSpec& spec) { return spec.secret && spec.name == name; });
}

} // namespace shmemctl
