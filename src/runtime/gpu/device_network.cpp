#include "src/runtime/gpu/device_network.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/deadline.h"
#include "src/runtime/gpu/device_queues.h"
#include "src/runtime/gpu/kernel_proxy.h"
#include "transports/ibgda/ibgda.h"
#include "transports/mlx5/syndrome_text.h"

namespace shmemctl {

ibgda::IbgdaTransport* find_ibgda(const std::vector<Transport*>& transports) {
  for (Transport* transport : transports)
    if (auto* found = dynamic_cast<ibgda::IbgdaTransport*>(transport);
        found && found->has_kernel_qp_sets())
      return found;
  return nullptr;
}

struct DeviceNetworkPart::Impl {
  explicit Impl(DeviceNetworkInputs wanted)
      : inputs(std::move(wanted)), ranges(inputs.host_memory) {
    paths_by_pe.resize(static_cast<std::size_t>(inputs.n_pes));
    if (inputs.ibgda && (is_host_memory() || inputs.no_ibgda_gpu_memory.empty()))
      queues = std::make_unique<DeviceQueues>(*inputs.ibgda, inputs.memory, inputs.n_pes);
    for (std::size_t pe = 0; pe < paths_by_pe.size(); ++pe)
      paths_by_pe[pe] = choose(pe);
    const auto uses = [&](DevicePath path) {
      return std::any_of(paths_by_pe.begin(), paths_by_pe.end(),
                         [&](const KernelPath& gpu_path) { return gpu_path.path == path; });
    };
    if (!uses(DevicePath::ibgda))
      queues.reset();
    if (uses(DevicePath::proxy))
      make_proxy();
    if (!uses(DevicePath::proxy) && !uses(DevicePath::ibgda) && !uses(DevicePath::none))
      return;
    std::vector<std::uint8_t> paths;
    for (const KernelPath& path : paths_by_pe)
      paths.push_back(static_cast<std::uint8_t>(path.path));
    path_of_pe.emplace(inputs.memory, paths);
  }

  bool is_host_memory() const {
    return inputs.reachable == DeviceNetworkInputs::Reachable::host_memory;
  }
  bool wants_queues() const { return inputs.wanted == "ibgda" || inputs.prefer_ibgda; }

  KernelPath choose(std::size_t pe) const {
    const bool is_mapped = inputs.mapped[pe];
    const bool by_network = inputs.wanted == "proxy" || inputs.wanted == "ibgda";
    if (is_mapped && (!by_network || static_cast<int>(pe) == inputs.pe))
      return {DevicePath::load_store, inputs.mapped_reason[pe]};
    const std::string why =
        is_mapped ? "SHMEMCTL_DEVICE_PATH=" + inputs.wanted : inputs.mapped_reason[pe];
    if (inputs.wanted == "p2p")
      return {DevicePath::none, why + ", and SHMEMCTL_DEVICE_PATH=p2p allows nothing else"};
    Transport* const transport = inputs.transports_by_pe[pe];
    if (!transport) // checked first: another kind of heap would not help
      return {DevicePath::none, why + ", and no transport reaches it"};
    if (inputs.reachable == DeviceNetworkInputs::Reachable::nothing)
      return {DevicePath::none, why + "; no network: " + inputs.unreachable_reason};
    if (wants_queues() && queues && queues->reaches(static_cast<int>(pe)))
      return {DevicePath::ibgda, why + ": queues of " +
                                     inputs.ibgda->connection(static_cast<int>(pe)) +
                                     (is_host_memory() ? "" : "; " + inputs.ibgda_gpu_memory_path)};
    const std::string no_queues = wants_queues() ? why_no_queues(pe) : "";
    return {DevicePath::proxy,
            why + (no_queues.empty() ? "" : ", " + no_queues) + ": proxy over " +
                (inputs.gpu_memory_path.empty() ? transport->name() : inputs.gpu_memory_path)};
  }

  /// Why kernels do not post to an HCA themselves although the options request it.
  std::string why_no_queues(std::size_t pe) const {
    if (!inputs.ibgda)
      return "but ibgda is not among the job's transports";
    if (!is_host_memory() && !inputs.no_ibgda_gpu_memory.empty())
      return "but " + inputs.no_ibgda_gpu_memory;
    return queues && queues->reaches(static_cast<int>(pe)) ? "" : "but ibgda has no queue to it";
  }

  void make_proxy() {
    std::vector<Transport*> below = inputs.transports_by_pe;
    if (is_host_memory())
      for (Transport*& transport : below)
        transport = transport ? host_staged(*transport) : nullptr;
    proxy = std::make_unique<KernelProxy>(std::move(below), *inputs.health, inputs.proxy,
                                          inputs.memory);
  }
  Transport* host_staged(Transport& below) {
    const auto found =
        std::find_if(staged_transports.begin(), staged_transports.end(),
                     [&](const auto& made) { return &made->for_host_memory() == &below; });
    if (found != staged_transports.end())
      return found->get();
    staged_transports.push_back(
        std::make_unique<HostStagedTransport>(below, ranges, inputs.memory));
    return staged_transports.back().get();
  }

