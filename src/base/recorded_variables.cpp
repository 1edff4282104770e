// The environment variables that a report records, and the text that it records for them.
#include "src/base/recorded_variables.h"

#include <algorithm>

#include "src/base/secret_filter.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Maximum length of the recorded value of a variable that is not an option.
constexpr std::size_t longest_value = 1000;

void add(const std::string& prefix, const std::vector<std::string>& names,
         std::vector<std::string>& to) {
  for (const std::string& name : names)
    to.push_back(prefix + name);
}

} // namespace

const std::vector<std::string>& recorded_variables() {
  static const std::vector<std::string> variables = [] {
    std::vector<std::string> all;
    add("CUDA_",
        {"DEVICE_MAX_CONNECTIONS", "DEVICE_ORDER", "DISABLE_PERF_BOOST", "LAUNCH_BLOCKING",
         "MODULE_LOADING", "MPS_ACTIVE_THREAD_PERCENTAGE", "MPS_PIPE_DIRECTORY", "VISIBLE_DEVICES"},
        all);
    add("FI_",
        {"CXI_DEFAULT_CQ_SIZE", "CXI_DISABLE_HOST_REGISTER", "CXI_RX_MATCH_MODE", "EFA_FORK_SAFE",
         "EFA_USE_DEVICE_RDMA", "EFA_USE_HUGE_PAGE", "HMEM", "HMEM_CUDA_ENABLE_XFER",
         "HMEM_CUDA_USE_GDRCOPY", "LOG_LEVEL", "MR_CACHE_MAX_COUNT", "MR_CACHE_MAX_SIZE",
         "MR_CACHE_MONITOR", "PROVIDER", "TCP_IFACE", "VERBS_DEVICE_NAME", "VERBS_IFACE"},
        all);
    add("NCCL_",
        {"ALGO",
         "BUFFSIZE",
         "CROSS_NIC",
         "CUMEM_ENABLE",
         "DEBUG",
         "DMABUF_ENABLE",
         "GRAPH_FILE",
         "IB_ADAPTIVE_ROUTING",
         "IB_DATA_DIRECT",
         "IB_DISABLE",
         "IB_GID_INDEX",
         "IB_HCA",
         "IB_MERGE_NICS",
         "IB_PCI_RELAXED_ORDERING",
         "IB_QPS_PER_CONNECTION",
         "IB_RETRY_CNT",
         "IB_ROCE_VERSION_NUM",
         "IB_SL",
         "IB_SPLIT_DATA_ON_QPS",
         "IB_TC",
         "IB_TIMEOUT",
         "IGNORE_CPU_AFFINITY",
         "MAX_CTAS",
         "MAX_NCHANNELS",
         "MIN_CTAS",
         "MIN_NCHANNELS",
         "MNNVL_ENABLE",
         "NET",
         "NETDEVS_POLICY",
         "NET_GDR_LEVEL",
         "NET_GDR_READ",
         "NET_PLUGIN",
         "NTHREADS",
         "NVLS_ENABLE",
         "P2P_DISABLE",
         "P2P_LEVEL",
         "PROTO",
         "PXN_DISABLE",
         "SHM_DISABLE",
         "SOCKET_FAMILY",
         "SOCKET_IFNAME",
         "SOCKET_NTHREADS",
         "TOPO_FILE"},
        all);
    add("NVSHMEM_",
        {"DEBUG", "DISABLE_P2P", "IB_GID_INDEX", "IB_TRAFFIC_CLASS", "LIBFABRIC_PROVIDER"}, all);
    add("UCX_",
        {"CUDA_COPY_DMABUF", "CUDA_IPC_ENABLE_MNNVL", "IB_GID_INDEX", "IB_GPU_DIRECT_RDMA",
         "IB_PCI_RELAXED_ORDERING", "IB_SL", "IB_TRAFFIC_CLASS", "LOG_LEVEL", "MAX_EAGER_RAILS",
         "MAX_RMA_RAILS", "MAX_RNDV_RAILS", "MEMTYPE_CACHE", "MEM_MMAP_HOOK_MODE", "NET_DEVICES",
         "PROTO_ENABLE", "RNDV_SCHEME", "RNDV_THRESH", "TLS", "ZCOPY_THRESH"},
        all);
    std::sort(all.begin(), all.end());
    return all;
  }();
  return variables;
}

std::map<std::string, std::string> recorded_environment(const Environment& environment,
                                                        const Options& options) {
  const SecretFilter filter(options);
  std::map<std::string, std::string> recorded;
  const auto record = [&](const std::string& name, const std::string& text) {
    recorded[name] = shown_value(name, filter(text).substr(0, longest_value));
  };
  std::vector<std::string> read_as_options;
  for (const OptionSpec& spec : option_table()) {
    if (const OptionValue& value = options.value(spec.name); value.set())
      recorded["SHMEMCTL_" + spec.name] = shown_value("SHMEMCTL_" + spec.name, value.text);
    if (spec.nvshmem_alias)
      read_as_options.push_back("NVSHMEM_" + spec.name);
  }
  for (const std::string& name : recorded_variables())
    if (const auto found = environment.find(name);
        found != environment.end() &&
        std::find(read_as_options.begin(), read_as_options.end(), name) == read_as_options.end())
      record(name, found->second);
  return recorded;
}

} // namespace shmemctl
