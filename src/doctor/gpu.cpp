// The GPUs themselves and the links between them.
#include <algorithm>
#include <set>

#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* driver_gpus_path = "/proc/driver/nvidia/gpus";

} // namespace

CheckResult gpus_visible(const CheckContext& context) {
  const Node& node = context.node;
  if (const auto reason = no_nvidia_gpu(node))
    return skipped(*reason);
  if (!context.sysroot.exists(driver_gpus_path))
    return skipped("the NVIDIA driver is not loaded: see nvidia-driver", absent(driver_gpus_path));
  std::set<PciAddress> of_driver;
  for (const std::string& name : context.sysroot.list(driver_gpus_path))
    if (const auto address = parse_pci_address(name))
      of_driver.insert(*address);
  std::vector<std::string> missing;
  std::vector<std::string> lent; // to a virtual machine or another driver
  std::string evidence = std::string(driver_gpus_path) + ": " + std::to_string(of_driver.size()) +
                         " GPUs; PCI: " + std::to_string(node.gpus.size());
  for (const Gpu& gpu : node.gpus) {
    if (gpu.vendor != "nvidia" || gpu.pci < 0)
      continue;
    const PciAddress& address = node.pci[static_cast<std::size_t>(gpu.pci)].address;
    if (of_driver.count(address) != 0)
      continue;
    const std::string driver_path = sysfs_path(address) + "/driver";
    const auto driver = link_target(context.sysroot, driver_path);
    const std::string bound = driver ? driver->substr(driver->rfind('/') + 1) : "none";
    if (bound != "nvidia" && bound != "none") {
      lent.push_back(gpu_name(node, gpu));
      evidence += "; " + said(driver_path, bound);
    } else {
      missing.push_back(gpu_name(node, gpu));
    }
  }
  if (!missing.empty() && container_evidence(context.sysroot, context.environment))
    return warned("the driver shows this container fewer GPUs than PCI has: without " +
                      name_list(missing),
                  evidence, "docker run --gpus all");
  if (!missing.empty())
    return failed("the driver does not see " + name_list(missing), evidence,
                  "dmesg | grep -i -E 'nvrm|xid' | tail -n 20; nvidia-smi -L");
  if (!lent.empty())
    return warned(
        "another driver holds " + name_list(lent), evidence,
        "for d in /sys/bus/pci/devices/*/driver; do readlink -f $d; done | sort | uniq -c");
  return passed("the driver sees every GPU", evidence);
}

namespace {

/// The pairs for which a matrix says no in either direction.
std::vector<std::string> pairs_without(const std::vector<std::vector<bool>>& matrix) {
  std::vector<std::string> pairs;
  for (std::size_t from = 0; from < matrix.size(); ++from)
    for (std::size_t to = from + 1; to < matrix[from].size(); ++to)
      if (!matrix[from][to] || to >= matrix.size() || from >= matrix[to].size() ||
          !matrix[to][from])
        pairs.push_back(std::to_string(from) + "-" + std::to_string(to));
  return pairs;
}

} // namespace

CheckResult judge_gpu_p2p(const CudaProbe& probe, bool nvlinks) {
  if (!probe.initialized())
    return skipped("CUDA does not start: see cuda-driver", probe.problem);
  const std::size_t count = probe.devices.size();
  if (count < 2)
    return skipped("fewer than two GPUs", "cuDeviceGetCount: " + std::to_string(count));
  const std::vector<std::string> apart = pairs_without(probe.peers);
  const std::string pairs = std::to_string(count * (count - 1) / 2) + " pairs";
  if (apart.empty()) {
    const std::string can = "cuDeviceCanAccessPeer: yes for all " + pairs;
    const std::vector<std::string> without = pairs_without(probe.atomics);
    if (!without.empty())
      return warned("the links of " + std::to_string(without.size()) + " of " + pairs +
                        " have no native atomics: " + name_list(without) +
                        "; kernels of these reach each other by a network only",
                    can + "; cuDeviceGetP2PAttribute: NATIVE_ATOMIC_SUPPORTED 0 for CUDA devices " +
                        name_list(without),
                    "nvidia-smi topo -p2p a");
    return passed("every GPU reaches every other one's memory",
                  probe.atomics.empty() ? can : can + ", with native atomics");
  }
  const std::string reason = std::to_string(apart.size()) + " of " + pairs +
                             " cannot reach each other's memory: " + name_list(apart);
  const std::string evidence = "cuDeviceCanAccessPeer: 0 for CUDA devices " + name_list(apart);
  const std::string fix = "nvidia-smi topo -p2p r  # then see pcie-acs and iommu";
  return nvlinks ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

CheckResult gpu_p2p(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("a copied tree cannot be asked: needs the live machine");
  if (context.node.gpus.size() < 2)
    return skipped("only one GPU on this node");
  const std::vector<Gpu>& gpus = context.node.gpus;
  return judge_gpu_p2p(live_cuda(), std::any_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
                         return nvlink_count(gpu) > 0;
                       }));
}

} // namespace shmemctl::doctor
