#include "src/runtime/bootstrap/bootstrap.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "src/base/log.h"

namespace shmemctl {

namespace {

constexpr std::uint64_t max_gathered_bytes = 1 << 20;
/// Cost of a broadcast besides its bytes, expressed in bytes of an allgather.
constexpr std::uint64_t bytes_of_a_broadcast = 64 << 10;

/// The number of bytes of each text to allgather, for the least total cost; the rest of each longer
/// text is broadcast. Texts of about the same length are gathered as a whole. A few long texts
/// among many short ones do not make all blocks long.
std::uint64_t bytes_to_allgather(std::vector<std::uint64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  const std::uint64_t count = lengths.size();
  std::uint64_t rest = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  std::uint64_t best = 0, least = rest + count * bytes_of_a_broadcast;
  // Between two lengths the cost is linear, so it is least at one of them.
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t length = lengths[i], longer = count - 1 - i;
    rest -= length;
    const std::uint64_t cost =
        count * length + (rest - longer * length) + longer * bytes_of_a_broadcast;
    if (cost < least) {
      least = cost;
      best = length;
    }
  }
  return best;
}

/// @param everywhere if false, only rank 0 gets the texts
std::vector<std::string> gather_texts(Bootstrap& bootstrap, const std::string& text,
                                      bool everywhere, const Deadline& deadline) {
  const std::vector<std::uint64_t> lengths =
      allgather_value(bootstrap, static_cast<std::uint64_t>(text.size()), deadline);
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest > max_gathered_bytes)
    throw Error(ExitCode::unavailable, "bootstrap " + std::string(bootstrap.name()), "gather texts",
                "a PE's text has " + std::to_string(longest) + " bytes, more than the limit of " +
                    std::to_string(max_gathered_bytes),
                "run the same version of shmemctl on all hosts; if it persists, report it as a bug "
                "in shmemctl");
  const auto block_bytes = static_cast<std::size_t>(bytes_to_allgather(lengths));
  const bool receives = everywhere || bootstrap.rank() == 0;
  std::vector<std::string> texts(receives ? lengths.size() : 0);
  if (block_bytes > 0) {
    std::string own = text;
    own.resize(block_bytes);
    std::string all(receives ? block_bytes * lengths.size() : 0, '\0');
    if (everywhere)
      bootstrap.allgather(own.data(), all.data(), block_bytes, deadline);
    else
      bootstrap.gather(own.data(), all.data(), block_bytes, deadline);
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      texts[rank] = all.substr(rank * block_bytes,
                               std::min(block_bytes, static_cast<std::size_t>(lengths[rank])));
  }
  std::string passed_on; // for broadcasts to a rank that does not keep the texts
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const auto length = static_cast<std::size_t>(lengths[rank]);
    if (length <= block_bytes)
      continue;
    std::string& whole = receives ? texts[rank] : passed_on;
    if (static_cast<int>(rank) == bootstrap.rank())
      whole = text;
    else
      whole.resize(length);
    bootstrap.broadcast(whole.data() + block_bytes, length - block_bytes, static_cast<int>(rank),
                        deadline);
  }
  return texts;
}

} // namespace

std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& text,
                                        const Deadline& deadline) {
  return gather_texts(bootstrap, text, true, deadline);
}

std::vector<std::string> gather_text(Bootstrap& bootstrap, const std::string& text,
                                     const Deadline& deadline) {
  return gather_texts(bootstrap, text, false, deadline);
}

void Bootstrap::gather(const void* send, void* receive, std::size_t bytes_per_rank,
                       const Deadline& deadline) {
  if (rank() == 0) {
    allgather(send, receive, bytes_per_rank, deadline);
    return;
  }
  std::string all(bytes_per_rank * static_cast<std::size_t>(size()), '\0');
  allgather(send, all.data(), bytes_per_rank, deadline);
}

void SingleBootstrap::allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                                const Deadline&) {
  if (bytes_per_rank > 0)
    std::memmove(receive, send, bytes_per_rank);
}

void SingleBootstrap::alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                               const Deadline& deadline) {
  allgather(send, receive, bytes_per_rank, deadline);
}

namespace {

/// Time for the other PEs, which have learnt of the failure as well, to end by themselves.
constexpr std::chrono::seconds others_time{1};

struct PendingAbort {
  std::unique_ptr<Bootstrap> bootstrap;
  ExitCode code;
  std::string message;
};

std::mutex pending_mutex;

/// Never destroyed, because exit handlers may run after destructors of static objects.
PendingAbort*& pending() {
  static PendingAbort* job = nullptr;
  return job;
}

void abort_pending() {
  const PendingAbort* job = nullptr;
  {
    const std::lock_guard lock(pending_mutex);
    job = pending();
  }
  if (!job)
    return;
  std::this_thread::sleep_for(others_time);
  // The object is kept: its destructor would report to the launcher again.
  job->bootstrap->abort(job->code, job->message);
}

} // namespace

void abort_at_end(std::unique_ptr<Bootstrap> bootstrap, ExitCode code, std::string message) {
  const std::lock_guard lock(pending_mutex);
  static const bool registered = std::atexit(abort_pending) == 0;
  if (pending() || !registered)
    return;
  log(LogLevel::info, "bootstrap",
      "the launcher will be asked to end the job by " + std::string(bootstrap->name()));
  pending() = new PendingAbort{std::move(bootstrap), code, std::move(message)};
}

} // namespace shmemctl
