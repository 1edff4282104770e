#include "kernels/bench/stream_timer.h"

#include <cuda_runtime.h>

#include "kernels/cuda_error.h"
#include "src/base/error.h"

namespace shmemctl::bench {

namespace {

void require(cudaError_t result, const char* attempted) {
  if (result != cudaSuccess)
    throw Error(
        ExitCode::unavailable, "GPU stream", attempted, named_cuda_error(result),
        fix_of_cuda_error(result, "run shmemctl doctor to check the driver; omit --graph if set"));
}

cudaStream_t of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

} // namespace

struct StreamTimer::Impl {
  int device = 0;
  cudaEvent_t first = nullptr, second = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;

  explicit Impl(int ordinal) : device(ordinal) {
    require(cudaSetDevice(device), "select the GPU");
    require(cudaEventCreate(&first), "create an event");
    require(cudaEventCreate(&second), "create an event");
  }
  ~Impl() {
    if (ready)
      cudaGraphExecDestroy(ready);
    if (graph)
      cudaGraphDestroy(graph);
    if (second)
      cudaEventDestroy(second);
    if (first)
      cudaEventDestroy(first);
  }
};

StreamTimer::StreamTimer(int device) : impl_(std::make_unique<Impl>(device)) {}
StreamTimer::~StreamTimer() = default;

void StreamTimer::begin(void* stream) {
  require(cudaEventRecord(impl_->first, of(stream)), "record an event");
}

void StreamTimer::end(void* stream) {
  require(cudaEventRecord(impl_->second, of(stream)), "record an event");
}

double StreamTimer::elapsed_ns() const {
  float ms = 0;
  require(cudaEventElapsedTime(&ms, impl_->first, impl_->second), "read the time of two events");
  return static_cast<double>(ms) * 1e6;
}

void StreamTimer::capture(void* stream, const std::function<void()>& enqueue) {
  require(cudaStreamBeginCapture(of(stream), cudaStreamCaptureModeThreadLocal),
          "begin a graph capture");
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(of(stream), &impl_->graph);
    throw;
  }
  require(cudaStreamEndCapture(of(stream), &impl_->graph), "end a graph capture");
  require(cudaGraphInstantiateWithFlags(&impl_->ready, impl_->graph, 0),
          "create an executable graph");
}

bool StreamTimer::has_graph() const {
  return impl_->ready != nullptr;
}

void StreamTimer::launch_graph(void* stream) {
  require(cudaGraphLaunch(impl_->ready, of(stream)), "launch a graph");
}

} // namespace shmemctl::bench
