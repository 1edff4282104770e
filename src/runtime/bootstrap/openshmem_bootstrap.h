// Collectives over OpenSHMEM: puts and polled flags, because its own collectives have no timeout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/bootstrap/blocking_calls.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/bootstrap/openshmem_library.h"

namespace shmemctl {

/// Every collective is a round, or several for large payloads. In a round, each PE puts one frame
/// into a slot of every other PE, then a flag with the number of the round. Two sets of slots
/// suffice: a PE can begin round n + 2 only after all PEs have begun round n + 1, and so have read
/// the frames of round n.
class OpenshmemBootstrap final : public Bootstrap {
public:
  struct Arguments {
    std::string library = "liboshmem.so.40";
    /// Size of the symmetric memory for all slots.
    std::size_t staging_bytes = std::size_t{8} << 20;
  };
  /// Initialises OpenSHMEM unless the program has already done so. Throws Error.
  OpenshmemBootstrap(const Arguments& arguments, const Deadline& deadline);
  /// Without finish(), the program's end waits for no PE if this object initialised OpenSHMEM.
  ~OpenshmemBootstrap() override;

  const char* name() const override { return "openshmem"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override;
  void barrier(const Deadline& deadline) override;
  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override;

private:
  enum class Kind : std::uint64_t { allgather = 1, alltoall, barrier, broadcast };
  struct Header {
    std::uint64_t kind = 0;
    std::uint64_t bytes = 0; ///< size of the caller's argument, the same on all PEs
    std::uint64_t root = 0;
    std::uint64_t unused = 0;
  };
  /// What this PE sends in one round: one payload for each PE, or the same for all.
  struct Round {
    Header header;
    const std::byte* payload = nullptr;
    std::size_t payload_bytes = 0;
    /// Distance between the payloads of consecutive PEs; 0 if all PEs get the same payload.
    std::size_t stride_bytes = 0;
  };
  struct Shared;

  void set_up(std::size_t staging_bytes, const Deadline& deadline);
  void run_round(const Round& round, const Deadline& deadline);
  void put_frames(const Round& round, const char* step, const Deadline& deadline);
  void wait_for_frames(const char* step, const Deadline& deadline);
  int first_missing() const;
  void check_headers(const Header& local) const;
  std::byte* slot(int from) const;
  const std::byte* payload_from(int from) const { return slot(from) + sizeof(Header); }
  std::size_t payload_limit_bytes() const;
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  static const char* to_string(Kind kind);

  std::shared_ptr<Shared> shared_; ///< also held by abandoned calls
  BlockingCalls blocking_;         ///< the thread that makes all OpenSHMEM calls
  std::uint64_t round_ = 0;
  bool own_initialisation_ = false;
  bool finished_ = false;
};

} // namespace shmemctl
