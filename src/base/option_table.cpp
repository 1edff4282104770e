// The table of all options.
#include <algorithm>
#include <map>

#include "src/base/options.h"
#include "src/base/text.h"

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

OptionSpec secret(std::string name, std::string doc, bool nvshmem_alias = false) {
  OptionSpec spec{std::move(name), OptionType::text, "", std::move(doc), nvshmem_alias};
  spec.secret = true;
  return spec;
}

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  if (names.size() < 2)
    return join(names, "");
  return join(std::vector<std::string>(names.begin(), names.end() - 1), ", ") + " and " +
         names.back();
}

std::vector<std::string> with_none_and_auto(const std::vector<std::string>& names) {
  std::vector<std::string> choices = {"auto", "none"};
  choices.insert(choices.end(), names.begin(), names.end());
  return choices;
}

std::vector<OptionSpec> make_table() {
  constexpr bool in_nvshmem = true;
  const TransportChoices transports = transport_choices();
  return {
      choice("COLOR", "auto", {"auto", "always", "never"}, "Use color on the terminal."),
      number("TIMEOUT", "60", 1, 86400, "Deadline of every wait, in seconds."),
      choice("FAIL_ON", "error", {"error", "warning", "info"},
             "Least severity of a finding that makes the exit code 1. The same on all PEs."),
      choice("LOG_LEVEL", "warning", {"error", "warning", "info", "debug"},
             "Least severe level that is logged on stderr."),
      {"LOG_SUBSYSTEMS", OptionType::text, "", "Subsystems to log, comma-separated; empty: all."},
      {"SYSROOT", OptionType::text, "",
       "Read a copy of a machine's /sys and /proc below this directory, or an archive of shmemctl "
       "gather, instead of this machine."},
      {"NVML_LIBRARY", OptionType::text, "libnvidia-ml.so.1", "Shared library to load as NVML."},
      choice("POLICY", "nvshmem", {"nvshmem", "nccl", "optimal"},
             "Policy that maps PEs to NICs: NVSHMEM's, NCCL's, or the optimal mapping."),
      choice("WORLD", "node", {"node", "deepep-ht", "deepep-ll"},
             "PEs of the node that form one NVSHMEM world. node: all of them; deepep-ht: each PE "
             "alone (DeepEP's high-throughput mode); deepep-ll: all (DeepEP's low-latency mode)."),
      {"NVSHMEM_VERSION", OptionType::text, "",
       "NVSHMEM release to simulate, as X.Y.Z; empty: for topo and sim of a recorded node the one "
       "that "
       "it has, else the newest known release."},
      integer("PES_PER_NODE", "0", 0, 4096, "Number of PEs per node; 0: one per GPU."),
      {"GPUS", OptionType::text, "",
       "GPU index of each PE, comma-separated; empty: PE i uses GPU i."},
      {"HCA_LIST", OptionType::text, "",
       "HCAs to use, as comma-separated NAME[:PORT]; a leading ^ excludes them instead.",
       in_nvshmem},
      {"HCA_PE_MAPPING", OptionType::text, "",
       "HCAs as comma-separated NAME:PORT:COUNT; filters the devices and repeats each COUNT times.",
       in_nvshmem},
      {"ENABLE_NIC_PE_MAPPING", OptionType::boolean, "0",
       "Give PE i device i modulo the number of devices instead of selecting by distance.",
       in_nvshmem},
      {"HCA_PREFIX", OptionType::text, "",
       "IBGDA and IBDEVX use only devices whose name contains this text; after ^, only those whose "
       "name does not.",
       in_nvshmem},
      {"DISABLE_DATA_DIRECT", OptionType::boolean, "0",
       "Compute distances from the HCA's own PCI path, not from that of its data-direct function.",
       in_nvshmem},
      {"NETDEVS_POLICY", OptionType::text, "AUTO",
       "How NVSHMEM 3.7 shares NICs: among the PEs (AUTO) or among all GPUs of the node "
       "(EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE).",
       in_nvshmem},
      choice("REMOTE_TRANSPORT", "auto", with_none_and_auto(transports.remote),
             "Transport to other nodes; it also determines which NICs NVSHMEM selects; auto: the "
             "first of " +
                 listed(transports.automatic) + " that reaches all PEs.",
             in_nvshmem),
      {"IB_ENABLE_IBGDA", OptionType::boolean, "0",
       "Add ibgda to the transports, unless TRANSPORT lists them, and with DEVICE_PATH=auto let "
       "kernels post to the HCA directly (IBGDA) where peers are not mapped.",
       in_nvshmem},
      {"IBGDA_ENABLE_MULTI_PORT", OptionType::boolean, "0",
       "Let IBGDA use all NICs of a PE instead of only the first.", in_nvshmem},
  };
}

