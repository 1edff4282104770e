// Host-initiated operations on GPU memory, executed by the copy engine and a small kernel.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "src/abi/device_state.h"
#include "src/base/job_health.h"
#include "src/runtime/cuda/device.h"
#include "transports/p2p/copy_engine.h"

namespace shmemctl {

/// Uses one stream for each context, created when the context is first used.
class CudaCopyEngine final : public CopyEngine {
public:
  CudaCopyEngine(std::shared_ptr<const cuda::Device> device, std::shared_ptr<WordAtomics> atomics,
                 JobHealth& health, double timeout_s);
  ~CudaCopyEngine() override;

  void copy(int context, void* to, const void* from, std::size_t size_bytes) override;
  void store_word(int context, void* to, std::uint64_t value) override;
  void start_atomic(int context, void* word, const AtomicRequest& request) override;
  std::uint64_t atomic(int context, void* word, const AtomicRequest& request) override;
  void finish(int context) override;

private:
  struct ContextStream;
  ContextStream& context_stream(int context);

  std::shared_ptr<const cuda::Device> device_;
  std::shared_ptr<WordAtomics> atomics_;
  JobHealth& health_;
  double timeout_s_;
  std::array<std::unique_ptr<ContextStream>, limits::max_contexts> streams_;
};

/// Executes each atomic in a kernel of one thread.
std::shared_ptr<WordAtomics> make_kernel_word_atomics();

} // namespace shmemctl
