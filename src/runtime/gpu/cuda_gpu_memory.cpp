#include "src/runtime/gpu/cuda_gpu_memory.h"

#include <algorithm>
#include <cstring>

#include "src/base/round_up.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/runtime/cuda/device.h"
#include "src/runtime/memory/cuda_backing.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl {

namespace {

constexpr std::size_t granularity_bytes = GpuMemory::granularity_bytes;
constexpr std::size_t cells_bytes = sizeof(DeviceTeamFlags) * limits::max_teams;

/// A SymmetricRegion of a group of PEs.
class GroupRegion final : public GpuRegion {
public:
  GroupRegion(const std::string& name, std::size_t stride_bytes, std::vector<int> group,
              LocalPeers& peers, HeapBacking& backing)
      : group_(std::move(group)), region_(name, stride_bytes, peers, backing) {}
  std::byte* base() const override { return region_.base(); }
  std::size_t size_bytes() const override { return region_.size_bytes(); }
  std::size_t stride_bytes() const override { return region_.stride_bytes(); }
  void grow(std::size_t more_bytes, const Deadline& deadline) override {
    region_.grow(more_bytes, deadline);
  }
  std::byte* part_of(int pe) const override {
    const auto found = std::find(group_.begin(), group_.end(), pe);
    return found == group_.end() ? nullptr
                                 : region_.slot_base(static_cast<int>(found - group_.begin()));
  }

private:
  std::vector<int> group_;
  SymmetricRegion region_;
};

Deadline deadline_of(const GpuSetup& setup) {
  return Deadline::after(std::chrono::duration<double>(setup.timeout_s));
}

/// In NVSHMEM the heap of a GPU with virtual memory grows as far as NVSHMEM_MAX_MEMORY_PER_GPU,
/// whose default this is, and NVSHMEM_SYMMETRIC_SIZE does not limit it: NVSHMEM's own programs set
/// that variable to less than they allocate.
constexpr std::size_t growing_heap_bytes = std::size_t{128} << 30;

/// The address space to reserve for the heap of each PE.
std::size_t heap_limit_bytes(const GpuSetup& setup, const std::string& kind,
                             std::size_t granularity_bytes) {
  const OptionValue& size = setup.options->value("SYMMETRIC_SIZE");
  const std::size_t limit_bytes = round_up(
      static_cast<std::size_t>(setup.options->size_bytes("SYMMETRIC_SIZE")), granularity_bytes);
  const bool is_set_by_user = size.set() && size.origin != OptionOrigin::nvshmem_environment;
  return setup.heap_grows && !is_set_by_user && kind != "ipc" /* committed at the start */
             ? std::max(limit_bytes, growing_heap_bytes)
             : limit_bytes;
}

} // namespace

GpuMemory::GpuMemory(std::shared_ptr<const cuda::Device> device, GpuSetup& setup, std::string kind)
    : device_(std::move(device)), kind_(std::move(kind)) {
  const std::size_t heap_bytes = heap_limit_bytes(setup, kind_, granularity_bytes);
  if (!is_host_memory())
    device_memory_ = cuda::make_device_memory(device_);
  if (kind_ == "ipc")
    make_of_ipc(setup, heap_bytes);
  else
    make_of_chunks(setup, heap_bytes);
}

GpuMemory::~GpuMemory() = default;

/// A group of PEs that pass each other descriptors, separate from the group for the host's regions;
/// or fabric handles, through the job's allgather.
/// @param what_for a number that keeps this group separate from others with the same secret
std::unique_ptr<LocalPeers> GpuMemory::open_peers(const GpuSetup& setup,
                                                  const std::vector<int>& pes,
                                                  std::uint8_t what_for) const {
  const auto own_slot = std::find(pes.begin(), pes.end(), setup.placement->pe) - pes.begin();
  if (is_fabric())
    return make_gathered_peers(pes, static_cast<int>(own_slot), setup.hooks.gather);
  Secret secret = setup.secret;
  secret[0] ^= what_for;
  return make_local_peers(secret, pes, static_cast<int>(own_slot),
                          [health = setup.health] { health->check(); });
}

