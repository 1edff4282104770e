// Jobs with registered buffers of GPU memory, over the fake driver.
#pragma once

#include <algorithm>
#include <cstring>

#include "src/runtime/buffers.h"
#include "tests/support/gpu_buffer_bodies.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {

/// Allocations and mappings, without streams and contexts, which the first use leaves.
inline std::string memory_held() {
  const std::string all = held_by_fake();
  return all.substr(0, all.find(" host "));
}

/// To the end of the page that contains the address.
inline std::size_t in_page_bytes(const void* address) {
  return page_bytes() - reinterpret_cast<std::uintptr_t>(address) % page_bytes();
}
inline GpuBufferCase case_of(const std::string& memory) {
  return {
      SHMEMCTL_FAKE_CUDA, memory,
      [](Runtime&, std::byte* to, const std::byte* from, std::size_t size_bytes) {
        // By pages: allocations that are contiguous for GPUs are not for CPUs.
        while (size_bytes > 0) {
          const std::size_t step = std::min({size_bytes, in_page_bytes(to), in_page_bytes(from)});
          std::memcpy(reach(to), reach(const_cast<std::byte*>(from)), step);
          to += step, from += step, size_bytes -= step;
        }
      }};
}

inline std::shared_ptr<const cuda::Device> device_of(Runtime& runtime) {
  return open_device(SHMEMCTL_FAKE_CUDA, runtime.gpu()->info().device);
}

inline std::string error_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.message() + " / " + error.fix();
  }
  return "no error";
}
inline void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& each : words)
    expect(text.find(each) != std::string::npos, "'" + each + "' in: " + text);
}

/// A test over each kind of memory; CPUs cannot access it.
class OverUserMemory : public ::testing::TestWithParam<const char*> {
protected:
  std::string kind() const { return GetParam(); }
  SetVariable strict_{"FAKE_CUDA_STRICT", "1"};
};
inline auto all_user_memory() {
  return ::testing::Values("malloc", "vmm", "vmm3");
}

} // namespace shmemctl::test
