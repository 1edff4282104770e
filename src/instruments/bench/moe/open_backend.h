// A backend by its name, with the memory that it works in.
#pragma once

#include <memory>
#include <string>

#include "src/instruments/bench/job_memory.h"
#include "src/instruments/bench/moe/backend.h"
#include "src/runtime/moe/moe_path.h"

namespace shmemctl::moe {

/// A backend of `shmemctl moe --backend`.
enum class BackendKind { host, gpu };
const char* to_string(BackendKind kind);

/// Why this build has no such backend; "" if it has.
std::string backend_missing(BackendKind kind);

/// Which kernels run such a point on this PE; of the host's backend, which has none, the default.
/// Throws Error (usage, with the nearest legal value, or unavailable) for what the backend cannot
/// do on this PE. Measures nothing, allocates nothing.
MoePath require_backend(Runtime& runtime, BackendKind kind, const Setup& setup);

/// Why calls of such a setup cannot run with these settings, and the nearest that they can; "" if
/// they can. Of a PE that require_backend() has let pass; measures nothing, allocates nothing.
std::string settings_invalid_reason(Runtime& runtime, BackendKind kind, const Setup& setup,
                                    const MoePath& path, Direction direction,
                                    const Settings& given);

/// Given back by close(), which is collective, and by no destructor: after an Error the others do
/// not take part.
class OpenBackend {
public:
  /// Collective. Throws Error (unavailable) if the memory does not suffice.
  /// @param path what require_backend() has returned
  OpenBackend(Runtime& runtime, BackendKind kind, const Setup& setup, const MoePath& path);
  Backend& backend() const { return *backend_; }
  void close();

private:
  void open_host(Runtime& runtime, const Setup& setup);
  void open_gpu(Runtime& runtime, const Setup& setup, const MoePath& path);

  std::unique_ptr<bench::SymmetricBlock> memory_;
  PeGpu* gpu_ = nullptr;
  std::byte* gpu_memory_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

} // namespace shmemctl::moe
