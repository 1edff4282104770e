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
  stream, ///< operations that the host enqueues on a stream of the GPU
  gpu     ///< threads of a kernel
};
/// Where a case's buffers are.
enum class MemoryKind {
  host,      ///< the symmetric heap
  gpu,       ///< the symmetric heap of the GPUs
  registered ///< memory outside of the heaps, registered with the runtime on each PE
};
/// Which threads make a call together.
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

/// The launch settings that a case of kernels supports.
struct LaunchRules {
  std::vector<CallScope>
      scopes; ///< scopes of the kernel, its default first; empty: the case has no kernel of ours
  /// If true, one thread, warp or block makes all calls, one after another. If false, each thread,
  /// warp or block of the grid makes its own calls or, in collectives, its part of each call.
  bool one_caller = true;
  int ctas = 1;      ///< default number of blocks
  int threads = 128; ///< default threads of a block, if the scope does not decide it
};

/// Settings from the command line; 0 or nothing: the case's own choice.
struct LaunchRequest {
  Initiator initiator = Initiator::host;
  std::optional<MemoryKind> memory;
  std::optional<CallScope> scope;
  int ctas = 0, threads = 0;
  bool graph = false;
};

/// The launch settings of a point.
struct Launch {
  Initiator initiator = Initiator::host;
  MemoryKind memory = MemoryKind::host;
  CallScope scope = CallScope::block;
  int ctas = 0, threads = 0; ///< 0: no kernel of ours is launched
  bool graph = false;
};

/// Checks the rules that do not depend on a case, and returns the memory kind to use. Throws Error
/// (usage) that states the broken rule: the ranges of --ctas and --threads; that these and --scope
/// need --initiator gpu, and --graph stream; that kernels and streams use the GPU heap.
MemoryKind check_launch(const LaunchRequest& request);
/// The launch settings of that case. Throws Error (usage) that states the rule which the request
/// breaks.
Launch launch_of(const std::string& case_name, const LaunchRules& rules,
                 const LaunchRequest& request);

} // namespace shmemctl::bench
