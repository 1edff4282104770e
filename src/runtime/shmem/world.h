// The state of the C interface: the parts of one PE's runtime, and how calls find them.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/buffers.h"
#include "src/runtime/collectives.h"
#include "src/runtime/rma.h"
#include "src/runtime/shmem/include/shmem.h"
#include "src/runtime/teams.h"

/// A shmem_team_t points to this.
struct shmemctl_team {
  shmemctl::TeamId id = shmemctl::invalid_team;
  int num_contexts = 0; ///< as requested when the team was created
};

/// A shmem_ctx_t points to this.
struct shmemctl_context {
  int number = 0; ///< number of the runtime's context; 0 is the default one
  shmem_team_t team = nullptr;
  long options = 0;
};

namespace shmemctl {
class Buffers;
class PeGpu;
} // namespace shmemctl

namespace shmemctl::api {

/// The parts of a PE's runtime that the C interface uses. There is one object for each PE: one in a
/// process (process.cpp), or one for each thread if PEs are threads.
class World {
public:
  World(Rma& rma_part, Teams& teams_part, Collectives& collectives_part)
      : rma(rma_part), teams(teams_part), collectives(collectives_part) {}
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Rma& rma;
  Teams& teams;
  Collectives& collectives;

  /// Collective, with a barrier at the end; nullptr if there is no room.
  virtual void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) = 0;
  /// Collective, with a barrier at the beginning.
  virtual void free(void* address) = 0;
  /// Size of the heap block that begins at `address`; 0 if none does.
  virtual std::size_t block_bytes(const void* address) const = 0;
  /// Whether any transport reaches `pe`.
  virtual bool reachable(int pe) const = 0;
  /// nullptr if PEs are threads.
  virtual Buffers* buffers() { return nullptr; }
  /// Keeps a registered buffer open; returns its address in this process.
  void* hold(BufferRef buffer);
  /// Ends one hold() that returned `address`; false if there is none.
  bool let_go(const void* address);
  void let_all_go();
  /// This PE's GPU; nullptr if the job has no GPUs.
  virtual PeGpu* gpu() { return nullptr; }
  /// Why gpu() is nullptr, in one clause that stays valid as long as this object; "" if the PE has
  /// a GPU.
  virtual const char* why_no_gpu() const { return "the PEs of this job are threads"; }
  virtual int thread_level() const = 0;
  virtual void finalize() = 0;
  /// Ends the job with this status.
  [[noreturn]] virtual void exit_all(int status) = 0;
  /// To be called when a call has failed: prints the error, notifies the other PEs, and ends this
  /// one.
  [[noreturn]] virtual void fail(const Error& error) = 0;

  /// nullptr if all contexts are in use.
  shmem_ctx_t make_context(shmem_team_t team, long options);
  void destroy_context(shmem_ctx_t context);
  shmem_team_t make_team(TeamId id, int num_contexts);
  /// Collective over the team. Its contexts are destroyed, too.
  void destroy_team(shmem_team_t team);
  /// To be held during calls that change the heap, which several threads may make.
  std::mutex& heap_mutex() { return heap_mutex_; }

private:
  std::mutex heap_mutex_, handles_mutex_, held_mutex_;
  std::multimap<const void*, BufferRef> held_; ///< by their addresses in this process
  std::vector<std::unique_ptr<shmemctl_context>> contexts_;
  std::vector<std::unique_ptr<shmemctl_team>> teams_;
  std::bitset<limits::max_contexts> numbers_{1};
};

/// The process's world between shmem_init and shmem_finalize.
extern std::atomic<World*> process_world;
/// From now on calls of this thread use `world`, if there is no process_world; nullptr ends this.
void set_thread_world(World* world);
/// The world of this thread. Throws Error (usage) if it has none.
World& thread_world();

inline World& current() {
  World* world = process_world.load(std::memory_order_acquire);
  return world ? *world : thread_world();
}

/// Calls World::fail(); without a world, prints the error and ends the process.
[[noreturn]] void fail(const Error& error);
[[noreturn]] void fail_unexpectedly(const char* what);

/// Runs the body of a function of the C interface, from which no exception may escape: calls fail()
/// for whatever it throws.
template <class Body>
decltype(auto) guarded(Body&& body) {
  try {
    return body(current());
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail_unexpectedly(error.what());
  }
}

Error wrong_use(const std::string& subject, const std::string& attempted,
                const std::string& problem, const std::string& fix);

/// Converts SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD. Throws Error (usage) for another value.
SignalOp signal_op(int op);
/// Throws Error (usage) for a value that is not one of SHMEM_CMP_*.
void require_comparison(int cmp);

/// The context of a call. Throws Error (usage) for SHMEM_CTX_INVALID.
inline shmemctl_context& checked(shmem_ctx_t context) {
  if (!context)
    throw wrong_use("SHMEM_CTX_INVALID", "communicate", "it is not a context",
                    "create one with shmem_ctx_create, and check what that returns");
  return *context;
}
/// Converts PE `pe` of the context's team to its number in the world. Throws Error (usage) if the
/// team has no such PE.
int world_pe_in_team(World& world, const shmemctl_context& context, int pe);
/// The same for any context.
inline int world_pe(World& world, const shmemctl_context& context, int pe) {
  return context.team == SHMEM_TEAM_WORLD ? pe : world_pe_in_team(world, context, pe);
}

/// The fast path for one word: the address at which this PE may access the word of PE `pe`
/// directly. nullptr if it may not, if there is no process_world, or if the context belongs to a
/// team other than the world; then the call takes the full path. The lookup stores nothing, so that
/// it does not delay the access (see LoadStoreTable).
[[gnu::always_inline]] inline std::byte* mapped_word(shmem_ctx_t context, const void* address,
                                                     std::size_t size_bytes, int pe) {
  const World* world = process_world.load(std::memory_order_acquire);
  const bool in_world =
      context == SHMEM_CTX_DEFAULT || (context && context->team == SHMEM_TEAM_WORLD);
  if (__builtin_expect(!world || !in_world, 0))
    return nullptr;
  return world->rma.mapped_word(address, size_bytes, pe);
}
/// The same for an atomic operation on the word.
[[gnu::always_inline]] inline std::byte* mapped_atomic(shmem_ctx_t context, const void* address,
                                                       std::size_t size_bytes, int pe) {
  const World* world = process_world.load(std::memory_order_acquire);
  const bool in_world =
      context == SHMEM_CTX_DEFAULT || (context && context->team == SHMEM_TEAM_WORLD);
  if (__builtin_expect(!world || !in_world, 0))
    return nullptr;
  return world->rma.mapped_atomic(address, size_bytes, pe);
}

/// The unsigned type of `size_bytes` bytes.
template <std::size_t size_bytes>
using WordOf = std::conditional_t<
    size_bytes == 8, std::uint64_t,
    std::conditional_t<size_bytes == 4, std::uint32_t,
                       std::conditional_t<size_bytes == 2, std::uint16_t, std::uint8_t>>>;

} // namespace shmemctl::api
