#include "src/runtime/cuda/device.h"

#include <cstring>

#include "src/base/process.h"
#include "src/base/units.h"

namespace shmemctl::cuda {

namespace {

const DeviceInfo& info_of(const Driver& driver, int ordinal) {
  const auto count = static_cast<int>(driver.devices().size());
  if (ordinal < 0 || ordinal >= count)
    throw Error(ExitCode::usage, "GPU " + std::to_string(ordinal), "use",
                "the number of visible GPUs is " + std::to_string(count),
                "pass the number of a visible GPU, or check CUDA_VISIBLE_DEVICES");
  return driver.devices()[static_cast<std::size_t>(ordinal)];
}

} // namespace

Device::Device(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), info_(info_of(*driver_, ordinal)) {
  require(call().device_get(&device_, ordinal), "open");
  const SignalsBlocked blocked(SignalsBlocked::But::faults); // the driver starts threads
  require(call().primary_ctx_retain(&context_, device_), "create its context");
}

Device::~Device() {
  call().primary_ctx_release(device_);
}

void Device::require(CUresult result, const std::string& attempted, Where where) const {
  if (result == CUDA_SUCCESS)
    return;
  const bool may_be_told = ask_ && Driver::is_of_device(result);
  throw driver_->error_of(result, text() + " (" + info_.pci_address + ")", attempted,
                          std::move(where), may_be_told ? ask_(true) : DriverReport{});
}

Current::Current(const Device& device) : device_(device) {
  device.require(device.call().ctx_push_current(device.context()), "make its context current");
}

Current::~Current() {
  CUcontext previous = nullptr;
  device_.call().ctx_pop_current(&previous);
}

QuietCurrent::QuietCurrent(const Device& device)
    : device_(device), pushed_(device.call().ctx_push_current(device.context()) == CUDA_SUCCESS) {}

QuietCurrent::~QuietCurrent() {
  CUcontext previous = nullptr;
  if (pushed_)
    device_.call().ctx_pop_current(&previous);
}

Stream::Stream(std::shared_ptr<const Device> device) : device_(std::move(device)) {
  const Current current(*device_);
  int least = 0, greatest = 0;
  device_->require(device_->call().ctx_get_stream_priority_range(&least, &greatest),
                   "get the priorities of streams");
  device_->require(
      device_->call().stream_create_with_priority(&stream_, CU_STREAM_NON_BLOCKING, greatest),
      "create a stream");
}

Stream::~Stream() {
  CUcontext previous = nullptr;
  // not by a Current, whose constructor may throw
  device_->call().ctx_push_current(device_->context());
  device_->call().stream_destroy(stream_);
  device_->call().ctx_pop_current(&previous);
}

void Stream::synchronize() const {
  const Current current(*device_);
  device_->require(device_->call().stream_synchronize(stream_), "wait for a stream");
}

Event::Event(std::shared_ptr<const Device> device, Use use) : device_(std::move(device)) {
  const Current current(*device_);
  device_->require(device_->call().event_create(
                       &event_, use == Use::time ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
                   "create an event");
}

Event::~Event() {
  const QuietCurrent current(*device_);
  device_->call().event_destroy(event_);
}

void Event::record(CUstream stream) const {
  const Current current(*device_);
  device_->require(device_->call().event_record(event_, stream), "record an event");
}

void Event::hold_back(CUstream stream) const {
  const Current current(*device_);
  device_->require(device_->call().stream_wait_event(stream, event_, CU_EVENT_WAIT_DEFAULT),
                   "make a stream wait for an event");
}

double Event::ns_since(const Event& earlier) const {
  constexpr double ns_per_ms = 1e6;
  const Current current(*device_);
  float ms = 0;
  device_->require(device_->call().event_elapsed_time(&ms, earlier.event_, event_),
                   "read the time between events");
  return static_cast<double>(ms) * ns_per_ms;
}

int device_of_pe(int local_pe, int n_devices, const std::vector<int>& gpus) {
  if (gpus.empty())
    return local_pe % n_devices;
  return gpus[static_cast<std::size_t>(local_pe) % gpus.size()];
}

namespace {

CUdeviceptr number_of(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

} // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes)
    : device_(std::move(device)), size_bytes_(size_bytes) {
  const Current current(*device_);
  device_->driver().require(device_->call().mem_alloc(&address_, size_bytes),
                            format_size_bytes(size_bytes) + " of memory of " + device_->text(),
                            "allocate");
}

DeviceBuffer::~DeviceBuffer() {
  const QuietCurrent current(*device_);
  device_->call().mem_free(address_);
}

HostBuffer::HostBuffer(std::shared_ptr<const Device> device, std::size_t size_bytes)
    : device_(std::move(device)) {
  const Current current(*device_);
  const std::string subject =
      format_size_bytes(size_bytes) + " of host memory for " + device_->text();
  device_->driver().require(
      device_->call().mem_host_alloc(&address_, size_bytes,
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
      subject, "allocate");
  std::memset(address_, 0, size_bytes);
}

HostBuffer::~HostBuffer() {
  const QuietCurrent current(*device_);
  device_->call().mem_free_host(address_);
}

void start_copy(const Stream& stream, void* to, const void* from, std::size_t size_bytes) {
  const Device& device = stream.device();
  const Current current(device);
  device.require(
      device.call().memcpy_async(number_of(to), number_of(from), size_bytes, stream.get()),
      "copy memory");
}

void copy_now(const Stream& stream, void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  start_copy(stream, to, from, size_bytes);
  stream.synchronize();
}

void fill_now(const Stream& stream, void* at, int byte, std::size_t size_bytes) {
  if (size_bytes == 0)
    return;
  const Device& device = stream.device();
  const Current current(device);
  device.require(device.call().memset_d8_async(number_of(at), static_cast<unsigned char>(byte),
                                               size_bytes, stream.get()),
                 "fill memory");
  stream.synchronize();
}

namespace {

class CudaDeviceMemory final : public DeviceMemory {
public:
  explicit CudaDeviceMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}

  std::string text() const override { return device_->text(); }
  int ordinal() const override { return device_->info().ordinal; }
  std::string why_no_dma_buf() const override {
    return device_->info().dma_buf ? ""
                                   : device_->text() + " has no DMA_BUF_SUPPORTED (the driver's "
                                                       "kernel modules are not the open ones, or "
                                                       "Linux is older than 5.12)";
  }

  /// Exports without CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE, so that the driver uses the
  /// platform's default path for all mappings. Writes on different paths would not be ordered.
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t address, std::size_t size_bytes,
                                       std::string& why) const override {
    const Current current(*device_);
    int file = -1;
    const CUresult result = device_->call().mem_get_handle_for_address_range(
        &file, address, size_bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (result != CUDA_SUCCESS) {
      why = "cuMemGetHandleForAddressRange: " + device_->driver().text_of(result);
      return std::nullopt;
    }
    return DmaBuf{FileDescriptor(file), 0};
  }

  std::string why_unordered() const override {
    return device_->info().rdma_order >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
               ? ""
               : device_->text() + " does not keep the order of a NIC's writes for its kernels "
                                   "(GPU_DIRECT_RDMA_WRITES_ORDERING)";
  }
  bool needs_flush() const override {
    return device_->info().rdma_order < CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES &&
           device_->info().rdma_flush;
  }
  void flush() const override {
    if (!needs_flush())
      return;
    const Current current(*device_);
    device_->require(device_->call().flush_gpu_direct_rdma_writes(
                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES),
                     "flush the writes of NICs");
  }

private:
  std::shared_ptr<const Device> device_;
};

} // namespace

std::shared_ptr<const DeviceMemory> make_device_memory(std::shared_ptr<const Device> device) {
  return std::make_shared<CudaDeviceMemory>(std::move(device));
}

} // namespace shmemctl::cuda
