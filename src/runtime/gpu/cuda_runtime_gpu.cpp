#include "src/runtime/gpu/cuda_runtime_gpu.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/cuda_release.h"
#include "src/base/log.h"
#include "src/base/round_up.h"
#include "src/runtime/gpu/cuda_host_copies.h"
#include "src/runtime/gpu/cuda_kernel_memory.h"
#include "src/runtime/gpu/cuda_stream_wait.h"
#include "src/runtime/gpu/wait_error_text.h"

namespace shmemctl {

namespace {

/// wait() waits this much longer than kernels do (timeout_s_), so that a kernel's report, which
/// says more, arrives first.
constexpr double extra_timeout_s = 2;
constexpr std::size_t teams_bytes = sizeof(TeamState) * limits::max_teams;

} // namespace

CudaGpuRuntime::CudaGpuRuntime(std::shared_ptr<const cuda::Device> device, GpuSetup setup)
    : device_(std::move(device)), setup_(std::move(setup)), stream_(device_), copy_stream_(device_),
      memory_(device_, setup_,
              choose_gpu_heap(setup_.options->text("HEAP"), setup_.capabilities_by_pe,
                              *setup_.placement)
                  .kind),
      copies_(device_, setup_.word_atomics ? setup_.word_atomics : make_kernel_word_atomics(),
              *setup_.health, setup_.timeout_s),
      user_buffers_(device_, setup_.placement->pe, *setup_.health, setup_.timeout_s),
      report_(device_, sizeof(WaitReport)),
      deltas_(device_, setup_.capabilities_by_pe.size() * (2 * sizeof(std::int64_t) + 1)),
      timeout_s_(setup_.timeout_s) {
  describe();
  choose_paths();
  store_deltas();
  make_heap();
  if (setup_.options->boolean("CHECK"))
    pending_ = std::make_unique<KernelArray<PendingTransfers>>(make_cuda_kernel_memory(device_), 1);
  device_->require(device_->call().ctx_set_current(device_->context()), "make its context current");
  log(LogLevel::info, "gpu",
      fmt::format("PE {}: {} ({}, {}), heap of kind {}: {}", setup_.placement->pe, device_->text(),
                  info_.name, info_.pci_address, info_.heap_kind, info_.heap_reason));
  if (setup_.placement->pe == 0 && loses_atomics())
    log(LogLevel::warning, "gpu",
        "the heap is host memory, on which atomics of several GPUs may lose updates of a word "
        "(CUDA names no native atomics there): set SHMEMCTL_HEAP=auto for a heap in GPU memory");
}

CudaGpuRuntime::~CudaGpuRuntime() {
  release_kernels();
  device_->call().ctx_set_current(nullptr);
}

void CudaGpuRuntime::describe() {
  const cuda::DeviceInfo& info = device_->info();
  info_.device = info.ordinal;
  info_.pes_on_device = pes_on_device(setup_.capabilities_by_pe, *setup_.placement);
  info_.name = info.name;
  info_.pci_address = info.pci_address;
  info_.uuid = info.uuid;
  info_.heap_kind = memory_.kind();
  info_.heap_reason =
      choose_gpu_heap(setup_.options->text("HEAP"), setup_.capabilities_by_pe, *setup_.placement)
          .reason;
  if (info_.heap_kind == "host" && !info.host_atomics)
    info_.heap_reason += "; CUDA names no native atomics of this GPU on host memory, so atomics of "
                         "different GPUs, or of a GPU and a CPU, on one word may lose updates";
  info_.multiprocessors = info.multiprocessors;
  info_.memory_GBps = info.memory_GBps;
  info_.cooperative_launch = info.cooperative_launch;
  info_.stream_operations = info.stream_operations;
  info_.no_kernels = why_no_kernels(device_->driver().version(), CUDA_VERSION);
}

/// Whether kernels of several GPUs may change words of one heap, with atomics that are atomic only
/// among those of one GPU.
bool CudaGpuRuntime::loses_atomics() const {
  if (info_.heap_kind != "host" || device_->info().host_atomics)
    return false;
  const std::vector<std::string>& why_not = memory_.why_not_mapped();
  const auto me = static_cast<std::size_t>(setup_.placement->pe);
  for (std::size_t pe = 0; pe < why_not.size(); ++pe)
    if (why_not[pe].empty() &&
        setup_.capabilities_by_pe[pe].uuid != setup_.capabilities_by_pe[me].uuid)
      return true;
  return false;
}

void CudaGpuRuntime::choose_paths() {
  const std::string wanted = setup_.options->text("DEVICE_PATH");
  const auto me = static_cast<std::size_t>(setup_.placement->pe);
  const std::vector<std::string>& why_not = memory_.why_not_mapped();
  for (std::size_t pe = 0; pe < why_not.size(); ++pe) {
    KernelPath route{DevicePath::load_store, ""};
    if (pe == me)
      route.reason = "its own memory";
    else if (!why_not[pe].empty())
      route = {DevicePath::none, why_not[pe]};
    else if (wanted == "proxy" || wanted == "ibgda")
      route = {DevicePath::none, "SHMEMCTL_DEVICE_PATH=" + wanted + " asks for a network"};
    else if (memory_.is_host_memory())
      route.reason = "host memory that both GPUs map";
    else if (setup_.capabilities_by_pe[pe].uuid == setup_.capabilities_by_pe[me].uuid)
      route.reason = "memory of the same GPU";
    else if (setup_.placement->hosts[pe].machine_id != setup_.placement->hosts[me].machine_id)
      route.reason = "memory of another machine of the NVLink domain";
    else
      route.reason = "peer mapping by NVLink or PCIe";
    paths_by_pe_.push_back(std::move(route));
  }
}

/// Called once: the deltas do not change, because parts grow without moving.
void CudaGpuRuntime::store_deltas() {
  const std::size_t n_pes = paths_by_pe_.size();
  std::vector<std::int64_t>& deltas = deltas_here_;
  deltas.assign(2 * n_pes, DeviceJob::unreachable);
  const auto delta_of = [](const GpuRegion& region, std::size_t pe) {
    return reinterpret_cast<std::int64_t>(region.part_of(static_cast<int>(pe))) -
           reinterpret_cast<std::int64_t>(region.base());
  };
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    if (paths_by_pe_[pe].path != DevicePath::load_store)
      continue;
    deltas[pe] = delta_of(memory_.heap(), pe);
    deltas[n_pes + pe] = delta_of(memory_.cells(), pe);
  }
  const std::size_t deltas_bytes = deltas.size() * sizeof deltas[0];
  cuda::copy_now(copy_stream_, deltas_.data(), deltas.data(), deltas_bytes);
  std::vector<std::uint8_t> paths;
  for (const KernelPath& route : paths_by_pe_)
    paths.push_back(static_cast<std::uint8_t>(route.path));
  cuda::copy_now(copy_stream_, deltas_.data() + deltas_bytes, paths.data(), n_pes);
}

