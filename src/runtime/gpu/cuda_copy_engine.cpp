#include "src/runtime/gpu/cuda_copy_engine.h"

#include "kernels/word_atomic.h"
#include "src/runtime/gpu/cuda_stream_wait.h"

namespace shmemctl {

namespace {

/// Maximum number of a context's signal values in flight: the copy engine reads a value when it
/// executes the copy, so the value must stay in memory until then.
constexpr std::size_t word_count = 512;

class KernelWordAtomics final : public WordAtomics {
public:
  void start(void* stream, void* word, const AtomicRequest& request, std::uint64_t* old) override {
    const std::string failure = launch_word_atomic(stream, word, request.op, request.size_bytes,
                                                   request.operand, request.compare, old);
    if (!failure.empty())
      throw Error(ExitCode::unavailable, "kernel for atomics on GPU memory", "launch", failure,
                  "look for Xid errors with dmesg, and run shmemctl doctor --only driver,gpu");
  }
};

} // namespace

struct CudaCopyEngine::ContextStream {
  explicit ContextStream(const std::shared_ptr<const cuda::Device>& device)
      : stream(device), pinned(device, (word_count + 1) * sizeof(std::uint64_t)),
        words(reinterpret_cast<std::uint64_t*>(pinned.data())) {}

  cuda::Stream stream;
  cuda::HostBuffer pinned;
  std::uint64_t* words;       ///< [word_count], then one word for old values
  std::size_t words_used = 0; ///< since the last finish()
  bool begun = false;
  std::uint64_t* old() const { return words + word_count; }
};

CudaCopyEngine::CudaCopyEngine(std::shared_ptr<const cuda::Device> device,
                               std::shared_ptr<WordAtomics> atomics, JobHealth& health,
                               double timeout_s)
    : device_(std::move(device)), atomics_(std::move(atomics)), health_(health),
      timeout_s_(timeout_s) {}

CudaCopyEngine::~CudaCopyEngine() = default;

CudaCopyEngine::ContextStream& CudaCopyEngine::context_stream(int context) {
  std::unique_ptr<ContextStream>& context_stream = streams_.at(static_cast<std::size_t>(context));
  if (!context_stream)
    context_stream = std::make_unique<ContextStream>(device_);
  return *context_stream;
}

void CudaCopyEngine::copy(int context, void* to, const void* from, std::size_t size_bytes) {
  ContextStream& own = context_stream(context);
  own.begun = true;
  cuda::start_copy(own.stream, to, from, size_bytes);
}

void CudaCopyEngine::store_word(int context, void* to, std::uint64_t value) {
  ContextStream& own = context_stream(context);
  if (own.words_used == word_count)
    finish(context);
  std::uint64_t* const word = own.words + own.words_used++;
  *word = value;
  own.begun = true;
  cuda::start_copy(own.stream, to, word, sizeof value);
}

void CudaCopyEngine::start_atomic(int context, void* word, const AtomicRequest& request) {
  ContextStream& own = context_stream(context);
  own.begun = true;
  const cuda::Current current(*device_);
  atomics_->start(own.stream.get(), word, request, own.old());
}

std::uint64_t CudaCopyEngine::atomic(int context, void* word, const AtomicRequest& request) {
  start_atomic(context, word, request);
  finish(context);
  return request.op == AtomicOp::set ? 0 : *context_stream(context).old();
}

void CudaCopyEngine::finish(int context) {
  const std::unique_ptr<ContextStream>& own = streams_.at(static_cast<std::size_t>(context));
  if (!own || !own->begun)
    return;
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s_));
  if (!wait_for_stream(*device_, own->stream.get(), deadline, [this] { health_.check(); }))
    throw timeout_error(*device_, "copy on " + device_->text(), "complete", "timed out", {});
  own->begun = false;
  own->words_used = 0;
}

std::shared_ptr<WordAtomics> make_kernel_word_atomics() {
  return std::make_shared<KernelWordAtomics>();
}

} // namespace shmemctl