// Bootstrap and symmetric heap.
std::vector<OptionSpec> runtime_options() {
  constexpr bool in_nvshmem = true;
  return {
      choice("BOOTSTRAP", "auto",
             {"auto", "uid", "local", "mpi", "pmi", "pmi2", "pmix", "openshmem", "shmem", "plugin",
              "single"},
             "How the PEs of a job connect to each other; auto: detected from the launcher's "
             "environment; shmem is NVSHMEM's name for openshmem.",
             in_nvshmem),
      choice("BOOTSTRAP_PMI", "auto", {"auto", "pmi", "pmi2", "pmi-2", "pmix"},
             "Process management interface that BOOTSTRAP=pmi uses.", in_nvshmem),
      {"BOOTSTRAP_PLUGIN", OptionType::text, "", "Shared object that BOOTSTRAP=plugin loads.",
       in_nvshmem},
      secret("BOOTSTRAP_UID", "Unique id of the job, as printed by the PE that created it; it "
                              "contains the job's secret."),
      secret("BOOTSTRAP_UID_SESSION_ID",
             "HOST:PORT on which PE 0 listens for the other PEs, instead of a unique id.",
             in_nvshmem),
      secret("BOOTSTRAP_UID_SECRET",
             "Secret of a job that uses a session id: any text, equal on all PEs."),
      {"BOOTSTRAP_UID_SECRET_FILE", OptionType::text, "",
       "File with that secret, instead of the variable."},
      {"BOOTSTRAP_UID_SOCK_IFNAME", OptionType::text, "",
       "Network interfaces to use: comma-separated prefixes; a leading ^ excludes, a leading = "
       "matches exactly.",
       in_nvshmem},
      choice("BOOTSTRAP_UID_SOCK_FAMILY", "", {"", "AF_INET", "AF_INET6"},
             "Address family of the bootstrap; empty: any.", in_nvshmem),
      integer("BOOTSTRAP_UID_RANK", "-1", -1, 1 << 20,
              "Rank of this PE for BOOTSTRAP=uid; -1: from the launcher's variables."),
      integer("BOOTSTRAP_UID_SIZE", "-1", -1, 1 << 20,
              "Number of PEs for BOOTSTRAP=uid; -1: from the launcher's variables."),
      {"MPI_LIBRARY", OptionType::text, "libmpi.so.40", "Shared library to load as Open MPI."},
      {"PMIX_LIBRARY", OptionType::text, "libpmix.so.2", "Shared library to load as PMIx."},
      {"OPENSHMEM_LIBRARY", OptionType::text, "liboshmem.so.40",
       "Shared library to load as OpenSHMEM."},
      {"NODE_ID", OptionType::text, "",
       "Name of the PE's virtual node: PEs with the same name count as one node, whatever machine "
       "they run on."},
      choice("INIT_MODE", "whole", {"whole", "per-local-rank", "low-latency"},
             "Worlds of the job: one world of all PEs (whole), one per local rank as in DeepEP's "
             "high-throughput mode, or one with strided sub-teams as in its low-latency mode."),
      {"SYMMETRIC_SIZE", OptionType::size, "1G", "Size of the symmetric heap of each PE.",
       in_nvshmem},
      {"HEAP_CHUNK", OptionType::size, "64M", "The heap grows in multiples of this size."},
      choice("HEAP_BACKING", "auto", {"auto", "memfd", "devshm"},
             "Host memory of the heap: an anonymous file (memfd) or a file in /dev/shm."),
      {"HUGE_PAGES", OptionType::boolean, "1", "Use huge pages for the heap if some are free."},
      {"CHECK", OptionType::boolean, "0",
       "Check every call: equal sizes on all PEs, symmetric addresses, no double free."},
      {"FAULT", OptionType::text, "",
       "Fault injection for tests: kill:PE:PHASE, stop:PE:PHASE, exit:PE:PHASE or error:PE:PHASE "
       "makes a PE fail in that phase; corrupt:PE:verify corrupts the data that bench verifies; "
       "slow:PE:fabric, or slow:PE:fabric-TO, slows what fabric sends, to all PEs or to one."},
  };
}