void CudaGpuRuntime::make_heap() {
  SymmetricHeap::Config config;
  config.limit_bytes = memory_.heap().stride_bytes();
  config.chunk_bytes = std::min<std::size_t>(
      config.limit_bytes,
      round_up(static_cast<std::size_t>(setup_.options->size_bytes("HEAP_CHUNK")), 2u << 20));
  config.checked = setup_.options->boolean("CHECK");
  config.timeout_s = setup_.timeout_s;
  config.pe = setup_.placement->pe;
  heap_ = std::make_unique<SymmetricHeap>(config, memory_.heap(), setup_.hooks.agreement);
  heap_bytes_ = memory_.heap().size_bytes();
}

DeviceJob CudaGpuRuntime::job() const {
  DeviceJob job{};
  job.pe = setup_.placement->pe;
  job.n_pes = setup_.placement->n_pes;
  GpuMemory& memory = const_cast<GpuMemory&>(memory_);
  job.heap = memory.heap().base();
  job.heap_bytes = heap_bytes_;
  const auto* deltas = reinterpret_cast<const std::int64_t*>(deltas_.data());
  job.heap_delta_bytes = deltas;
  job.team_flags_delta_bytes = deltas + paths_by_pe_.size();
  set_param_deltas(job, deltas_here_.data(), deltas_here_.data() + paths_by_pe_.size());
  job.cells = reinterpret_cast<DeviceTeamFlags*>(memory.cells().base());
  job.teams = reinterpret_cast<const TeamState*>(mirror_->data());
  job.members = reinterpret_cast<const std::int32_t*>(mirror_->data() + teams_bytes);
  const auto maps = [](const KernelPath& route) { return route.path == DevicePath::load_store; };
  if (network_)
    job.network = network_->network();
  else if (!std::all_of(paths_by_pe_.begin(), paths_by_pe_.end(), maps))
    job.network.path_of_pe =
        reinterpret_cast<const std::uint8_t*>(deltas + 2 * paths_by_pe_.size());
  job.report = &report();
  job.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
  job.pending = pending_ ? pending_->data() : nullptr;
  job.checked = setup_.options->boolean("CHECK") ? 1 : 0;
  return job;
}

