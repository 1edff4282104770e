#include "src/bench/moe/open_backend.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/bench/moe/host_backend.h"

namespace shmemctl::moe {

const char* to_string(BackendKind kind) {
  return kind == BackendKind::host ? "host" : "gpu";
}

std::string backend_missing(BackendKind kind) {
  return kind == BackendKind::gpu ? "its kernels are not in this build" : "";
}

int ranks_limit(BackendKind kind) {
  return kind == BackendKind::gpu ? max_ranks_of_kernels : max_ranks;
}

OpenBackend::OpenBackend(Runtime& runtime, BackendKind kind, const Setup& setup) {
  if (const std::string reason = backend_missing(kind); !reason.empty())
    throw Error(ExitCode::unavailable, std::string("--backend ") + to_string(kind), "start moe",
                reason, "use --backend host");
  memory_ = std::make_unique<bench::SymmetricBlock>(runtime, host_backend_bytes(setup),
                                                    "a dispatch and combine", "fewer --num-tokens");
  std::fill_n(memory_->get(), memory_->size_bytes(), std::byte{0});
  runtime.collectives().barrier(team_world); // nobody writes into what is not zeroed yet
  backend_ = make_host_backend(runtime.rma(), memory_->get(), setup);
}

void OpenBackend::close() {
  backend_.reset();
  if (memory_)
    memory_->free();
}

} // namespace shmemctl::moe