// GPU memory and device paths.
std::vector<OptionSpec> gpu_options() {
  return {
      choice("HEAP", "auto", {"auto", "vmm", "fabric", "ipc", "host", "none"},
             "Memory of the symmetric heap. vmm: GPU memory of CUDA's virtual memory API; fabric: "
             "the same, shareable across an NVLink domain; ipc: GPU memory shared by CUDA IPC; "
             "host: host memory mapped by GPUs; none: use no GPUs; auto: fabric if the machines "
             "share an NVLink domain, else vmm if all GPUs support it, else ipc."),
      choice("DEVICE_PATH", "auto", {"auto", "p2p", "proxy", "ibgda"},
             "How kernels reach other PEs: p2p uses loads and stores only; proxy and ibgda also "
             "serve PEs whose memory is mapped; auto: p2p, and the network for all other PEs."),
      choice("GPUDIRECT", "auto", {"auto", "dmabuf", "peermem", "off"},
             "GPUDirect RDMA: register GPU memory with NICs through dma-buf or nvidia-peermem; "
             "auto: whichever all PEs support, else transfers are staged through host memory; off: "
             "staged."),
      {"CUDA_LIBRARY", OptionType::text, "libcuda.so.1",
       "Shared library to load as the CUDA driver."},
  };
}