std::vector<std::int64_t> CudaGpuRuntime::heap_delta_bytes() const {
  return {deltas_here_.begin(),
          deltas_here_.begin() + static_cast<std::ptrdiff_t>(paths_by_pe_.size())};
}

void CudaGpuRuntime::publish_heap() {
  setup_.hooks.publish(memory_.view(region::gpu_heap));
  if (network_)
    network_->refresh(host_ranges());
}

/// This PE's memory that transports can access; empty if the heap is GPU memory.
std::vector<HostRange> CudaGpuRuntime::host_ranges() const {
  std::vector<HostRange> ranges;
  if (memory_.is_host_memory())
    for (const RegionView& view : views())
      ranges.push_back({view.base, view.size_bytes});
  return ranges;
}

void CudaGpuRuntime::use_network(DeviceNetworkInputs inputs) {
  inputs.pe = setup_.placement->pe;
  inputs.n_pes = setup_.placement->n_pes;
  inputs.wanted = setup_.options->text("DEVICE_PATH");
  for (std::size_t pe = 0; pe < paths_by_pe_.size(); ++pe) {
    const std::string& why_not = memory_.why_not_mapped()[pe];
    inputs.mapped.push_back(why_not.empty());
    inputs.mapped_reason.push_back(why_not.empty() ? paths_by_pe_[pe].reason : why_not);
  }
  if (memory_.is_host_memory())
    inputs.reachable = DeviceNetworkInputs::Reachable::host_memory;
  else
    inputs.unreachable_reason = // used unless the caller has set `reachable` to `all`
        fmt::format("the heap is GPU memory ({}), and transports reach that of the host only: set "
                    "SHMEMCTL_HEAP=host",
                    memory_.kind());
  inputs.host_memory = host_ranges();
  inputs.health = setup_.health;
  inputs.memory = make_cuda_kernel_memory(device_);
  network_ = std::make_unique<DeviceNetworkPart>(std::move(inputs));
  paths_by_pe_ = network_->paths_by_pe();
}

std::shared_ptr<CopyEngine> CudaGpuRuntime::agent_copies() {
  return std::make_shared<CudaCopyEngine>(
      device_, setup_.word_atomics ? setup_.word_atomics : make_kernel_word_atomics(),
      *setup_.health, setup_.timeout_s);
}

void CudaGpuRuntime::finish() {
  if (network_)
    network_->stop();
}

void CudaGpuRuntime::leave_network() noexcept {
  release_kernels();
  network_.reset();
}

void* CudaGpuRuntime::allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  const std::lock_guard lock(heap_mutex_);
  void* address = nullptr;
  setup_.hooks.announcing([&] {
    const std::size_t before = memory_.heap().size_bytes();
    address = heap_->allocate(size_bytes, alignment_bytes);
    if (memory_.heap().size_bytes() != before)
      publish_heap();
    heap_bytes_ = memory_.heap().size_bytes();
    if (size_bytes > 0)
      setup_.hooks.barrier();
  });
  return address;
}

void CudaGpuRuntime::free(void* address) {
  const std::lock_guard lock(heap_mutex_);
  setup_.hooks.announcing([&] {
    setup_.hooks.barrier(); // no PE may still use the released memory
    heap_->free(address);
  });
}

/// The size of the first part of the range that one call of the driver accepts. A heap in host
/// memory is registered with the driver in pieces as it grows, and the driver accepts no range that
/// extends beyond a registration.
std::size_t CudaGpuRuntime::contiguous_bytes(const void* at, std::size_t size_bytes) const {
  if (!memory_.is_host_memory())
    return size_bytes;
  const std::size_t into = reinterpret_cast<std::uintptr_t>(at) % GpuMemory::granularity_bytes;
  return std::min(size_bytes, GpuMemory::granularity_bytes - into);
}

void CudaGpuRuntime::copy(void* to, const void* from, std::size_t size_bytes) {
  const std::lock_guard lock(copy_mutex_);
  for (std::size_t done = 0, more = 0; done < size_bytes; done += more) {
    auto* const target = static_cast<std::byte*>(to) + done;
    const auto* const source = static_cast<const std::byte*>(from) + done;
    more = contiguous_bytes(target, contiguous_bytes(source, size_bytes - done));
    cuda::copy_now(copy_stream_, target, source, more);
  }
}