std::vector<int> GpuMemory::candidates(const GpuSetup& setup) const {
  if (!is_fabric())
    return setup.mappable_pes;
  const auto me = static_cast<std::size_t>(setup.placement->pe);
  std::vector<int> pes;
  for (std::size_t pe = 0; pe < setup.capabilities_by_pe.size(); ++pe)
    if (setup.capabilities_by_pe[pe].fabric == setup.capabilities_by_pe[me].fabric)
      pes.push_back(static_cast<int>(pe));
  return pes;
}

void GpuMemory::make_of_chunks(GpuSetup& setup, std::size_t heap_bytes) {
  backing_ = kind_ == "host"
                 ? make_cuda_host_backing(device_, std::move(setup.host_backing))
                 : make_cuda_vmm_backing(device_, is_fabric() ? VmmHandles::fabric
                                                              : VmmHandles::descriptors);
  const std::size_t n_pes = setup.capabilities_by_pe.size();
  Matrix why_not(n_pes, std::vector<std::string>(n_pes));
  if (!is_host_memory()) // host memory: any GPU of the machine can map it
    why_not = try_mapping(setup);
  const std::vector<int> group = mapping_group(candidates(setup), why_not, setup.placement->pe);
  explain(setup, why_not, group);
  peers_ = open_peers(setup, group, 2);
  cells_ = std::make_unique<GroupRegion>("gpu cells", cells_bytes, group, *peers_, *backing_);
  cells_->grow(cells_bytes, deadline_of(setup));
  heap_ = std::make_unique<GroupRegion>("gpu heap", heap_bytes, group, *peers_, *backing_);
}

/// Tries the mapping with a small allocation that every PE exports to every other PE.
GpuMemory::Matrix GpuMemory::try_mapping(GpuSetup& setup) {
  const std::size_t n_pes = setup.capabilities_by_pe.size();
  std::vector<std::string> reasons(n_pes);
  {
    const std::vector<int> pes = candidates(setup);
    const auto peers = open_peers(setup, pes, 1);
    reasons = try_vmm_mapping(device_, *backing_, *peers, pes, setup, deadline_of(setup));
  }
  const Placement& placement = *setup.placement;
  const auto me = static_cast<std::size_t>(placement.pe);
  for (std::size_t pe = 0; pe < n_pes; ++pe) // even where fabric handles cross virtual nodes
    if (placement.hosts[pe].machine_id == placement.hosts[me].machine_id &&
        placement.node[pe] != placement.my_node())
      reasons[pe] = "on another virtual node";
  return gather(setup, reasons);
}

GpuMemory::Matrix GpuMemory::gather(GpuSetup& setup,
                                    const std::vector<std::string>& reasons) const {
  constexpr char separator = '\n';
  std::string line;
  for (const std::string& reason : reasons)
    line += reason + separator;
  Matrix all;
  for (const std::string& text : setup.hooks.gather(line)) {
    std::vector<std::string> row = split(text, separator);
    row.resize(reasons.size());
    all.push_back(std::move(row));
  }
  return all;
}

void GpuMemory::make_of_ipc(GpuSetup& setup, std::size_t heap_bytes) {
  const int pe = setup.placement->pe;
  const std::size_t n_pes = setup.capabilities_by_pe.size();
  const cuda::Stream stream(device_);
  auto cells = std::make_unique<IpcRegion>("gpu cells", device_, stream,
                                           round_up(cells_bytes, granularity_bytes), pe, n_pes);
  const std::vector<std::string> handles = setup.hooks.gather(cells->handle());
  std::vector<std::string> reasons(n_pes);
  for (const int peer : setup.mappable_pes) {
    std::string& reason = reasons[static_cast<std::size_t>(peer)];
    reason =
        why_no_peer_access(*device_, setup.capabilities_by_pe[static_cast<std::size_t>(peer)].uuid);
    if (peer == pe || !reason.empty())
      continue;
    try {
      cells->open(peer, handles[static_cast<std::size_t>(peer)]);
    } catch (const Error& error) {
      reason = error.message();
    }
  }
  const Matrix why_not = gather(setup, reasons);
  std::vector<int> mapped;
  for (const int peer : setup.mappable_pes) {
    const auto me = static_cast<std::size_t>(pe), other = static_cast<std::size_t>(peer);
    if (why_not[me][other].empty() && why_not[other][me].empty())
      mapped.push_back(peer);
    else
      cells->close(peer);
  }
  explain(setup, why_not, mapped);
  auto heap = std::make_unique<IpcRegion>("gpu heap", device_, stream, heap_bytes, pe, n_pes);
  const std::vector<std::string> heaps = setup.hooks.gather(heap->handle());
  for (const int peer : mapped)
    if (peer != pe)
      heap->open(peer, heaps[static_cast<std::size_t>(peer)]);
  setup.hooks.gather("mapped"); // a barrier: no PE may continue while another PE can still fail
  cells_ = std::move(cells);
  heap_ = std::move(heap);
}

