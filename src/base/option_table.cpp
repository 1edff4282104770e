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
      choice(
          "COLOR", "auto", {"auto", "always", "never"},
          "Whether text output has colors; auto: on a terminal (not with TERM=dumb or CLICOLOR=0), "
          "and everywhere if CLICOLOR_FORCE or FORCE_COLOR is set, but never if NO_COLOR is."),
      number("TIMEOUT", "60", 1, 86400,
             "Seconds that any single wait may take in bringup, bench, moe and fabric; in other "
             "subcommands, seconds for the whole run besides the time that it is told to measure."),
      choice("FAIL_ON", "error", {"error", "warning", "info"},
             "Lowest severity of a finding that makes the exit code 1; must be equal on all PEs."),
      choice("LOG_LEVEL", "warning", {"error", "warning", "info", "debug"},
             "Log messages of this level and of more severe ones on stderr."),
      {"LOG_SUBSYSTEMS", OptionType::text, "",
       "Subsystems whose messages are logged, comma-separated: bootstrap, failure detector, gpu, "
       "ibrc, memory, options, run, runtime, topo, transports; empty: all; errors are always "
       "logged."},
      {"SYSROOT", OptionType::text, "",
       "Read a copy of a machine's /sys and /proc below this directory, or an archive of shmemctl "
       "gather, instead of this machine."},
      {"NVML_LIBRARY", OptionType::text, "libnvidia-ml.so.1", "Shared library to load as NVML."},
      choice("POLICY", "nvshmem", {"nvshmem", "nccl", "optimal"},
             "Policy that maps PEs to NICs: NVSHMEM's, NCCL's, or the optimal mapping."),
      choice("WORLD", "node", {"node", "deepep-ht", "deepep-ll"},
             "Which PEs of a node share an NVSHMEM world, and so see each other's NICs. node: all; "
             "deepep-ll (DeepEP's low-latency mode): all, with IBGDA; deepep-ht (its "
             "high-throughput mode): each PE in a world of its own, with IBGDA."),
      {"NVSHMEM_VERSION", OptionType::text, "",
       "NVSHMEM release whose rules map PEs to NICs, as X.Y.Z; empty: the newest known one or, if "
       "topo, check or sim reads a recorded node, the release in the recording."},
      integer("PES_PER_NODE", "0", 0, 4096, "PEs per node; 0: one per GPU, or per entry of GPUS."),
      {"GPUS", OptionType::text, "",
       "GPU of each PE of a machine: comma-separated indices as topo shows them, the first for "
       "local PE 0; the list repeats if there are more PEs; empty: all GPUs in order."},
      {"HCA_LIST", OptionType::text, "",
       "HCAs that PEs may use, as comma-separated NAME[:PORT]; ^ before the list: all but these.",
       in_nvshmem},
      {"HCA_PE_MAPPING", OptionType::text, "",
       "HCAs that PEs may use, as NAME:PORT:COUNT, each listed COUNT times (ignored if HCA_LIST is "
       "set); PEs still choose by distance unless ENABLE_NIC_PE_MAPPING is set.",
       in_nvshmem},
      {"ENABLE_NIC_PE_MAPPING", OptionType::boolean, "0",
       "Assign HCAs by local rank instead of by distance: local rank i gets HCA i modulo their "
       "number.",
       in_nvshmem},
      {"HCA_PREFIX", OptionType::text, "",
       "Text that the names of HCAs for IBGDA and IBDEVX must contain or, with a ^ before it "
       "(3.5.19 and newer), must not; if unset, as in NVSHMEM: ^smi from 3.5.19 on, mlx5 before.",
       in_nvshmem},
      {"DISABLE_DATA_DIRECT", OptionType::boolean, "0",
       "Compute distances from the HCA's own PCI path, not from that of its data-direct function.",
       in_nvshmem},
      {"NETDEVS_POLICY", OptionType::text, "AUTO",
       "How NVSHMEM 3.7 and newer distribute NICs. AUTO: among the PEs of the world; "
       "EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE: among all GPUs of the node, also those of "
       "other worlds.",
       in_nvshmem},
      choice("REMOTE_TRANSPORT", "auto", with_none_and_auto(transports.remote),
             "Transport to other nodes; it also decides which NICs are selected. none: only ibgda, "
             "and only if IB_ENABLE_IBGDA is set; auto: in a job, the first of " +
                 listed(transports.automatic) +
                 " that reaches all PEs; elsewhere, as in topo and sim, ibrc, or libfabric on EFA.",
             in_nvshmem),
      {"IB_ENABLE_IBGDA", OptionType::boolean, "0",
       "Use IBGDA: add ibgda to the transports to other nodes (if TRANSPORT is set, it must list "
       "ibgda itself), and with DEVICE_PATH=auto let kernels post to the HCA for PEs whose memory "
       "is not mapped.",
       in_nvshmem},
      {"IBGDA_ENABLE_MULTI_PORT", OptionType::boolean, "0",
       "Let IBGDA use all NICs that are selected for a PE, not only the first.", in_nvshmem},
  };
}

