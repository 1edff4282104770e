// The bootstrap: how the processes of a job find each other before there is any transport.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "src/base/archive.h"
#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/job_health.h"
#include "src/base/secret.h"

namespace shmemctl {

/// Collectives over all processes of a job. Not thread safe. Calls with a deadline are collective;
/// except leave(), they throw Error: `deadline` (JobHealth::give_up(), which names the PE that was
/// waited for), `unavailable` (a process was lost, calls do not match, the launcher refused), or
/// what JobHealth::check() throws. After an Error only abort() may be called.
class Bootstrap {
public:
  virtual ~Bootstrap() = default;

  /// "uid", "local", "mpi", "pmi", "pmi2", "pmix", "openshmem", "plugin" or "single".
  virtual const char* name() const = 0;
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// `receive` has size() blocks of `bytes_per_rank`, by rank. The buffers may not overlap,
  /// except that `send` may be this rank's block in `receive`.
  virtual void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                         const Deadline& deadline) = 0;
  /// As allgather(), but only rank 0 receives; on other ranks `receive` is not used. The default
  /// implementation is an allgather.
  virtual void gather(const void* send, void* receive, std::size_t bytes_per_rank,
                      const Deadline& deadline);
  /// Block r of `send` goes to rank r; block r of `receive` comes from rank r. The buffers may not
  /// overlap.
  virtual void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                        const Deadline& deadline) = 0;
  virtual void barrier(const Deadline& deadline) = 0;
  virtual void broadcast(void* data, std::size_t size_bytes, int root,
                         const Deadline& deadline) = 0;

  /// A secret of the job: `said`, the random bits that one PE has broadcast to all, mixed with the
  /// secret by which the PEs have authenticated, so that an eavesdropper on the network does not
  /// learn it. Returns `said` itself if the PEs have no such secret.
  virtual Secret mix_secret(const Secret& said) const { return said; }

  /// Asks the launcher to end the whole job; `uid` and `local` tell the other PEs. May return.
  virtual void abort(ExitCode code, const std::string& message) noexcept = 0;
  /// Deregisters from the launcher (collective); no call may follow. After an Error, the object may
  /// be destroyed without it.
  virtual void finish(const Deadline& deadline) = 0;
  /// To be called by all processes of the job before they exit deliberately without finish(), with
  /// any exit status: deregisters from a launcher that would treat the exit as a crash. Best
  /// effort: returns by the deadline in any case, and does not check the job's health.
  virtual void leave(const Deadline& deadline) noexcept { static_cast<void>(deadline); }

  /// From now on every wait checks `health`, which must stay valid until the next watch() or the
  /// end of this object. Null: nothing is checked.
  void watch(JobHealth* health) { health_ = health ? health : &nobody_; }

protected:
  Bootstrap(int rank, int size) : rank_(rank), size_(size) {}
  /// For implementations that get rank and size after construction.
  void set_ranks(int rank, int size) {
    rank_ = rank;
    size_ = size;
  }
  JobHealth& health() const { return *health_; }

private:
  int rank_, size_;
  JobHealth nobody_;
  JobHealth* health_ = &nobody_;
};

/// Collective: returns the values of all ranks, by rank.
template <class T>
std::vector<T> allgather_value(Bootstrap& bootstrap, const T& value, const Deadline& deadline) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(bootstrap.size()));
  bootstrap.allgather(&value, values.data(), sizeof(T), deadline);
  return values;
}

/// One text of each rank, by rank; each may have up to 1 MiB. If their lengths differ much, the
/// long ones are broadcast, so that a rank does not receive size() times the length of the longest
/// text. Throws Error if a text is longer.
std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& text,
                                        const Deadline& deadline);

/// As allgather_text(), but only rank 0 gets the texts; other ranks get an empty vector. For texts
/// that only the report needs: if the length of a text is proportional to the number of ranks, the
/// texts together grow with its square, and allgather_text() would send them to every rank.
std::vector<std::string> gather_text(Bootstrap& bootstrap, const std::string& text,
                                     const Deadline& deadline);

/// Collective: the values of all PEs, by PE; they are sent as archives. Throws Error as
/// allgather_text() does, or malformed_message().
template <class T>
std::vector<T> allgather_archived(Bootstrap& bootstrap, const T& own, const std::string& what,
                                  const Deadline& deadline) {
  const std::vector<std::string> messages = allgather_text(bootstrap, to_bytes(own), deadline);
  std::vector<T> values;
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    values.push_back(value_of_pe<T>(messages[pe], pe, what));
  return values;
}

/// The bootstrap of a job of one process, which needs no launcher.
class SingleBootstrap final : public Bootstrap {
public:
  SingleBootstrap() : Bootstrap(0, 1) {}
  const char* name() const override { return "single"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override;
  void barrier(const Deadline&) override {}
  void broadcast(void*, std::size_t, int, const Deadline&) override {}
  void abort(ExitCode, const std::string&) noexcept override {}
  void finish(const Deadline&) override {}
};

// Aborting a job in which a process will not exit by itself.

/// Keeps the bootstrap until this process exits (exit(), or main() returns), when it has printed
/// its error and written its report. An exit handler then waits one second, in which the other PEs
/// can end by themselves, and asks the launcher to abort the job. Otherwise a process manager that
/// waits for all processes (srun --mpi=pmi2) would wait for the stopped one. Only the first call
/// has an effect.
/// @param bootstrap no other call may be in progress
void abort_at_end(std::unique_ptr<Bootstrap> bootstrap, ExitCode code, std::string message);

} // namespace shmemctl
