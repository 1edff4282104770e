// Who issues the measured operations, from which memory, and with how many threads.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl::bench {

/// Who issues operations.
enum class Initiator {
  host,   ///< the host's thread
  stream, ///< work that the host puts into a stream of the GPU
  gpu     ///< a kernel's threads
};
/// What a case's buffers are in.
enum class MemoryKind {
  host,      ///< the symmetric heap
  gpu,       ///< the symmetric heap of the GPUs
  registered ///< memory outside of the heaps, registered with the runtime on each PE
};
/// Which threads make one call together.
enum class CallScope { thread, warp, block };
inline constexpr std::initializer_list<Initiator> all_initiators = {
    Initiator::host, Initiator::stream, Initiator::gpu};
inline constexpr std::initializer_list<MemoryKind> all_memories = {
    MemoryKind::host, MemoryKind::gpu, MemoryKind::registered};
inline constexpr std::initializer_list<CallScope> all_scopes = {CallScope::thread, CallScope::warp,
                                                                CallScope::block};
const char* to_string(Initiator initiator);
const char* to_string(MemoryKind memory);
const char* to_string(CallScope scope);

/// Most blocks and threads that a launch may ask for.
inline constexpr int max_ctas = 4096, max_threads = 1024, warp_threads = 32;

/// What a case of kernels can be launched with.
struct LaunchRules {
  std::vector<CallScope>
      scopes; ///< scopes that the kernel knows, its default first; empty: no kernel of ours
  /// One thread, warp or block makes all calls, one after another; if false, each thread, warp or
  /// block of the grid makes calls of its own.
  bool one_caller = true;
  int ctas = 1;      ///< by default
  int threads = 128; ///< threads of a block, by default, where the scope leaves a choice
};

/// What the command line asked for; 0 and nothing: the case's own.
struct LaunchRequest {
  Initiator initiator = Initiator::host;
  std::optional<MemoryKind> memory;
  std::optional<CallScope> scope;
  int ctas = 0, threads = 0;
  bool graph = false;
};

/// How a point is launched.
struct Launch {
  Initiator initiator = Initiator::host;
  MemoryKind memory = MemoryKind::host;
  CallScope scope = CallScope::block;
  int ctas = 0, threads = 0; ///< 0: there is no kernel of ours
  bool graph = false;
};

/// Rules that need no case. Returns the memory that is meant. Throws Error (usage) that says the
/// rule: --scope, --ctas and --threads go with --initiator gpu; --graph with stream; kernels and
/// streams work in the GPU's memory.
MemoryKind check_launch(const LaunchRequest& request);
/// The launch of that case. Throws Error (usage) that says the rule which the request breaks.
Launch launch_of(const std::string& case_name, const LaunchRules& rules,
                 const LaunchRequest& request);

} // namespace shmemctl::bench
