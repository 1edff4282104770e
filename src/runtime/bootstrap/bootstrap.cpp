#include "src/runtime/bootstrap/bootstrap.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "src/base/log.h"

namespace shmemctl {

namespace {
constexpr std::uint64_t max_gathered_bytes = 1 << 20;
}

std::vector<std::string> allgather_text(Bootstrap& bootstrap, const std::string& text,
                                        const Deadline& deadline) {
  const std::vector<std::uint64_t> lengths =
      allgather_value(bootstrap, static_cast<std::uint64_t>(text.size()), deadline);
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest > max_gathered_bytes)
    throw Error(ExitCode::unavailable, "bootstrap " + std::string(bootstrap.name()),
                "run an allgather", "a PE announced " + std::to_string(longest) + " bytes",
                "run the same version of shmemctl on all hosts");
  const auto block_bytes = static_cast<std::size_t>(longest);
  std::string own = text;
  own.resize(block_bytes);
  std::string all(block_bytes * lengths.size(), '\0');
  if (block_bytes > 0)
    bootstrap.allgather(own.data(), all.data(), block_bytes, deadline);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(all.substr(rank * block_bytes, static_cast<std::size_t>(lengths[rank])));
  return texts;
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

/// The others have learnt of the failure at the same time, and end by themselves meanwhile.
constexpr std::chrono::seconds others_time{1};

struct PendingAbort {
  std::unique_ptr<Bootstrap> bootstrap;
  ExitCode code;
  std::string message;
};

std::mutex pending_mutex;

/// Never destroyed: exit handlers run among the destructors of static objects.
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
