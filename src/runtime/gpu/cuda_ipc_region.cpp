#include "src/runtime/gpu/cuda_ipc_region.h"

#include <cstring>

#include "src/base/units.h"

namespace shmemctl {

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
  const std::string subject = "the memory of PE " + std::to_string(pe) + " for " + device_->text();
  CUipcMemHandle known{};
  if (handle.size() != sizeof known.reserved)
    throw Error(ExitCode::unavailable, subject, "map", "its owner has sent no handle",
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
  throw Error(
      ExitCode::unavailable, "region '" + name_ + "'", "grow",
      "memory of SHMEMCTL_HEAP=ipc is committed at the start: " + format_size_bytes(size_bytes()) +
          ", and " + format_size_bytes(more_bytes) + " more are needed",
      "raise SHMEMCTL_SYMMETRIC_SIZE");
}

} // namespace shmemctl