// Bootstrap and symmetric heap.
std::vector<OptionSpec> runtime_options() {
  constexpr bool in_nvshmem = true;
  return {
      choice("BOOTSTRAP", "auto",
             {"auto", "uid", "local", "mpi", "pmi", "pmi2", "pmix", "openshmem", "shmem", "plugin",
              "single"},
             "How the PEs of a job find each other. uid: over TCP, by a unique id or session id; "
             "local: as PEs of shmemctl run; mpi, pmi, pmi2, pmix, openshmem (also called shmem): "
             "by that library or protocol of the launcher; plugin: by BOOTSTRAP_PLUGIN; single: a "
             "job of one PE; auto: chosen from the environment.",
             in_nvshmem),
      choice("BOOTSTRAP_PMI", "auto", {"auto", "pmi", "pmi2", "pmi-2", "pmix"},
             "Process management interface for BOOTSTRAP=pmi; auto: pmix if the launcher serves "
             "nothing else, otherwise pmi.",
             in_nvshmem),
      {"BOOTSTRAP_PLUGIN", OptionType::text, "", "Shared object that BOOTSTRAP=plugin loads.",
       in_nvshmem},
      secret("BOOTSTRAP_UID", "Unique id of the job, as the PE that created it printed it; whoever "
                              "knows it can join the job."),
      secret("BOOTSTRAP_UID_SESSION_ID",
             "HOST:PORT at which PE 0 listens for the other PEs; replaces the unique id, and needs "
             "BOOTSTRAP_UID_SECRET or its file.",
             in_nvshmem),
      secret("BOOTSTRAP_UID_SECRET",
             "Secret for BOOTSTRAP_UID_SESSION_ID: any text, equal on all PEs."),
      {"BOOTSTRAP_UID_SECRET_FILE", OptionType::text, "",
       "File whose first line is the secret for BOOTSTRAP_UID_SESSION_ID, instead of "
       "BOOTSTRAP_UID_SECRET."},
      {"BOOTSTRAP_UID_SOCK_IFNAME", OptionType::text, "",
       "Network interfaces for TCP connections of bootstrap and failure detector: comma-separated "
       "prefixes; ^ before the list: all but these; = before it: whole names (^= for both).",
       in_nvshmem},
      choice("BOOTSTRAP_UID_SOCK_FAMILY", "", {"", "AF_INET", "AF_INET6"},
             "Address family of the TCP connections of the bootstrap and the failure detector; "
             "empty: IPv4 or IPv6.",
             in_nvshmem),
      integer("BOOTSTRAP_UID_RANK", "-1", -1, (1 << 20) - 1,
              "Rank of this PE, for BOOTSTRAP=uid, together with BOOTSTRAP_UID_SIZE; -1: read from "
              "the launcher's variables."),
      integer("BOOTSTRAP_UID_SIZE", "-1", -1, 1 << 20,
              "PEs of the job, at least 1, for BOOTSTRAP=uid, together with BOOTSTRAP_UID_RANK; "
              "-1: read from the launcher's variables."),
      {"MPI_LIBRARY", OptionType::text, "libmpi.so.40", "Shared library to load as Open MPI."},
      {"PMIX_LIBRARY", OptionType::text, "libpmix.so.2", "Shared library to load as PMIx."},
      {"OPENSHMEM_LIBRARY", OptionType::text, "liboshmem.so.40",
       "Shared library to load as OpenSHMEM."},
      {"NODE_ID", OptionType::text, "",
       "Name of the PE's virtual node: PEs with the same name count as one node, on whatever "
       "machine they run; empty: the machine, or its part by run --nodes, is the node."},
      choice("INIT_MODE", "whole", {"whole", "per-local-rank", "low-latency"},
             "How PEs form worlds. whole: one world of all PEs; per-local-rank: one world for each "
             "local rank, as in DeepEP's high-throughput mode; low-latency: one world, with a team "
             "for each local rank, as in DeepEP's low-latency mode."),
      {"SYMMETRIC_SIZE", OptionType::size, "1G",
       "Size up to which the symmetric heap of each PE can grow; the GPU's heap of an NVSHMEM "
       "program: 128G or more unless SHMEMCTL_SYMMETRIC_SIZE is set or the heap is of kind ipc.",
       in_nvshmem},
      {"HEAP_CHUNK", OptionType::size, "64M",
       "The symmetric heap grows in multiples of this size, up to SYMMETRIC_SIZE."},
      choice("HEAP_BACKING", "auto", {"auto", "memfd", "devshm"},
             "What holds a symmetric heap in host memory. memfd: an anonymous file; devshm: a file "
             "in /dev/shm; auto: memfd where the kernel has it."),
      {"HUGE_PAGES", OptionType::boolean, "1",
       "Use huge pages for a symmetric heap in a memfd (HEAP_BACKING), where enough are free."},
      {"CHECK", OptionType::boolean, "0",
       "Check the arguments of calls: equal sizes on all PEs, transfers within symmetric memory, "
       "aligned atomics, no double free."},
      {"FAULT", OptionType::text, "",
       "Fault injection for tests: kill:PE:PHASE, stop:PE:PHASE, exit:PE:PHASE or error:PE:PHASE "
       "makes a PE fail in that phase; corrupt:PE:verify corrupts the data that bench and moe "
       "verify; slow:PE:fabric, or slow:PE:fabric-TO, slows what fabric sends, to all PEs or to "
       "one."},
  };
}

