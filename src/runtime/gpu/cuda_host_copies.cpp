#include "src/runtime/gpu/cuda_host_copies.h"

namespace shmemctl {

CudaHostCopies::CudaHostCopies(const std::shared_ptr<const cuda::Device>& device,
                               const cuda::Stream& stream, std::size_t host_bytes)
    : memory_(device, host_bytes), stream_(stream), beside_(device),
      forked_(device, cuda::Event::Use::order), joined_(device, cuda::Event::Use::order),
      begun_(device, cuda::Event::Use::time), ended_(device, cuda::Event::Use::time) {}

void CudaHostCopies::start(void* to, const void* from, std::size_t size_bytes) {
  cuda::start_copy(stream_, to, from, size_bytes);
}

void CudaHostCopies::start_beside(void* to, const void* from, std::size_t size_bytes) {
  cuda::start_copy(beside_, to, from, size_bytes);
}

void CudaHostCopies::fork() {
  forked_.record(stream_.get());
  forked_.hold_back(beside_.get());
}

void CudaHostCopies::join() {
  joined_.record(beside_.get());
  joined_.hold_back(stream_.get());
}

void CudaHostCopies::begin() {
  begun_.record(stream_.get());
}

void CudaHostCopies::end() {
  ended_.record(stream_.get());
}

double CudaHostCopies::elapsed_ns() const {
  return ended_.ns_since(begun_);
}

} // namespace shmemctl