void CudaGpuRuntime::fill(void* at, int byte, std::size_t size_bytes) {
  const std::lock_guard lock(copy_mutex_);
  for (std::size_t done = 0, more = 0; done < size_bytes; done += more) {
    auto* const target = static_cast<std::byte*>(at) + done;
    more = contiguous_bytes(target, size_bytes - done);
    cuda::fill_now(copy_stream_, target, byte, more);
  }
}

std::unique_ptr<HostCopies> CudaGpuRuntime::make_host_copies(std::size_t host_bytes) {
  return std::make_unique<CudaHostCopies>(device_, stream_, host_bytes);
}

void CudaGpuRuntime::wait(GpuStream stream, const char* step) {
  const Deadline deadline =
      Deadline::after(std::chrono::duration<double>(timeout_s_ + extra_timeout_s));
  Where where;
  where.pe = setup_.placement->pe;
  const auto on_check = [this] {
    setup_.health->check();
    check();
  };
  bool done = false;
  try {
    done = wait_for_stream(*device_, static_cast<CUstream>(stream), deadline, on_check, where);
  } catch (...) {
    check(); // a kernel that reports a mistake goes on and may fault: its report is the cause
    release_kernels();
    throw;
  }
  check();
  if (done)
    return;
  release_kernels();
  where.device = device_->text();
  throw timeout_error(*device_, step, "finish",
                      fmt::format("timed out: the stream of {} ({}) is not complete",
                                  device_->text(), info_.pci_address),
                      where);
}

void CudaGpuRuntime::check() {
  std::atomic_ref state(report().state);
  if (state.load(std::memory_order_acquire) == WaitReport::written && !released_)
    throw_report();
  if (network_)
    network_->check();
}

void CudaGpuRuntime::throw_report() const {
  const WaitReport& seen = report();
  if (network_ && is_of_network(seen.kind))
    throw network_->error_of(seen);
  Where where;
  where.pe = setup_.placement->pe;
  where.device = device_->text();
  const bool is_known = seen.peer >= 0 && static_cast<std::size_t>(seen.peer) < paths_by_pe_.size();
  const WaitErrorText words =
      describe_wait(seen, setup_.placement->pe, timeout_s_.load(),
                    is_known ? paths_by_pe_[static_cast<std::size_t>(seen.peer)].reason : "");
  const std::string thread =
      is_of_call(seen.kind) ? fmt::format(", thread {}", seen.thread) : std::string();
  throw Error(words.code,
              fmt::format("kernel of {} ({}), block {}{}", device_->text(), info_.pci_address,
                          seen.block, thread),
              words.attempted, words.message, words.fix, where);
}

void CudaGpuRuntime::release_kernels() noexcept {
  std::atomic_ref state(report().state);
  std::uint64_t none = WaitReport::none;
  if (!state.compare_exchange_strong(none, WaitReport::being_written))
    return;
  released_ = true;
  report().peer = -1;
  state.store(WaitReport::written, std::memory_order_release);
}

std::vector<RegionView> CudaGpuRuntime::views() const {
  return {memory_.view(region::gpu_heap), memory_.view(region::gpu_team_flags)};
}

/// Runs within each change of the state. Zeroes the flags of destroyed teams: all members have left
/// the last sync of such a team, and none reuses its slot before this PE agrees.
void CudaGpuRuntime::mirror(const State& state) {
  const std::lock_guard lock(mirror_mutex_);
  const std::size_t lists_bytes = state.members_capacity * sizeof(std::int32_t);
  if (!mirror_)
    mirror_ = std::make_unique<cuda::DeviceBuffer>(device_, teams_bytes + lists_bytes);
  auto* cells = reinterpret_cast<DeviceTeamFlags*>(memory_.cells().base());
  for (std::size_t team = 0; team < was_in_use_.size(); ++team) {
    const bool in_use = state.teams[team].in_use != 0;
    if (was_in_use_[team] && !in_use)
      fill(cells + team, 0, sizeof *cells);
    was_in_use_[team] = in_use;
  }
  copy(mirror_->data(), state.teams, teams_bytes);
  copy(mirror_->data() + teams_bytes, members_of(&state), lists_bytes);
}

} // namespace shmemctl