// GPU memory and device paths.
std::vector<OptionSpec> gpu_options() {
  return {
      choice("HEAP", "auto", {"auto", "vmm", "fabric", "ipc", "host", "none"},
             "Memory of the symmetric heap that kernels use. vmm: GPU memory of CUDA's virtual "
             "memory API; fabric: the same, shareable in an NVLink domain; ipc: memory shared by "
             "CUDA IPC; host: host memory that GPUs map; none: the job uses no GPUs; auto: fabric "
             "if machines share an NVLink domain, else vmm if all GPUs support it, else ipc."),
      choice("DEVICE_PATH", "auto", {"auto", "p2p", "proxy", "ibgda"},
             "How kernels access the memory of other PEs. auto: by loads and stores where it is "
             "mapped, else by a network; p2p: by loads and stores only; proxy: by a network "
             "through a thread of the host, even where it is mapped; ibgda: likewise, but kernels "
             "post to the HCA if ibgda is among the transports."),
      choice(
          "GPUDIRECT", "auto", {"auto", "dmabuf", "peermem", "off"},
          "How NICs access GPU memory. dmabuf, peermem: directly, registered by dma-buf or through "
          "nvidia-peermem, and the job does not start where that fails; auto: by whichever all PEs "
          "support, else transfers are staged through host memory; off: always staged."),
      {"CUDA_LIBRARY", OptionType::text, "libcuda.so.1",
       "Shared library to load as the CUDA driver."},
  };
}

