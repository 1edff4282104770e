// OpenSHMEM programs whose PEs are threads, for ThreadSanitizer. They use memory from shmem_malloc
// only, because all threads share the global variables.
#pragma once

#include <gtest/gtest.h>

#include "src/runtime/memory/allocator.h"
#include "src/runtime/shmem/world.h"
#include "tests/support/team_world.h"

namespace shmemctl::test {

class ThreadPeWorld final : public api::World {
public:
  ThreadPeWorld(ThreadPe& pe, Teams& teams_part, Collectives& collectives_part, int level)
      : World(*pe.rma, teams_part, collectives_part), heap_(pe.heap), allocator_(pe.heap_bytes),
        level_(level) {
    rma.serialize(0, level == SHMEM_THREAD_MULTIPLE);
  }
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
    const auto offset = allocator_.allocate(size_bytes, alignment_bytes);
    collectives.barrier(team_world);
    return offset ? heap_ + *offset : nullptr;
  }
  void free(void* address) override {
    collectives.barrier(team_world);
    allocator_.free(static_cast<std::size_t>(static_cast<std::byte*>(address) - heap_));
  }
  std::size_t block_bytes(const void* address) const override {
    const auto offset = static_cast<const std::byte*>(address) - heap_;
    return allocator_.block_bytes(static_cast<std::size_t>(offset)).value_or(0);
  }
  bool reachable(int) const override { return true; }
  int thread_level() const override { return level_; }
  void finalize() override { collectives.barrier(team_world); }
  [[noreturn]] void exit_all(int status) override {
    throw Error(static_cast<ExitCode>(status), "the job", "go on", "global exit", "");
  }
  [[noreturn]] void fail(const Error& error) override { throw Error(error); }

private:
  std::byte* heap_;
  Allocator allocator_;
  int level_;
};

/// Runs `program` as every PE of a job.
inline void run_program(int n_pes, const std::function<void()>& program,
                        int thread_level = SHMEM_THREAD_SINGLE) {
  run_thread_world(n_pes, std::size_t{4} << 20, [&](ThreadPe& pe) {
    const auto count = static_cast<std::size_t>(n_pes);
    std::vector<int> all(count);
    for (std::size_t i = 0; i < count; ++i)
      all[i] = static_cast<int>(i);
    StateBlock state = make_state(pe.pe, n_pes, 1024);
    Teams teams(*pe.rma, state, reinterpret_cast<TeamSync*>(pe.internal), all, all, {0});
    Collectives collectives(teams);
    ThreadPeWorld world(pe, teams, collectives, thread_level);
    api::set_thread_world(&world);
    try {
      program();
      // No PE's memory is freed while another PE may use it.
      world.finalize();
    } catch (...) {
      api::set_thread_world(nullptr);
      throw;
    }
    api::set_thread_world(nullptr);
  });
}

/// Runs `program` on one PE; it must fail.
inline void expect_failure(const std::function<void()>& program, ExitCode code,
                           const std::string& text) {
  try {
    run_program(1, program);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
    EXPECT_FALSE(error.fix().empty());
  }
}

template <class T>
T* allocate(std::size_t count) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

} // namespace shmemctl::test
