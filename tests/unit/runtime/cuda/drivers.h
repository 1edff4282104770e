// The drivers that tests run over: always the fake one, and the real one if there is a GPU.
#pragma once

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/cuda/device.h"

namespace shmemctl::test {

inline const char* real_driver() {
  return "libcuda.so.1";
}

/// Opens it; fails the test if the fake one does not open.
inline std::shared_ptr<const cuda::Driver> open_driver(const std::string& file,
                                                       std::string* reason = nullptr) {
  std::string why;
  auto driver = cuda::Driver::open(file, why);
  if (reason)
    *reason = why;
  return driver;
}

/// The allocations of the fake driver.
inline std::string held_by_fake() {
  void* library = ::dlopen(SHMEMCTL_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  using Held = const char*();
  auto* held = reinterpret_cast<Held*>(library ? ::dlsym(library, "fake_cuda_held") : nullptr);
  return held ? held() : "not loaded";
}
inline constexpr const char* nothing_held =
    "reserved 0 mapped 0 committed 0 allocated 0 host 0 streams 0 contexts 0";

/// Starts counting the fake driver's calls for FAKE_CUDA_FAIL; otherwise those of earlier tests of
/// this process count, too. False if the driver does not support this.
inline bool count_calls_of_fake_anew() {
  void* library = ::dlopen(SHMEMCTL_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  using CountAnew = void();
  auto* count_anew =
      reinterpret_cast<CountAnew*>(library ? ::dlsym(library, "fake_cuda_count_anew") : nullptr);
  if (count_anew)
    count_anew();
  return count_anew != nullptr;
}

/// Copies of device memory, by the driver.
class Copies {
public:
  explicit Copies(std::shared_ptr<const cuda::Device> device) : stream_(std::move(device)) {}

  void store(void* to, const std::vector<std::uint64_t>& words) {
    copy(to, words.data(), words.size());
  }
  std::vector<std::uint64_t> load(const void* from, std::size_t count) {
    std::vector<std::uint64_t> words(count, ~std::uint64_t{0});
    copy(words.data(), from, count);
    return words;
  }

private:
  void copy(void* to, const void* from, std::size_t count) {
    const cuda::Current current(stream_.device());
    stream_.device().require(
        stream_.device().call().memcpy_async(reinterpret_cast<CUdeviceptr>(to),
                                             reinterpret_cast<CUdeviceptr>(from),
                                             count * sizeof(std::uint64_t), stream_.get()),
        "copy");
    stream_.synchronize();
  }

  cuda::Stream stream_;
};

/// A test that runs over each driver; skipped where the real one has no GPU.
class OverDrivers : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    driver = open_driver(GetParam(), &reason);
    if (!driver)
      GTEST_SKIP() << reason;
  }
  std::shared_ptr<const cuda::Device> device(int ordinal = 0) const {
    return std::make_shared<const cuda::Device>(driver, ordinal);
  }

  std::shared_ptr<const cuda::Driver> driver;
  std::string reason;
};

inline auto both_drivers() {
  return ::testing::Values(SHMEMCTL_FAKE_CUDA, real_driver());
}
inline std::string name_of_driver(const ::testing::TestParamInfo<const char*>& info) {
  return info.index == 0 ? "MadeUp" : "Real";
}

} // namespace shmemctl::test