void GpuMemory::explain(const GpuSetup& setup, const Matrix& why_not,
                        const std::vector<int>& group) {
  const Placement& placement = *setup.placement;
  const auto me = static_cast<std::size_t>(placement.pe);
  const auto is_in = [](const std::vector<int>& pes, std::size_t pe) {
    return std::find(pes.begin(), pes.end(), static_cast<int>(pe)) != pes.end();
  };
  why_not_mapped_.assign(setup.capabilities_by_pe.size(), "");
  for (std::size_t pe = 0; pe < why_not_mapped_.size(); ++pe) {
    std::string& reason = why_not_mapped_[pe];
    if (is_in(group, pe))
      continue;
    if (placement.hosts[pe].machine_id != placement.hosts[me].machine_id && !is_fabric())
      reason = "on another machine";
    else if (is_fabric() &&
             setup.capabilities_by_pe[pe].fabric != setup.capabilities_by_pe[me].fabric)
      reason = "in another NVLink domain";
    else if (placement.node[pe] != placement.my_node())
      reason = "on another virtual node";
    else if (!is_fabric() && !is_in(setup.mappable_pes, pe))
      reason = "in another network namespace, so the two PEs can share no memory";
    else if (!why_not[me][pe].empty())
      reason = why_not[me][pe];
    else if (!why_not[pe][me].empty())
      reason = "it cannot map this PE's memory: " + why_not[pe][me];
    else
      reason = "the two GPUs map each other, but one does not map all that the other maps";
  }
}

RegionView GpuMemory::view(int region) const {
  const GpuRegion& part = region == region::gpu_heap ? *heap_ : *cells_;
  RegionView view{region, part.base(), part.size_bytes(), {}};
  for (std::size_t pe = 0; pe < why_not_mapped_.size(); ++pe)
    view.mapped.push_back(part.part_of(static_cast<int>(pe)));
  return view;
}

IpcRegion::IpcRegion(std::string name, std::shared_ptr<const cuda::Device> device,
                     const cuda::Stream& stream, std::size_t size_bytes, int pe, std::size_t n_pes)
    : name_(std::move(name)), device_(std::move(device)), pe_(pe), own_(device_, size_bytes),
      parts_(n_pes, nullptr) {
  cuda::fill_now(stream, own_.data(), 0, size_bytes);
  parts_[static_cast<std::size_t>(pe)] = own_.data();
}

IpcRegion::~IpcRegion() {
  for (std::size_t pe = 0; pe < parts_.size(); ++pe)
    close(static_cast<int>(pe));
}

std::string IpcRegion::handle() const {
  const cuda::Current current(*device_);
  CUipcMemHandle handle{};
  device_->driver().require(
      device_->call().ipc_get_mem_handle(&handle, reinterpret_cast<CUdeviceptr>(base())),
      format_size_bytes(size_bytes()) + " of memory of " + device_->text(), "export");
  return {handle.reserved, sizeof handle.reserved};
}

void IpcRegion::open(int pe, const std::string& handle) {
  const std::string subject = "memory of PE " + std::to_string(pe) + " for " + device_->text();
  CUipcMemHandle known{};
  if (handle.size() != sizeof known.reserved)
    throw Error(ExitCode::unavailable, subject, "map", "its owner has sent no valid handle",
                "run the same version of shmemctl on all hosts");
  std::memcpy(known.reserved, handle.data(), handle.size());
  const cuda::Current current(*device_);
  CUdeviceptr at = 0;
  device_->driver().require(
      device_->call().ipc_open_mem_handle(&at, known, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), subject,
      "map");
  parts_[static_cast<std::size_t>(pe)] = reinterpret_cast<std::byte*>(at);
}