// Transports between PEs.
std::vector<OptionSpec> transport_options() {
  constexpr bool in_nvshmem = true;
  const TransportChoices transports = transport_choices();
  OptionSpec gid_index = integer("IB_GID_INDEX", "-1", -1, 4095,
                                 "GID index of the RoCE port; -1: selected automatically.");
  OptionSpec roce_version =
      integer("IB_ROCE_VERSION_NUM", "2", 1, 2, "RoCE version of the automatically selected GID.");
  OptionSpec service_level =
      integer("IB_SL", "0", 0, 15, "InfiniBand service level of connections.");
  OptionSpec traffic_class = integer("IB_TRAFFIC_CLASS", "0", 0, 255,
                                     "Traffic class of RoCE connections; not used on InfiniBand.");
  OptionSpec queue_pairs =
      integer("IB_NUM_RC_PER_DEVICE", "1", 1, 64,
              "Additional RC queue pairs per peer and NIC, besides the first.");
  OptionSpec receives = integer("SRQ_DEPTH", "16384", 1, 1 << 20,
                                "Depth of the shared receive queue of each device, in messages.");
  OptionSpec depth = integer(
      "QP_DEPTH", "1024", 128, 32768,
      "Send queue depth of ibdevx and ibgda, in WQEBBs of 64 bytes; rounded up to a power of two.");
  OptionSpec gda_queues =
      integer("IBGDA_NUM_RC_PER_PE", "2", 1, 64, "RC queue pairs of ibgda per peer and NIC.");
  OptionSpec gda_batch =
      integer("IBGDA_NUM_REQUESTS_IN_BATCH", "32", 1, 32768,
              "Maximum number of WQEBBs per doorbell of ibgda; rounded up to a power of two.");
  OptionSpec gda_map = choice(
      "IBGDA_RC_MAP_BY", "cta", {"cta", "warp"},
      "Threads that share a queue pair of ibgda: those of a thread block (cta) or of a warp.");
  for (OptionSpec* row : {&gid_index, &roce_version, &service_level, &traffic_class, &queue_pairs,
                          &receives, &depth, &gda_queues, &gda_batch, &gda_map})
    row->nvshmem_alias = in_nvshmem;
  return {
      {"TRANSPORT", OptionType::text, "",
       "Transports to use, comma-separated, best first: " + join(transports.all, ", ") +
           "; empty: shm within a node and REMOTE_TRANSPORT between nodes."},
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
             "Address family of the automatically selected GID.", in_nvshmem),
      {"IB_ADDR_RANGE", OptionType::text, "",
       "Network, as ADDRESS/BITS, that contains the automatically selected GID; empty: any.",
       in_nvshmem},
      choice("IB_ATOMICS", "auto", {"auto", "device", "message"},
             "Who executes ibrc's atomics: the HCA (device) or the target's CPU, by message; auto: "
             "the HCA if all HCAs of the job support atomics."),
      receives,
      choice("IB_WRITE_ORDER", "auto", {"auto", "any", "kept"},
             "Placement order of RDMA WRITEs of one queue pair, for ibrc, ibdevx and ibgda: any "
             "assumes no order, as adaptive routing requires; kept enforces posting order where "
             "the HCA can and assumes it elsewhere; auto: any, except where only enforced order "
             "makes signals safe without waiting."),
      {"IB_DISABLE_DMABUF", OptionType::boolean, "0",
       "Register GPU memory through nvidia-peermem instead of dma-buf.", in_nvshmem},
      choice("IB_MTU", "", {"", "256", "512", "1024", "2048", "4096"},
             "Path MTU of connections in bytes; empty: the smaller active MTU of both ports."),
      integer("IB_TIMEOUT", "18", 1, 31,
              "Local ACK timeout exponent of queue pairs: the timeout is 4.096 us * 2^N."),
      integer("IB_RETRY_COUNT", "6", 0, 7,
              "Retransmissions of a queue pair before its peer counts as lost."),
      choice("MLX5_DEVICE", "auto", {"auto", "real", "emulated"},
             "Device of ibdevx and ibgda: an mlx5 HCA (real) or the emulated HCA (emulated); auto: "
             "an HCA, or the emulated one if there is none and EMULATED_HCA_OVER is set."),
      choice("EMULATED_HCA_OVER", "shm", transports.carriers,
             "Transport that executes the operations of the emulated HCA."),
      choice("EMULATED_HCA_PLACEMENT", "ordered", {"ordered", "any"},
             "Execution order of the emulated HCA, for tests: posting order, or any order that "
             "HCAs with out-of-order placement may use."),
      integer("PROXY_THREADS", "1", 1, 8,
              "Number of proxy threads, each of which serves a part of the PEs."),
      {"PROXY_CPUS", OptionType::text, "",
       "CPUs of the proxy threads, e.g. 2,4-7, one each if there are enough; empty: the CPUs that "
       "the process had at its start."},
      {"LIBFABRIC_PROVIDER", OptionType::text, "",
       "libfabric provider: tcp, verbs, efa, cxi; empty: the best available.", in_nvshmem},
      choice("LIBFABRIC_PROFILE", "", {"", "tcp", "verbs", "efa", "cxi"},
             "Provider whose semantics (ordering, atomics, signals) are assumed; empty: those of "
             "the provider in use."),
      {"LIBFABRIC_INTERFACE", OptionType::text, "",
       "Network interface or domain of the libfabric provider; empty: its first."},
      {"UCX_LIBRARY", OptionType::text, "libucp.so.0", "Shared library to load as UCX."},
      {"LIBFABRIC_LIBRARY", OptionType::text, "libfabric.so.1",
       "Shared library to load as libfabric."},
      {"VERBS_LIBRARY", OptionType::text, "libibverbs.so.1",
       "Shared library to load as libibverbs."},
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

std::string option_value_name(const OptionSpec& spec) {
  static const std::map<std::string_view, const char*> names = {
      {"BOOTSTRAP_PLUGIN", "FILE"},
      {"BOOTSTRAP_UID", "ID"},
      {"BOOTSTRAP_UID_RANK", "RANK"},
      {"BOOTSTRAP_UID_SECRET", "SECRET"},
      {"BOOTSTRAP_UID_SECRET_FILE", "FILE"},
      {"BOOTSTRAP_UID_SESSION_ID", "HOST:PORT"},
      {"BOOTSTRAP_UID_SOCK_IFNAME", "NAME,..."},
      {"FAULT", "FAULT"},
      {"GPUS", "INDEX,..."},
      {"HCA_LIST", "NAME[:PORT],..."},
      {"HCA_PE_MAPPING", "NAME:PORT:COUNT,..."},
      {"HCA_PREFIX", "PREFIX"},
      {"IB_ADDR_RANGE", "ADDRESS/BITS"},
      {"IB_GID_INDEX", "INDEX"},
      {"IB_ROCE_VERSION_NUM", "VERSION"},
      {"IB_SL", "LEVEL"},
      {"IB_TRAFFIC_CLASS", "CLASS"},
      {"LIBFABRIC_INTERFACE", "NAME"},
      {"LIBFABRIC_PROVIDER", "PROVIDER"},
      {"LOG_SUBSYSTEMS", "NAME,..."},
      {"NETDEVS_POLICY", "POLICY"},
      {"NODE_ID", "NAME"},
      {"NVSHMEM_VERSION", "X.Y.Z"},
      {"PROXY_CPUS", "CPUS"},
      {"SYSROOT", "DIR"},
      {"TIMEOUT", "SECONDS"},
      {"TRANSPORT", "NAME,..."},
  };
  if (spec.type == OptionType::choice)
    return "{" + join(spec.choices, ",") + "}";
  if (const auto found = names.find(spec.name); found != names.end())
    return found->second;
  if (spec.type == OptionType::size)
    return "SIZE";
  if (spec.type == OptionType::boolean)
    return "BOOL";
  if (spec.type == OptionType::integer || spec.type == OptionType::number)
    return "N";
  return ends_with(spec.name, "_LIBRARY") ? "FILE" : "TEXT";
}

bool is_secret_option(std::string_view name) {
  const std::vector<OptionSpec>& table = option_table();
  return std::any_of(table.begin(), table.end(),
                     [name](const OptionSpec& spec) { return spec.secret && spec.name == name; });
}

} // namespace shmemctl
