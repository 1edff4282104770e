#include "src/instruments/bench/moe/open_backend.h"

#include <algorithm>

#include "build_info.h"
#include "src/base/error.h"
#include "src/instruments/bench/moe/gpu_backend.h"
#include "src/instruments/bench/moe/host_backend.h"

namespace shmemctl::moe {

const char* to_string(BackendKind kind) {
  return kind == BackendKind::host ? "host" : "gpu";
}

std::string backend_missing(BackendKind kind) {
  return kind == BackendKind::gpu && SHMEMCTL_HAVE_CUDA == 0
             ? "this shmemctl was built without CUDA"
             : "";
}

namespace {

Error cannot_start(BackendKind kind, const std::string& reason) {
  return Error(ExitCode::unavailable, std::string("--backend ") + to_string(kind), "run moe",
               reason, "use --backend host");
}

} // namespace

MoePath require_backend(Runtime& runtime, BackendKind kind, const Setup& setup) {
  if (const std::string reason = backend_missing(kind); !reason.empty())
    throw cannot_start(kind, reason);
  if (kind == BackendKind::host)
    return {};
  const PeGpu* const gpu = runtime.gpu();
  if (!gpu)
    throw cannot_start(kind, runtime.no_gpu_reason());
  const MoePath path = choose_moe_path(setup, gpu->paths_by_pe());
  if (const std::optional<BrokenRule> broken = exchange_broken_rule(*gpu, setup, path))
    throw error_of(*broken);
  if (const std::string reason = exchange_cannot(*gpu, setup, path); !reason.empty())
    throw cannot_start(kind, reason);
  return path;
}

std::string settings_invalid_reason(Runtime& runtime, BackendKind kind, const Setup& setup,
                                    const MoePath& path, Direction direction,
                                    const Settings& given) {
  return kind == BackendKind::host
             ? host_invalid_reason(setup, direction, given)
             : gpu_settings_of(*runtime.gpu(), setup, path).misfit(direction, given);
}

OpenBackend::OpenBackend(Runtime& runtime, BackendKind kind, const Setup& setup,
                         const MoePath& path) {
  if (kind == BackendKind::gpu)
    open_gpu(runtime, setup, path);
  else
    open_host(runtime, setup);
}

void OpenBackend::open_host(Runtime& runtime, const Setup& setup) {
  memory_ = std::make_unique<bench::SymmetricBlock>(runtime, host_backend_bytes(setup),
                                                    "a dispatch and combine", "lower --num-tokens");
  std::fill_n(memory_->get(), memory_->size_bytes(), std::byte{0});
  runtime.barrier(); // no rank may write before all have zeroed their memory
  backend_ = make_host_backend(runtime.rma(), memory_->get(), setup);
}

void OpenBackend::open_gpu(Runtime& runtime, const Setup& setup, const MoePath& path) {
  gpu_ = runtime.gpu();
  const std::size_t size_bytes = gpu_backend_bytes(setup, path);
  gpu_memory_ =
      bench::allocate_on_gpu(*gpu_, size_bytes, "a dispatch and combine", "lower --num-tokens");
  gpu_->fill(gpu_memory_, 0, size_bytes);
  runtime.barrier(); // no rank may write before all have zeroed their memory
  backend_ = make_gpu_backend(*gpu_, gpu_memory_, setup, path, runtime.pe());
}

void OpenBackend::close() {
  backend_.reset();
  if (memory_)
    memory_->free();
  if (gpu_memory_)
    gpu_->free(gpu_memory_);
}

} // namespace shmemctl::moe
