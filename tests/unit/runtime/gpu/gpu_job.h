// Jobs whose PEs have GPUs of the fake driver.
#pragma once

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/gpu/gpu.h"
#include "tests/support/fork_job.h"
#include "tests/support/gpu_bodies.h"
#include "tests/support/set_variable.h"
#include "transports/p2p/copy_engine.h"
#include "transports/shm/atomics.h"

namespace shmemctl::test {

/// A function of the fake driver's library, in this process.
template <class Function>
Function* of_fake(const char* name) {
  void* library = ::dlopen(SHMEMCTL_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(library ? ::dlsym(library, name) : nullptr);
}
/// Where a CPU can access memory of the fake GPUs.
template <class T>
T* reach(T* address) {
  return static_cast<T*>(of_fake<void*(void*)>("fake_cuda_reach")(address));
}
inline std::string held_by_fake() {
  auto* held = of_fake<const char*()>("fake_cuda_held");
  return held ? held() : "";
}
inline constexpr const char* nothing_held =
    "reserved 0 mapped 0 committed 0 allocated 0 host 0 streams 0 contexts 0";
/// While it exists, work in streams does not end.
class HeldStreams {
public:
  HeldStreams() { of_fake<void(int)>("fake_cuda_hold")(1); }
  ~HeldStreams() { of_fake<void(int)>("fake_cuda_hold")(0); }
  HeldStreams(const HeldStreams&) = delete;
  HeldStreams& operator=(const HeldStreams&) = delete;
};

/// The next query of a stream fails with this CUDA error, and so does every call after it.
inline void fail_next_query(int code) {
  const int next = of_fake<int(const char*)>("fake_cuda_calls")("cuStreamQuery") + 1;
  ::setenv("FAKE_CUDA_STICKY", "1", 1);
  ::setenv("FAKE_CUDA_FAIL",
           ("cuStreamQuery:" + std::to_string(next) + ":" + std::to_string(code)).c_str(), 1);
}

/// A PE's work: the kernel of PE 1 fails permanently with this CUDA error, while PE 0's waits for
/// it.
inline std::string fail_kernel_of_pe_1(Runtime& runtime, int code) {
  if (runtime.pe() == 0) {
    const HeldStreams held;
    runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel that waits for the other PE");
    return "no failure";
  }
  fail_next_query(code);
  runtime.gpu()->wait(runtime.gpu()->stream(), "a kernel");
  return "no failure";
}

/// What the kernel would do, by the CPU.
class HostWordAtomics final : public WordAtomics {
public:
  void start(void*, void* word, const AtomicRequest& request, std::uint64_t* old) override {
    *old = execute_atomic(reach(word), request);
  }
};

inline ForkJob gpu_job(int n_pes, std::function<std::string(Runtime&)> body,
                       const Environment& more = {}) {
  ForkJob job;
  job.n_pes = n_pes;
  job.gpu = GpuUse::required;
  job.word_atomics = std::make_shared<HostWordAtomics>();
  job.environment = {{"SHMEMCTL_CUDA_LIBRARY", SHMEMCTL_FAKE_CUDA},
                     {"SHMEMCTL_SYMMETRIC_SIZE", "64M"},
                     {"SHMEMCTL_HEAP_CHUNK", "4M"}};
  for (const auto& [name, value] : more)
    job.environment[name] = value;
  job.body = std::move(body);
  return job;
}

inline void expect_all_well(const std::vector<PeResult>& results) {
  for (std::size_t pe = 0; pe < results.size(); ++pe)
    EXPECT_EQ(results[pe].exit_code, 0) << "PE " << pe << ": " << results[pe].text;
}

/// A test over each kind of heap; CPUs cannot access the fake GPUs' memory.
class OverHeaps : public ::testing::TestWithParam<const char*> {
protected:
  std::string kind() const { return GetParam(); }
  Environment heap() const { return {{"SHMEMCTL_HEAP", kind()}}; }
  SetVariable strict_{"FAKE_CUDA_STRICT", "1"};
};
inline auto all_heaps() {
  return ::testing::Values("vmm", "ipc", "host");
}

} // namespace shmemctl::test
