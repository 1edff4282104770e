// The phase that gives a PE its GPU, and the transports for GPU memory.
#include <algorithm>

#include "src/base/log.h"
#include "src/base/round_up.h"
#include "src/runtime/exchange.h"
#include "src/runtime/gpu/gpu_direct.h"
#include "src/runtime/gpu/per_pe_transport.h"
#include "src/runtime/proxy/proxy.h"
#include "src/runtime/runtime_impl.h"
#include "transports/gpudirect/gpudirect.h"
#include "transports/ibgda/ibgda.h"
#include "transports/p2p/p2p.h"
#include "transports/staged/staged.h"

namespace shmemctl {

/// The PEs of a machine, also of different virtual nodes, get its devices in turn, unless the
/// program or GPUS names them. GPUS uses `topo`'s numbers, the program CUDA's.
std::unique_ptr<OpenedGpu> Runtime::Impl::open_my_gpu(std::string& why) const {
  if (options.text("HEAP") == "none") {
    why = "SHMEMCTL_HEAP=none";
    return nullptr;
  }
  const auto me = static_cast<std::size_t>(placement.pe);
  const auto machine_pe = static_cast<std::size_t>(std::count_if(
      placement.hosts.begin(), placement.hosts.begin() + placement.pe,
      [&](const PeHost& host) { return host.machine_id == placement.hosts[me].machine_id; }));
  GpuPreference preference;
  preference.device = request.gpu_device;
  preference.machine_pe = static_cast<int>(machine_pe);
  if (const std::vector<int>& gpus = wanted_mapping.gpus;
      options.value("GPUS").set() && !gpus.empty()) {
    const Gpu& named = node.gpus.at(static_cast<std::size_t>(gpus[machine_pe % gpus.size()]));
    if (named.pci >= 0)
      preference.pci_address = to_string(node.pci.at(static_cast<std::size_t>(named.pci)).address);
  }
  return open_gpu(options, preference, why);
}

GpuHooks Runtime::Impl::gpu_hooks() {
  GpuHooks hooks;
  hooks.announcing = [this](const std::function<void()>& step) {
    const std::lock_guard lock(mutex);
    announcing(step);
  };
  hooks.barrier = [this] { barrier(); };
  hooks.gather = [this](const std::string& text) {
    const std::lock_guard lock(bootstrap_mutex);
    return allgather_text(*bootstrap, text, deadline());
  };
  hooks.publish = [this](const RegionView& region) { publish(region); };
  hooks.agreement = make_agreement();
  return hooks;
}

void Runtime::Impl::enter_gpu() {
  std::string why;
  std::unique_ptr<OpenedGpu> opened = open_my_gpu(why);
  GpuCapabilities own_capabilities;
  own_capabilities.reason = why;
  if (opened)
    own_capabilities = opened->capabilities();
  GpuSetup setup;
  setup.capabilities_by_pe =
      allgather_archived(*bootstrap, own_capabilities, "GPU capabilities", deadline());
  no_gpu_reason = why_no_gpus(setup.capabilities_by_pe, placement);
  if (!no_gpu_reason.empty() && request.gpu == GpuUse::required)
    throw Error(ExitCode::unavailable, "GPUs", "assign one to each PE", no_gpu_reason,
                "set SHMEMCTL_HEAP=auto if it is none; else run shmemctl doctor --only driver,gpu");
  if (!no_gpu_reason.empty())
    return;
  if (const std::string why_not = why_no_kernels_of_job(setup.capabilities_by_pe, placement);
      request.kernels && !why_not.empty())
    throw Error(ExitCode::unavailable, "kernels of this job", "launch", why_not,
                install_driver_for_kernels());
  setup.options = &options;
  setup.placement = &placement;
  setup.mappable_pes = shared_pes;
  setup.secret = secret;
  setup.health = failure_detector.get();
  if (options.text("HEAP") == "host") {
    HostBackingOptions wanted = backing_options();
    wanted.numa_node = choose_heap_node();
    setup.host_backing = make_host_backing(wanted);
  }
  setup.hooks = gpu_hooks();
  setup.word_atomics = request.word_atomics;
  setup.timeout_s = timeout_s;
  setup.heap_grows = request.gpu_heap_grows;
  gpu = make_gpu_runtime(std::move(opened), std::move(setup));
}

void Runtime::Impl::undo_gpu() {
  if (gpu)
    gpu->leave_network();
  // Before the transports are destroyed, because the emulated HCA executes operations through them.
  for (const int region : {region::gpu_heap, region::gpu_team_flags}) {
    if (ibgda_gpu)
      ibgda_gpu->drop_device_region(region);
    if (gpu_network)
      gpu_memory_user().drop_device_region(region);
  }
  gpu_direct = nullptr;
  staged = nullptr;
  gpu_transports.clear();
  ibgda_gpu = nullptr;
  gpu_network.reset();
  gpu.reset();
}

std::vector<Transport*> Runtime::Impl::make_gpu_transports() {
  if (gpu->is_host_memory())
    return transports_by_pe();
  std::vector<std::string> why_not(count());
  const RegionView heap_view = gpu->views().front();
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (!heap_view.mapped[pe])
      why_not[pe] = gpu->paths_by_pe()[pe].reason;
  gpu_transports.push_back(make_p2p_transport(gpu->copies(), std::move(why_not)));
  std::vector<Transport*> by_network(count(), nullptr);
  if (need_gpu_network(heap_view)) {
    choose_gpu_network(heap_view);
    choose_ibgda_gpu();
    make_staged();
    if (gpu_network)
      make_gpu_direct();
    by_network = gpu_network_inputs().transports_by_pe;
  }
  for (std::size_t pe = 0; pe < count(); ++pe)
    if (heap_view.mapped[pe])
      by_network[pe] = gpu_transports.front().get();
  return by_network;
}

bool Runtime::Impl::need_gpu_network(const RegionView& heap_view) {
  const std::string wanted = options.text("DEVICE_PATH");
  const std::vector<Transport*> base = transports_by_pe();
  bool needs_network = wanted == "proxy" || wanted == "ibgda";
  for (std::size_t pe = 0; pe < count(); ++pe)
    needs_network = needs_network || (base[pe] && !heap_view.mapped[pe]);
  const std::vector<char> all =
      allgather_value(*bootstrap, static_cast<char>(needs_network), deadline());
  return wanted != "p2p" && std::find(all.begin(), all.end(), 1) != all.end();
}

void Runtime::Impl::choose_gpu_network(const RegionView& heap_view) {
  const std::string wanted = options.text("GPUDIRECT");
  const bool by_network = options.text("DEVICE_PATH") != "auto";
  const std::vector<Transport*> base = transports_by_pe();
  std::vector<bool> needed;
  for (std::size_t pe = 0; pe < count(); ++pe)
    needed.push_back(static_cast<int>(pe) != placement.pe && base[pe] &&
                     (by_network || !heap_view.mapped[pe]));
  std::vector<GpuDirectCandidate> candidates;
  for (const TransportEntry& entry : transports) {
    GpuDirectCandidate candidate{entry.transport.get(), {}};
    for (const Reach& reach : entry.reach)
      candidate.reaches.push_back((reach.capabilities & (can_put | can_get)) ==
                                  (can_put | can_get));
    candidates.push_back(std::move(candidate));
  }
  GpuDirectCapabilities own_capabilities;
  if (wanted != "off")
    own_capabilities = try_gpu_direct(candidates, needed, gpu->device_memory(),
                                      gpu->views().back()); // the team flags: of a fixed size
  const std::vector<GpuDirectCapabilities> by_pe =
      allgather_archived(*bootstrap, own_capabilities, "GPUDirect capabilities", deadline());
  const GpuDirectChoice choice = choose_gpu_direct(wanted, by_pe);
  gpu_memory_path = choice.text;
  if (choice.transport >= 0)
    gpu_network = static_cast<std::size_t>(choice.transport);
  if (placement.pe == 0)
    log(LogLevel::info, "gpu", "networks and GPU memory: " + choice.text);
}

ibgda::IbgdaTransport* Runtime::Impl::wanted_ibgda() const {
  std::vector<Transport*> all;
  for (const TransportEntry& entry : transports)
    all.push_back(entry.transport.get());
  return find_ibgda(all);
}

/// The emulated HCA cannot wait for itself, so its staged transfers use the transport below it.
std::vector<Transport*> Runtime::Impl::staging_transports() const {
  std::vector<Transport*> base = transports_by_pe();
  if (ibgda_gpu && ibgda_gpu->carrier())
    std::replace(base.begin(), base.end(), static_cast<Transport*>(ibgda_gpu),
                 ibgda_gpu->carrier());
  return base;
}

std::string Runtime::Impl::why_no_ibgda_gpu(ibgda::IbgdaTransport& ibgda) {
  if (!ibgda.is_connected())
    return "ibgda reaches no other PE";
  if (ibgda.is_emulated()) {
    const std::vector<Transport*> base = transports_by_pe();
    if (!ibgda.carrier() && std::find(base.begin(), base.end(), &ibgda) != base.end())
      return "its HCA is emulated, stages GPU memory, and cannot do that by itself; set "
             "SHMEMCTL_TRANSPORT=shm,ibgda";
    ibgda_gpu_reason = "the emulated HCA stages GPU memory";
    return {};
  }
  if (options.text("GPUDIRECT") == "off")
    return "SHMEMCTL_GPUDIRECT=off";
  if (std::string why = gpu->device_memory()->why_unordered(); !why.empty())
    return why;
  const RegionView sample = gpu->views().back(); // the team flags: of a fixed size
  const DeviceReach reach =
      ibgda.try_device_memory(gpu->device_memory(), sample.base, sample.size_bytes);
  ibgda_gpu_reason = "GPUDirect RDMA by " + reach.method +
                     ", and atomics of the NIC, which are atomic with each other only";
  return reach.method.empty() ? reach.reason : "";
}

void Runtime::Impl::choose_ibgda_gpu() {
  ibgda::IbgdaTransport* const ibgda = wanted_ibgda();
  const std::string own_reason = ibgda ? why_no_ibgda_gpu(*ibgda) : "it has no such transport";
  const std::vector<std::string> all = allgather_text(*bootstrap, own_reason, deadline());
  const auto without =
      std::find_if(all.begin(), all.end(), [](const std::string& why) { return !why.empty(); });
  if (without != all.end()) {
    ibgda_gpu_reason = "PE " + std::to_string(without - all.begin()) + ": " + *without;
    return;
  }
  ibgda_gpu = ibgda;
  for (const int region : {region::gpu_heap, region::gpu_team_flags})
    ibgda_gpu->set_device_region(region, gpu->device_memory());
}

void Runtime::Impl::make_staged() {
  const std::vector<Transport*> base = staging_transports();
  if (options.integer("PROXY_THREADS") > max_proxy_threads - staged_contexts)
    throw Error(ExitCode::usage, "SHMEMCTL_PROXY_THREADS=" + options.text("PROXY_THREADS"), "",
                "too many: the proxy and staged transfers share " +
                    std::to_string(max_proxy_threads) + " contexts, and staged transfers need " +
                    std::to_string(staged_contexts),
                "set SHMEMCTL_PROXY_THREADS to " +
                    std::to_string(max_proxy_threads - staged_contexts) + " or less");
  const auto not_owned = [](const auto*) {};
  StagedSettings settings;
  settings.region = region::staging;
  settings.make_region = [this](int region, std::size_t size_bytes, Exchange& exchange) {
    const std::size_t rounded = round_up(
        size_bytes, std::max<std::size_t>(backing->granularity_bytes(), std::size_t{2} << 20));
    staging = std::make_unique<SymmetricRegion>("staging", rounded, *local_peers, *backing);
    staging->grow(rounded, deadline());
    RegionView made = view(region, *staging);
    register_region(transports_of(region), made, exchange);
    return made;
  };
  settings.below = std::make_shared<PerPeTransport>(base);
  settings.send_context = staged_send_context;
  settings.agent_context = staged_agent_context;
  settings.copies = std::shared_ptr<CopyEngine>(&gpu->copies(), not_owned);
  settings.agent_copies = gpu->agent_copies();
  if (gpu_network || (ibgda_gpu && !ibgda_gpu->is_emulated()))
    settings.written_by_nics = gpu->device_memory();
  auto made = std::make_unique<StagedTransport>(transport_setup(), std::move(settings));
  BootstrapExchange exchange(*bootstrap, deadline());
  made->start(exchange);
  staged = made.get();
  gpu_transports.push_back(std::move(made));
  // Callers of `staged` never use staged_send_context for their own operations, so the emulated HCA
  // can use it there.
  if (ibgda_gpu && ibgda_gpu->is_emulated())
    ibgda_gpu->use_for_gpu_memory(*staged, staged_send_context);
}

/// The cast succeeds because only transports that are a DeviceMemoryUser are chosen.
DeviceMemoryUser& Runtime::Impl::gpu_memory_user() const {
  return dynamic_cast<DeviceMemoryUser&>(*transports[*gpu_network].transport);
}

void Runtime::Impl::make_gpu_direct() {
  for (const int region : {region::gpu_heap, region::gpu_team_flags})
    gpu_memory_user().set_device_region(region, gpu->device_memory());
  GpuDirectSettings settings;
  settings.network = transports[*gpu_network].transport.get();
  settings.staged = staged;
  settings.is_device_memory = [this](const void* address) {
    return gpu->user_buffers().is_gpu_memory(address);
  };
  settings.memory = gpu->device_memory();
  settings.description = gpu_memory_path;
  settings.nics_signal = gpu_memory_user().signals_device_memory();
  auto made = std::make_unique<GpuDirectTransport>(std::move(settings));
  gpu_direct = made.get();
  gpu_transports.push_back(std::move(made));
}

DeviceNetworkInputs Runtime::Impl::gpu_network_inputs() {
  DeviceNetworkInputs inputs;
  inputs.transports_by_pe = transports_by_pe();
  if (staged) {
    Transport* const for_gpu_memory = gpu_direct ? static_cast<Transport*>(gpu_direct) : staged;
    std::replace_if(
        inputs.transports_by_pe.begin(), inputs.transports_by_pe.end(),
        [](const Transport* base) { return base != nullptr; }, for_gpu_memory);
    inputs.gpu_memory_path = gpu_memory_path;
    inputs.reachable = DeviceNetworkInputs::Reachable::all;
  }
  inputs.ibgda = wanted_ibgda();
  inputs.prefer_ibgda = ibgda::kernels_post(options);
  if (staged) {
    inputs.no_ibgda_gpu_memory = ibgda_gpu ? "" : ibgda_gpu_reason;
    inputs.ibgda_gpu_memory_path = ibgda_gpu ? ibgda_gpu_reason : "";
  }
  inputs.proxy = proxy_options(options, placement, cpus_at_start, timeout_s);
  return inputs;
}

std::vector<Transport*> Runtime::Impl::transports_of(int region) const {
  const bool of_gpu = region == region::gpu_heap || region == region::gpu_team_flags;
  std::vector<Transport*> all;
  if (of_gpu && !gpu->is_host_memory()) {
    for (const auto& transport : gpu_transports)
      all.push_back(transport.get());
    if (gpu_network)
      all.push_back(transports[*gpu_network].transport.get());
    if (ibgda_gpu && std::find(all.begin(), all.end(), ibgda_gpu) == all.end())
      all.push_back(ibgda_gpu);
    return all;
  }
  for (const TransportEntry& entry : transports)
    all.push_back(entry.transport.get());
  return all;
}

} // namespace shmemctl
