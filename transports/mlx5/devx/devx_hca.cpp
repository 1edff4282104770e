#include "transports/mlx5/devx/devx_hca.h"

#include "src/base/error.h"
#include "transports/mlx5/devx/devx_open.h"
#include "transports/mlx5/devx/devx_qp.h"
#include "transports/verbs/registration.h"

namespace shmemctl::mlx5 {

namespace {

class DevxMemory final : public HcaMemory {
public:
  DevxMemory(verbs::MemoryRegion region, std::string method)
      : region_(std::move(region)), method_(std::move(method)) {}
  std::uint32_t lkey() const override { return region_->lkey; }
  std::uint32_t rkey() const override { return region_->rkey; }
  std::string method() const override { return method_; }

private:
  verbs::MemoryRegion region_;
  std::string method_;
};

/// Why the device cannot be used; "" if it can. Missing atomics are no reason: only a call that
/// needs them fails.
std::string why_unfit(const DirectDevice& device) {
  return device.port().active ? "" : "its port is " + device.port().state;
}

class DevxHca final : public Hca {
public:
  DevxHca(std::shared_ptr<const verbs::Functions> verbs,
          std::shared_ptr<const DirectFunctions> direct, ibv_device* ibv, int port,
          const DevxSettings& settings)
      : options_(settings.options),
        port_(std::move(verbs), std::move(direct), ibv, port, settings.gid, settings.write_order) {
    const DeviceLimits& limits = port_.limits;
    info_.device = port_.device.verbs().name();
    info_.port = port;
    info_.ethernet = port_.device.port().ethernet;
    info_.max_wqebbs = 1u << limits.log_wqebbs;
    info_.max_rdma_bytes = std::uint64_t{1} << limits.log_message_bytes;
    info_.atomic_bytes = limits.atomic_bytes;
    info_.orders_writes = port_.orders_writes;
    info_.unfit = why_unfit(port_.device);
  }

  const HcaInfo& info() const override { return info_; }

  std::unique_ptr<HcaMemory> register_memory(const MemoryRequest& request) override {
    verbs::Device& device = port_.device.verbs();
    verbs::RegistrationMethod method = verbs::RegistrationMethod::plain;
    // The values of Access are those of ibv_access_flags.
    verbs::MemoryRegion region = verbs::register_memory(
        device, request.base, request.size_bytes,
        request.gpu ? verbs::MemoryKind::cuda : verbs::MemoryKind::host,
        request.gpu ? verbs::paths_of(request.gpu, device.functions(), options_)
                    : verbs::DeviceMemoryPaths(),
        request.gpu ? "memory of " + request.gpu->text() : "memory", &method,
        static_cast<int>(request.access));
    return std::make_unique<DevxMemory>(std::move(region),
                                        request.gpu ? verbs::to_string(method) : "");
  }

  std::unique_ptr<HcaQp> create_queue(const QpOptions& options) override {
    if (options.wqebbs > info_.max_wqebbs)
      port_.device.fail(
          "create a QP",
          "SHMEMCTL_QP_DEPTH, rounded up to a power of two, is " + std::to_string(options.wqebbs) +
              " WQEBBs, and the device's send queues have at most " +
              std::to_string(info_.max_wqebbs),
          "lower SHMEMCTL_QP_DEPTH to " + std::to_string(info_.max_wqebbs) + " or less");
    return std::make_unique<DevxQp>(port_, options);
  }

private:
  Options options_;
  DirectPort port_;
  HcaInfo info_;
};

/// Opens the two libraries. If one is missing, the result is empty and `why` receives the reason.
std::optional<DirectLibraries> load(const DevxSettings& settings, std::string& why) {
  DirectLibraries libraries;
  libraries.verbs = verbs::load_functions(settings.verbs_library, why);
  if (!libraries.verbs)
    return std::nullopt;
  libraries.direct = load_direct_functions(*libraries.verbs, settings.mlx5_library, why);
  if (!libraries.direct)
    return std::nullopt;
  return libraries;
}

using DeviceList = std::unique_ptr<ibv_device*, void (*)(ibv_device**)>;

DeviceList list_devices(const DirectLibraries& libraries, int& count) {
  count = 0;
  return {libraries.verbs->get_device_list(&count), libraries.verbs->free_device_list};
}

} // namespace

std::vector<std::string> devx_devices(const DirectLibraries& libraries) {
  std::vector<std::string> names;
  int count = 0;
  const DeviceList list = list_devices(libraries, count);
  for (int i = 0; list && i < count; ++i)
    if (libraries.direct->is_supported(list.get()[i]))
      names.emplace_back(list.get()[i]->name);
  return names;
}

std::unique_ptr<Hca> open_devx_hca(const DirectLibraries& libraries, const std::string& name,
                                   int port, const DevxSettings& settings) {
  int count = 0;
  const DeviceList list = list_devices(libraries, count);
  for (int i = 0; list && i < count; ++i) {
    ibv_device* device = list.get()[i];
    if (name != device->name)
      continue;
    if (!libraries.direct->is_supported(device))
      throw Error(ExitCode::unavailable, "mlx5 device", "open", "not a device of the mlx5 driver",
                  "set SHMEMCTL_TRANSPORT=ibrc or SHMEMCTL_MLX5_DEVICE=emulated",
                  {{}, {}, name, port});
    return std::make_unique<DevxHca>(libraries.verbs, libraries.direct, device, port, settings);
  }
  throw Error(ExitCode::unavailable, "mlx5 device", "open", "no such device",
              "name one of /sys/class/infiniband in SHMEMCTL_HCA_LIST", {{}, {}, name, port});
}

std::vector<std::string> devx_devices(const DevxSettings& settings, std::string& why) {
  const std::optional<DirectLibraries> libraries = load(settings, why);
  if (!libraries)
    return {};
  std::vector<std::string> names = devx_devices(*libraries);
  if (names.empty())
    why = "there is no device of the mlx5 family";
  return names;
}

std::unique_ptr<Hca> open_devx_hca(const std::string& device, int port,
                                   const DevxSettings& settings) {
  std::string why;
  const std::optional<DirectLibraries> libraries = load(settings, why);
  if (!libraries)
    throw Error(ExitCode::unavailable, "mlx5 device", "open", why,
                "install rdma-core 32 or later (libibverbs1, ibverbs-providers), or set "
                "SHMEMCTL_MLX5_DEVICE=emulated",
                {{}, {}, device, port});
  return open_devx_hca(*libraries, device, port, settings);
}

} // namespace shmemctl::mlx5