// Transports between PEs.
std::vector<OptionSpec> transport_options() {
  constexpr bool in_nvshmem = true;
  const TransportChoices transports = transport_choices();
  OptionSpec gid_index =
      integer("IB_GID_INDEX", "-1", -1, 255, // ibv_ah_attr has one byte for it
              "GID index of RoCE ports and, in ibrc, of InfiniBand ports; -1: automatic.");
  OptionSpec roce_version = integer("IB_ROCE_VERSION_NUM", "2", 1, 2,
                                    "RoCE version that an automatically selected GID must have; if "
                                    "this is unset: any, v2 preferred.");
  OptionSpec service_level = integer("IB_SL", "0", 0, 15,
                                     "Service level of connections over InfiniBand; over RoCE, "
                                     "their Ethernet priority (at most 7).");
  OptionSpec traffic_class =
      integer("IB_TRAFFIC_CLASS", "0", 0, 255,
              "Traffic class of RoCE connections; must be 0 over InfiniBand.");
  OptionSpec queue_pairs =
      integer("IB_NUM_RC_PER_DEVICE", "1", 1, 64,
              "RC queue pairs of ibrc and ibdevx per peer and NIC, in addition to the first.");
  OptionSpec receives =
      integer("SRQ_DEPTH", "16384", 1, 1 << 20,
              "Depth of ibrc's shared receive queue of each device, in messages.");
  OptionSpec depth = integer("QP_DEPTH", "1024", 128, 32768,
                             "Send queue depth of ibdevx and ibgda, in WQEBBs of 64 bytes, rounded "
                             "up to a power of two; at most 16384 with the emulated HCA.");
  OptionSpec gda_queues =
      integer("IBGDA_NUM_RC_PER_PE", "2", 1, 64, "RC queue pairs of ibgda per peer and NIC.");
  OptionSpec gda_batch = integer("IBGDA_NUM_REQUESTS_IN_BATCH", "32", 1, 32768,
                                 "WQEBBs that ibgda posts at most before it rings the doorbell; "
                                 "rounded up to a power of two.");
  OptionSpec gda_map = choice(
      "IBGDA_RC_MAP_BY", "cta", {"cta", "warp"},
      "Which threads share a queue pair of ibgda: those of a thread block (cta), or of a warp.");
  for (OptionSpec* row : {&gid_index, &roce_version, &service_level, &traffic_class, &queue_pairs,
                          &receives, &depth, &gda_queues, &gda_batch, &gda_map})
    row->nvshmem_alias = in_nvshmem;
  return {
      {"TRANSPORT", OptionType::text, "",
       "Transports to use, comma-separated, best first, out of " + join(transports.all, ", ") +
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
             "Address family that an automatically selected GID must have; if this is unset: any, "
             "IPv4 preferred.",
             in_nvshmem),
      {"IB_ADDR_RANGE", OptionType::text, "",
       "Network, as ADDRESS/BITS, in which an automatically selected GID must lie; empty: any.",
       in_nvshmem},
      choice("IB_ATOMICS", "auto", {"auto", "device", "message"},
             "Who executes ibrc's atomics. device: the HCA; message: the CPU of the target, on a "
             "message; auto: device if all HCAs of the job support atomics, else message."),
      receives,
      choice("IB_WRITE_ORDER", "auto", {"auto", "any", "kept"},
             "What ibrc, ibdevx and ibgda assume about the order in which RDMA WRITEs of a queue "
             "pair reach memory. any: no order, as adaptive routing requires; kept: posting order, "
             "enforced where the HCA can do so, assumed elsewhere; auto: no order, except on "
             "Soft-RoCE, which keeps it, and on mlx5 HCAs without 64-bit atomics that can enforce "
             "it."),
      {"IB_DISABLE_DMABUF", OptionType::boolean, "0",
       "Register GPU memory not by dma-buf, only through nvidia-peermem.", in_nvshmem},
      choice(
          "IB_MTU", "", {"", "256", "512", "1024", "2048", "4096"},
          "Path MTU of ibrc's connections, in bytes; empty: the smaller active MTU of both ports."),
      integer("IB_TIMEOUT", "18", 1, 31,
              "Exponent N of the local ACK timeout of queue pairs, which is 4.096 us * 2^N."),
      integer("IB_RETRY_COUNT", "6", 0, 7,
              "Retransmissions (retry_cnt) after which a queue pair fails and its peer counts as "
              "lost."),
      choice("MLX5_DEVICE", "auto", {"auto", "real", "emulated"},
             "Device of ibdevx and ibgda. real: an mlx5 HCA; emulated: the emulated HCA; auto: an "
             "mlx5 HCA, or the emulated one if there is none and EMULATED_HCA_OVER is set."),
      choice("EMULATED_HCA_OVER", "shm", transports.carriers,
             "Transport that executes the operations of the emulated HCA; setting it lets ibdevx "
             "and ibgda use that HCA where there is no mlx5 device."),
      choice("EMULATED_HCA_PLACEMENT", "ordered", {"ordered", "any"},
             "Order in which the emulated HCA executes operations, for tests. ordered: as posted; "
             "any: any order that HCAs with out-of-order placement may use."),
      integer("PROXY_THREADS", "1", 1, 8,
              "Proxy threads of each PE; each serves a part of the other PEs. At most 6 if a "
              "network carries transfers of GPU memory, and 5 if kernels use the proxy."),
      {"PROXY_CPUS", OptionType::text, "",
       "CPUs of the proxy threads, such as 2,4-7: one for each thread if there are enough, else "
       "all for all; empty: all CPUs that the process was allowed at its start."},
      {"LIBFABRIC_PROVIDER", OptionType::text, "",
       "libfabric provider: tcp, verbs, efa, cxi, or another that fi_info lists; empty: the first "
       "of cxi, efa, verbs and tcp that is available.",
       in_nvshmem},
      choice("LIBFABRIC_PROFILE", "", {"", "tcp", "verbs", "efa", "cxi"},
             "Provider whose rules for ordering, atomics and signals libfabric's transport "
             "follows; empty: those of the provider in use."),
      {"LIBFABRIC_INTERFACE", OptionType::text, "",
       "Network interface or domain that the libfabric provider uses; empty: those of the selected "
       "NICs or, if the provider knows none of them (as tcp), its first."},
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