  DeviceNetworkInputs inputs;
  HostRanges ranges;
  std::vector<KernelPath> paths_by_pe;
  std::vector<std::unique_ptr<HostStagedTransport>> staged_transports;
  mutable std::mutex mutex; ///< guards `queues`
  std::unique_ptr<DeviceQueues> queues;
  std::unique_ptr<KernelProxy> proxy;
  std::optional<KernelArray<std::uint8_t>> path_of_pe;
};

DeviceNetworkPart::DeviceNetworkPart(DeviceNetworkInputs inputs)
    : impl_(std::make_unique<Impl>(std::move(inputs))) {}

DeviceNetworkPart::~DeviceNetworkPart() = default;

DeviceNetwork DeviceNetworkPart::network() const {
  DeviceNetwork network{};
  if (impl_->path_of_pe)
    network.path_of_pe = impl_->path_of_pe->data();
  if (impl_->proxy)
    impl_->proxy->describe(network);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->queues)
    impl_->queues->describe(network);
  return network;
}

const std::vector<KernelPath>& DeviceNetworkPart::paths_by_pe() const {
  return impl_->paths_by_pe;
}

void DeviceNetworkPart::refresh(const std::vector<HostRange>& host_memory) {
  impl_->ranges.set(host_memory);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->queues)
    impl_->queues->refresh();
}

void DeviceNetworkPart::check() {
  if (impl_->proxy)
    impl_->proxy->check();
}

void DeviceNetworkPart::stop() {
  if (impl_->proxy)
    impl_->proxy->stop();
}

// The Errors for reports of kernels.

namespace {

struct ReportText {
  ExitCode code;
  std::string attempted, message, fix;
};

ReportText waited(const std::string& attempted, const std::string& message) {
  return {ExitCode::deadline, attempted, "timed out: " + message,
          "check the output of that PE and this process's proxy threads, if it has any, or " +
              raise_timeout()};
}

/// The wait is for another thread of this PE.
ReportText waited_here(const std::string& attempted, const std::string& message) {
  return {ExitCode::deadline, attempted, "timed out: " + message,
          "check what this PE's kernels do: a thread of theirs may have ended too early, or " +
              raise_timeout()};
}

ReportText describe_wait_report(const WaitReport& report) {
  switch (report.kind) {
  case WaitKind::fifo_room:
    return waited("post to the proxy FIFO",
                  fmt::format("{} requests are complete, and request {} has no slot", report.seen,
                              report.expected));
  case WaitKind::fifo_result:
    return waited("get a result slot of the proxy",
                  fmt::format("all {} slots are in use", report.expected));
  case WaitKind::fifo_reply:
    return waited("receive the proxy's result",
                  fmt::format("result {} is missing", report.expected));
  case WaitKind::fifo_closed:
    return {ExitCode::unavailable, "post a request to the proxy", "the proxy has been stopped",
            "wait for all kernels before the runtime ends (shmem_finalize)"};
  case WaitKind::fifo_failed:
    return {ExitCode::unavailable, "perform a request", "the proxy has failed",
            "check the first error of this PE"};
  case WaitKind::qp_publish_turn:
    return waited_here("post to the QP", "another thread of this PE's kernels, which posts to the "
                                         "same QP, has not published its WQEs or not rung the "
                                         "doorbell");
  case WaitKind::qp_room:
    return waited("post to the QP",
                  fmt::format("the send queue has no room for WQE {}; those before {} are complete",
                              report.expected, report.seen));
  case WaitKind::qp_result:
    return waited("get a result slot of the QP",
                  fmt::format("all {} slots are in use", report.expected));
  case WaitKind::qp_completion:
    return waited(
        "complete the operations of the QP",
        fmt::format("WQE {} is not complete; those before {} are", report.expected, report.seen));
  case WaitKind::qp_failed: {
    const auto failure = mlx5::Failure::from_word(report.seen);
    if (mlx5::is_no_atomics(failure))
      return {ExitCode::unavailable, "perform an atomic",
              "the NIC on one side does not support atomics of that size",
              "set SHMEMCTL_DEVICE_PATH=proxy, SHMEMCTL_TRANSPORT=ibrc and "
              "SHMEMCTL_IB_ATOMICS=message, or enable atomics on the NIC (firmware setting "
              "PCI_ATOMIC_MODE)"};
    const mlx5::SyndromeText text = mlx5::syndrome_text(failure.syndrome);
    return {ExitCode::unavailable, "complete a WQE",
            fmt::format("{} (syndrome {:#04x}, vendor {:#04x}) at WQE {}", text.status,
                        failure.syndrome, failure.vendor_syndrome, failure.index),
            text.fix};
  }
  case WaitKind::not_registered:
    return {ExitCode::unavailable, "transfer data",
            fmt::format("offset {} of region {} is not registered there", report.offset_bytes,
                        report.expected),
            "use symmetric memory of that PE"};
  default:
    return {ExitCode::unavailable, "transfer data", "kernels have no path to it",
            "run shmemctl bringup to see which PEs can reach each other"};
  }
}

} // namespace

Error DeviceNetworkPart::error_of(const WaitReport& report) const {
  if (impl_->proxy)
    try {
      impl_->proxy->check();
    } catch (const Error& error) {
      return error;
    }
  const ReportText words = describe_wait_report(report);
  const std::string whom = report.peer < 0 ? "all PEs" : "PE " + std::to_string(report.peer);
  std::string reason;
  if (report.peer >= 0 && static_cast<std::size_t>(report.peer) < impl_->paths_by_pe.size())
    reason = " (" + impl_->paths_by_pe[static_cast<std::size_t>(report.peer)].reason + ")";
  Where where;
  where.pe = impl_->inputs.pe;
  return {words.code,
          "kernel, block " + std::to_string(report.block),
          words.attempted + " for " + whom,
          words.message + reason,
          words.fix,
          where};
}

} // namespace shmemctl
