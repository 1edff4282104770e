#include "src/cuda/device.h"

#include "src/base/signals_blocked.h"

namespace shmemctl::cuda {

namespace {

const DeviceInfo& info_of(const Driver& driver, int ordinal) {
  const auto count = static_cast<int>(driver.devices().size());
  if (ordinal < 0 || ordinal >= count)
    throw Error(ExitCode::usage, "GPU " + std::to_string(ordinal), "use",
                "only " + std::to_string(count) + " GPUs are visible",
                "pass other numbers to --gpus, or check CUDA_VISIBLE_DEVICES");
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
                          std::move(where), may_be_told ? ask_(true) : Told{});
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
                   "ask for the priorities of streams of");
  device_->require(
      device_->call().stream_create_with_priority(&stream_, CU_STREAM_NON_BLOCKING, greatest),
      "make a stream of");
}

Stream::~Stream() {
  CUcontext previous = nullptr;
  device_->call().ctx_push_current(device_->context()); // no Current: it may throw
  device_->call().stream_destroy(stream_);
  device_->call().ctx_pop_current(&previous);
}

void Stream::synchronize() const {
  const Current current(*device_);
  device_->require(device_->call().stream_synchronize(stream_), "wait for a stream");
}

int device_of_pe(int local_pe, int n_devices, const std::vector<int>& gpus) {
  if (gpus.empty())
    return local_pe % n_devices;
  return gpus[static_cast<std::size_t>(local_pe) % gpus.size()];
}

} // namespace shmemctl::cuda