void IpcRegion::close(int pe) noexcept {
  std::byte*& part = parts_[static_cast<std::size_t>(pe)];
  if (!part || pe == pe_)
    return;
  CUcontext previous = nullptr;
  device_->call().ctx_push_current(device_->context());
  device_->call().ipc_close_mem_handle(reinterpret_cast<CUdeviceptr>(part));
  device_->call().ctx_pop_current(&previous);
  part = nullptr;
}

std::byte* IpcRegion::part_of(int pe) const {
  return parts_[static_cast<std::size_t>(pe)];
}

void IpcRegion::grow(std::size_t more_bytes, const Deadline&) {
  throw Error(ExitCode::unavailable, "region '" + name_ + "'", "grow",
              "with SHMEMCTL_HEAP=ipc all of its memory is committed at the start: " +
                  format_size_bytes(size_bytes()) + ", and " + format_size_bytes(more_bytes) +
                  " more are needed",
              "raise SHMEMCTL_SYMMETRIC_SIZE");
}

namespace {

/// The word that a PE writes at the start of its chunk.
std::uint64_t mark_of(int pe) {
  return 0x5348'4d43'0000'0000 + static_cast<std::uint64_t>(pe);
}

} // namespace

std::string why_no_peer_access(const cuda::Device& device, const std::string& uuid) {
  if (device.info().uuid == uuid)
    return "";
  for (const cuda::DeviceInfo& other : device.driver().devices()) {
    if (other.uuid != uuid)
      continue;
    int can = 0, atomics = 0;
    CUdevice own_device = 0, theirs = 0;
    const cuda::Functions& call = device.call();
    const std::string pair = " from " + device.text() + " (" + device.info().pci_address +
                             ") to GPU " + std::to_string(other.ordinal) + " (" +
                             other.pci_address + ")";
    if (call.device_get(&own_device, device.info().ordinal) != CUDA_SUCCESS ||
        call.device_get(&theirs, other.ordinal) != CUDA_SUCCESS ||
        call.device_can_access_peer(&can, own_device, theirs) != CUDA_SUCCESS || can == 0)
      return "CUDA has no peer access" + pair;
    // Kernels' barriers count members by such atomics.
    if (call.device_get_p2p_attribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                      own_device, theirs) != CUDA_SUCCESS ||
        atomics == 0)
      return "the link has no native atomics" + pair;
  }
  return "";
}

std::vector<std::string> try_vmm_mapping(const std::shared_ptr<const cuda::Device>& device,
                                         HeapBacking& backing, LocalPeers& peers,
                                         const std::vector<int>& candidates, const GpuSetup& setup,
                                         const Deadline& deadline) {
  std::vector<std::string> why_not(setup.capabilities_by_pe.size());
  const std::size_t chunk_bytes = backing.granularity_bytes();
  const auto slots = static_cast<std::size_t>(peers.slots());
  const auto my_slot = static_cast<std::size_t>(peers.my_slot());
  const auto range = backing.reserve(slots * chunk_bytes);
  const auto place = [&](std::size_t slot) { return range->base() + slot * chunk_bytes; };
  const cuda::Stream stream(device);
  const std::unique_ptr<Chunk> chunk = backing.create(chunk_bytes);
  chunk->map(place(my_slot));
  const std::uint64_t mark = mark_of(setup.placement->pe);
  cuda::copy_now(stream, place(my_slot), &mark, sizeof mark);
  std::vector<FileDescriptor> theirs = peers.exchange(chunk->descriptor(), deadline);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const int pe = candidates[slot];
    std::string& reason = why_not[static_cast<std::size_t>(pe)];
    reason =
        why_no_peer_access(*device, setup.capabilities_by_pe[static_cast<std::size_t>(pe)].uuid);
    if (slot == my_slot || !reason.empty())
      continue;
    try {
      backing.import(std::move(theirs[slot]), chunk_bytes)->map(place(slot));
      std::uint64_t seen = 0;
      cuda::copy_now(stream, &seen, place(slot), sizeof seen);
      if (seen != mark_of(pe))
        reason = "its memory reads wrong when it is mapped here";
    } catch (const Error& error) {
      reason = error.message();
    }
  }
  return why_not;
}

} // namespace shmemctl
