#include "tests/fake/verbs/device_access.h"

#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

#include "tests/fake/verbs/range_file.h"

namespace fake_verbs {

namespace {

using Reach = void* (*)(void*, std::size_t*);

/// The fake driver's, if that is the one that this process has opened.
Reach fake_reach() {
  static const auto reach = [] {
    void* const library = ::dlopen(FAKE_VERBS_CUDA, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Reach>(library ? ::dlsym(library, "fake_cuda_reach_piece") : nullptr);
  }();
  return reach;
}

/// The real driver, and a stream that waits for no kernel. The device is that of the memory.
class Copies {
public:
  explicit Copies(CUdeviceptr address) {
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int device = 0;
    require(function<decltype(&::cuPointerGetAttribute)>("cuPointerGetAttribute")(
        &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    require(function<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_,
                                                                                        device));
    push();
    require(
        function<decltype(&::cuStreamCreate)>("cuStreamCreate")(&stream_, CU_STREAM_NON_BLOCKING));
    pop();
  }
  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    push();
    static const auto copy = function<decltype(&::cuMemcpyAsync)>("cuMemcpyAsync");
    static const auto wait = function<decltype(&::cuStreamSynchronize)>("cuStreamSynchronize");
    require(copy(to, from, size_bytes, stream_));
    require(wait(stream_));
    pop();
  }

private:
  template <class Function>
  Function function(const char* name) const {
    auto* const found = library_ ? ::dlsym(library_, name) : nullptr;
    if (!found)
      std::abort();
    return reinterpret_cast<Function>(found);
  }
  void push() const {
    static const auto push = function<decltype(&::cuCtxPushCurrent)>("cuCtxPushCurrent_v2");
    require(push(context_));
  }
  void pop() const {
    static const auto pop = function<decltype(&::cuCtxPopCurrent)>("cuCtxPopCurrent_v2");
    CUcontext old = nullptr;
    require(pop(&old));
  }
  static void require(CUresult result) {
    if (result == CUDA_SUCCESS)
      return;
    std::fprintf(stderr, "fake NIC: the driver answers %d\n", static_cast<int>(result));
    std::abort();
  }

  void* library_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::mutex mutex_;
};

} // namespace

void access_device(std::uint64_t address, std::byte* data, std::size_t size_bytes, bool write) {
  if (size_bytes == 0)
    return;
  if (!fake_reach()) {
    static Copies copies(address);
    const auto here = reinterpret_cast<CUdeviceptr>(data);
    return copies.copy(write ? address : here, write ? here : address, size_bytes);
  }
  while (size_bytes > 0) {
    std::size_t piece = size_bytes;
    auto* const place =
        static_cast<std::byte*>(fake_reach()(reinterpret_cast<void*>(address), &piece));
    write ? move_bytes(place, data, piece) : move_bytes(data, place, piece);
    address += piece;
    data += piece;
    size_bytes -= piece;
  }
}

std::uint64_t exported_bytes(int file, std::uint64_t address) {
  if (fake_reach()) {
    const Range range = read_range(file);
    return range.address == address ? range.size_bytes : 0;
  }
  const off_t end = ::lseek(file, 0, SEEK_END); // of a dma-buf: its size
  return end > 0 ? static_cast<std::uint64_t>(end) : 0;
}

} // namespace fake_verbs
