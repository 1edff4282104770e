// A GPU that is described and cannot do anything: for what is decided without one.
#pragma once

#include <stdexcept>
#include <vector>

#include "src/runtime/gpu/gpu.h"

namespace shmemctl::test {

/// Tests set the properties and the paths that they need.
class NoGpu : public PeGpu {
public:
  GpuInfo described;
  std::vector<KernelPath> paths;

  const GpuInfo& info() const override { return described; }
  const std::vector<KernelPath>& paths_by_pe() const override { return paths; }
  DeviceJob job() const override { return {}; }
  std::vector<std::int64_t> heap_delta_bytes() const override { return {}; }
  void set_timeout_s(double) override {}
  void* allocate(std::size_t, std::size_t) override { return nullptr; }
  void free(void*) override {}
  SymmetricHeap& heap() override { throw std::logic_error("no heap"); }
  GpuStream stream() override { return nullptr; }
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, int, std::size_t) override {}
  std::unique_ptr<HostCopies> make_host_copies(std::size_t) override { return nullptr; }
  void wait(GpuStream, const char*) override {}
  void check() override {}
  void release_kernels() noexcept override {}
};

} // namespace shmemctl::test
