#include "src/memory/cuda_host_backing.h"

#include <map>
#include <mutex>
#include <utility>

#include "src/base/error.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

/// What is registered where: the driver takes back whole registrations only.
class Registrations {
public:
  explicit Registrations(std::shared_ptr<const cuda::Device> device) : device_(std::move(device)) {}

  void add(void* at, std::size_t size_bytes) {
    const cuda::Current current(*device_);
    const std::string subject =
        format_size_bytes(size_bytes) + " of host memory for " + device_->text();
    device_->driver().require(device_->call().mem_host_register(at, size_bytes,
                                                                CU_MEMHOSTREGISTER_PORTABLE |
                                                                    CU_MEMHOSTREGISTER_DEVICEMAP),
                              subject, "register");
    {
      const std::lock_guard lock(mutex_);
      sizes_[reinterpret_cast<std::uintptr_t>(at)] = size_bytes;
    }
    CUdeviceptr seen = 0;
    device_->driver().require(device_->call().mem_host_get_device_pointer(&seen, at, 0), subject,
                              "ask for the GPU's address of");
    if (seen != reinterpret_cast<CUdeviceptr>(at))
      throw Error(ExitCode::unavailable, subject, "register",
                  "its GPU address differs from its host address",
                  "set SHMEMCTL_HEAP to vmm or ipc");
  }
  /// Takes away those that begin in there.
  void remove(const void* at, std::size_t size_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    auto piece = sizes_.lower_bound(begin);
    while (piece != sizes_.end() && piece->first - begin < size_bytes) {
      CUcontext previous = nullptr;
      device_->call().ctx_push_current(device_->context());
      device_->call().mem_host_unregister(reinterpret_cast<void*>(piece->first));
      device_->call().ctx_pop_current(&previous);
      piece = sizes_.erase(piece);
    }
  }

private:
  std::shared_ptr<const cuda::Device> device_;
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> sizes_;
};

class RegisteredRange final : public AddressRange {
public:
  RegisteredRange(std::shared_ptr<Registrations> registrations, std::unique_ptr<AddressRange> inner,
                  std::size_t size_bytes)
      : registrations_(std::move(registrations)), inner_(std::move(inner)),
        size_bytes_(size_bytes) {}
  ~RegisteredRange() override { registrations_->remove(base(), size_bytes_); }
  RegisteredRange(const RegisteredRange&) = delete;
  RegisteredRange& operator=(const RegisteredRange&) = delete;

  std::byte* base() const override { return inner_->base(); }
  void clear(std::byte* at, std::size_t size_bytes) noexcept override {
    registrations_->remove(at, size_bytes);
    inner_->clear(at, size_bytes);
  }

private:
  std::shared_ptr<Registrations> registrations_;
  std::unique_ptr<AddressRange> inner_;
  std::size_t size_bytes_;
};

class RegisteredChunk final : public Chunk {
public:
  RegisteredChunk(std::shared_ptr<Registrations> registrations, std::unique_ptr<Chunk> inner)
      : registrations_(std::move(registrations)), inner_(std::move(inner)) {}
  std::size_t size_bytes() const override { return inner_->size_bytes(); }
  int descriptor() const override { return inner_->descriptor(); }
  void map(void* address) override {
    inner_->map(address);
    registrations_->add(address, size_bytes());
  }

private:
  std::shared_ptr<Registrations> registrations_;
  std::unique_ptr<Chunk> inner_;
};

class CudaHostBacking final : public HeapBacking {
public:
  CudaHostBacking(std::shared_ptr<const cuda::Device> device, std::unique_ptr<HeapBacking> inner)
      : inner_(std::move(inner)) {
    if (!device->info().unified_addressing)
      throw Error(ExitCode::unavailable, device->text(), "map host memory", "no unified addressing",
                  "set SHMEMCTL_HEAP to vmm or ipc");
    registrations_ = std::make_shared<Registrations>(std::move(device));
  }

  const char* kind() const override { return "cuda-host"; }
  std::size_t granularity_bytes() const override { return inner_->granularity_bytes(); }
  std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) override {
    return std::make_unique<RegisteredRange>(registrations_, inner_->reserve(size_bytes),
                                             size_bytes);
  }
  std::unique_ptr<Chunk> create(std::size_t size_bytes) override {
    return std::make_unique<RegisteredChunk>(registrations_, inner_->create(size_bytes));
  }
  std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) override {
    return std::make_unique<RegisteredChunk>(registrations_,
                                             inner_->import(std::move(descriptor), size_bytes));
  }

private:
  std::unique_ptr<HeapBacking> inner_;
  std::shared_ptr<Registrations> registrations_;
};

} // namespace

std::unique_ptr<HeapBacking> make_cuda_host_backing(std::shared_ptr<const cuda::Device> device,
                                                    std::unique_ptr<HeapBacking> inner) {
  return std::make_unique<CudaHostBacking>(std::move(device), std::move(inner));
}

} // namespace shmemctl
