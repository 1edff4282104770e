// Opens a backend by its name, with the memory that it needs.
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

/// Why this build does not have the backend; "" if it does.
std::string backend_missing(BackendKind kind);

/// Returns which kernels run such a point on this PE; the default for the host backend, which has
/// no kernels. Throws Error (usage, with the nearest legal value, or unavailable) if the backend
/// cannot run the setup on this PE. Measures nothing and allocates nothing.
MoePath require_backend(Runtime& runtime, BackendKind kind, const Setup& setup);

/// Why calls of that setup cannot run with these settings, and the nearest settings with which they
/// can; "" if they can. Requires that require_backend() accepts the setup. Measures nothing and
/// allocates nothing.
std::string settings_invalid_reason(Runtime& runtime, BackendKind kind, const Setup& setup,
                                    const MoePath& path, Direction direction,
                                    const Settings& given);

/// A backend with its memory. They are freed by close(), which is collective, and not by the
/// destructor: after an Error the other PEs would not take part.
class OpenBackend {
public:
  /// Collective. Throws Error (unavailable) if there is not enough memory.
  /// @param path result of require_backend()
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
