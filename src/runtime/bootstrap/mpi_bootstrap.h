// Collectives over an MPI communicator, each with a deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/bootstrap/blocking_calls.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/bootstrap/mpi_library.h"

namespace shmemctl {

class MpiBootstrap final : public Bootstrap {
public:
  struct Arguments {
    std::string library = "libmpi.so.40";
    /// An MPI_Comm* of the program, which has initialised MPI; null is MPI_COMM_WORLD.
    const void* communicator = nullptr;
    /// Payloads are copied through buffers of about this size each, so that counts are far below
    /// MPI's limit of 2^31 - 1, and an abandoned call cannot write into memory of the caller.
    std::size_t staging_bytes = std::size_t{16} << 20;
  };
  /// Initialises MPI unless the program has already done so, and duplicates the communicator
  /// (collective). Throws Error.
  MpiBootstrap(const Arguments& arguments, const Deadline& deadline);
  /// Does not finalise MPI, which may hang. finish() and leave() do, if this object initialised it.
  ~MpiBootstrap() override;

  const char* name() const override { return "mpi"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override;
  void barrier(const Deadline& deadline) override;
  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override;
  /// Calls MPI_Finalize if this object initialised MPI.
  void leave(const Deadline& deadline) noexcept override;

private:
  /// "Rank `rank` is in call `call`": sent to all ranks when a deadline has passed, to find the
  /// rank that is not in this call.
  struct ProgressQuery {
    std::int64_t rank, call, wants_response;
  };
  /// Precedes each payload of an allgather or alltoall, so that PEs notice if they are out of step.
  struct Header {
    std::uint64_t kind, bytes;
  };
  struct Buffers {
    std::vector<std::byte> send, receive;
    /// Progress queries that MPI may still be sending.
    std::deque<ProgressQuery> pending_queries;
  };

  void initialise(const Deadline& deadline);
  MpiComm given_communicator(const void* communicator) const;
  void copy_communicator(MpiComm original, const Deadline& deadline);
  void check(int code, const char* call) const;
  void check_header(const Header& local, int from) const;
  std::byte* begin_send(const Header& header, std::size_t blocks, std::size_t bytes);
  std::byte* begin_receive(std::size_t blocks, std::size_t bytes);
  void wait(MpiRequest& request, const char* call, const Deadline& deadline);
  int missing_rank();
  void send_progress_query(int rank, bool wants_response);
  void answer_progress_queries();
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
  std::size_t chunk_bytes() const;

  MpiLibrary mpi_;
  /// The thread that initialised MPI; null if the program had already initialised it.
  std::unique_ptr<BlockingCalls> blocking_;
  MpiComm comm_ = nullptr;
  std::size_t staging_bytes_;
  std::unique_ptr<Buffers> buffers_ = std::make_unique<Buffers>();
  std::vector<std::int64_t> last_call_of_; ///< by rank: the last call that the rank said it was in
  std::int64_t call_ = 0;                  ///< number of the call that this rank is in
  bool pending_ = false;                   ///< MPI may still access the buffers
};

} // namespace shmemctl
