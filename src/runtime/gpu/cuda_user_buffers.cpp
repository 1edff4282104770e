#include "src/runtime/gpu/cuda_user_buffers.h"

#include "src/runtime/gpu/cuda_stream_wait.h"
#include "src/runtime/gpu/cuda_user_mapping.h"
#include "src/runtime/gpu/cuda_user_memory.h"

namespace shmemctl {

CudaUserBuffers::CudaUserBuffers(std::shared_ptr<const cuda::Device> device, int pe,
                                 JobHealth& health, double timeout_s)
    : device_(std::move(device)), pe_(pe), health_(health), timeout_s_(timeout_s) {}

CudaUserBuffers::~CudaUserBuffers() = default;

std::string CudaUserBuffers::text() const {
  return device_->text() + " (" + device_->info().pci_address + ")";
}

bool CudaUserBuffers::is_gpu_memory(const void* address) const {
  const cuda::Current current(*device_);
  CUmemorytype type{};
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  // No error for memory that CUDA does not know.
  device_->require(device_->call().pointer_get_attributes(1, &which, &value,
                                                          reinterpret_cast<CUdeviceptr>(address)),
                   "ask for the kind (cuPointerGetAttributes) of memory of");
  return type == CU_MEMORYTYPE_DEVICE;
}

std::shared_ptr<const GpuShare> CudaUserBuffers::share(const void* address,
                                                       std::size_t size_bytes) {
  const cuda::Current current(*device_);
  return std::make_shared<const GpuShare>(share_user_memory(*device_, address, size_bytes));
}

std::string CudaUserBuffers::why_gone(const GpuShare& share, const void* address,
                                      std::size_t size_bytes) const {
  try {
    const cuda::Current current(*device_);
    if (pieces_of(*device_, address, size_bytes) == share.pieces)
      return {};
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage)
      return error.message();
  }
  return "its memory was freed while it was registered";
}

std::unique_ptr<buffers::GpuMapping> CudaUserBuffers::map(const buffers::GpuImport& import) {
  return map_user_memory(device_, import);
}

std::unique_ptr<cuda::Stream> CudaUserBuffers::take_stream() {
  {
    const std::lock_guard lock(streams_mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<cuda::Stream> stream = std::move(idle_.back());
      idle_.pop_back();
      return stream;
    }
  }
  return std::make_unique<cuda::Stream>(device_);
}

/// A stream whose copy has failed or is not done goes.
void CudaUserBuffers::copy(void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  std::unique_ptr<cuda::Stream> stream = take_stream();
  start_copy(stream->get(), to, from, size_bytes);
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s_));
  Where where;
  where.pe = pe_;
  if (!wait_for_stream(
          *device_, stream->get(), deadline, [this] { health_.check(); }, where))
    throw late_error(*device_, "copy of " + text(), "complete", "timed out", where);
  const std::lock_guard lock(streams_mutex_);
  idle_.push_back(std::move(stream));
}

void CudaUserBuffers::start_copy(void* stream, void* to, const void* from, std::size_t size_bytes) {
  const cuda::Current current(*device_);
  Where where;
  where.pe = pe_;
  device_->require(device_->call().memcpy_async(reinterpret_cast<CUdeviceptr>(to),
                                                reinterpret_cast<CUdeviceptr>(from), size_bytes,
                                                static_cast<CUstream>(stream)),
                   "copy memory of", where);
}

} // namespace shmemctl
