#include "src/runtime/bootstrap/mpi_bootstrap.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "src/base/log.h"
#include "src/base/process.h"
#include "src/base/wait.h"
#include "src/runtime/bootstrap/chunks.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr std::uint64_t allgather_kind = 1, alltoall_kind = 2;

std::string text_of(std::uint64_t kind) {
  return kind == allgather_kind ? "allgather" : kind == alltoall_kind ? "alltoall" : "another call";
}

} // namespace

MpiBootstrap::MpiBootstrap(const Arguments& arguments, const Deadline& deadline)
    : Bootstrap(0, 1), mpi_(open_mpi_library(arguments.library)),
      staging_bytes_(arguments.staging_bytes) {
  int initialised = 0, finalised = 0;
  check(mpi_.Finalized(&finalised), "MPI_Finalized");
  if (finalised != 0)
    throw Error(ExitCode::unavailable, "MPI", "use", "this program has already called MPI_Finalize",
                "start the runtime before MPI_Finalize");
  check(mpi_.Initialized(&initialised), "MPI_Initialized");
  if (initialised == 0 && arguments.communicator != nullptr)
    throw Error(ExitCode::usage, "communicator", "use", "MPI is not initialized",
                "call MPI_Init before passing a communicator");
  if (initialised == 0)
    initialise(deadline);
  copy_communicator(given_communicator(arguments.communicator), deadline);
}

MpiBootstrap::~MpiBootstrap() {
  if (!pending_ && buffers_->pending_queries.empty())
    return;
  // MPI may still read or write the buffers of an abandoned call, until the program's end.
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Buffers>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(buffers_));
}

/// MPI_Init waits for every process of the job and has no timeout.
void MpiBootstrap::initialise(const Deadline& deadline) {
  blocking_ = std::make_unique<BlockingCalls>();
  const auto result = std::make_shared<int>(MpiLibrary::success);
  blocking_->run(
      "MPI_Init",
      [init = mpi_.Init_thread, result] {
        const SignalDispositions keep;
        int provided = 0;
        *result = init(nullptr, nullptr, MpiLibrary::thread_serialized, &provided);
      },
      deadline, health());
  check(*result, "MPI_Init_thread");
  check(mpi_.Comm_set_errhandler(mpi_.world, mpi_.errors_return), "MPI_Comm_set_errhandler");
}

MpiComm MpiBootstrap::given_communicator(const void* communicator) const {
  if (communicator == nullptr)
    return mpi_.world;
  const MpiComm given = *static_cast<const MpiComm*>(communicator);
  if (given == nullptr || given == mpi_.no_comm)
    throw Error(ExitCode::usage, "communicator", "use", "it is MPI_COMM_NULL",
                "pass a communicator that contains this process");
  int inter = 0;
  check(mpi_.Comm_test_inter(given, &inter), "MPI_Comm_test_inter");
  if (inter != 0)
    throw Error(ExitCode::usage, "communicator", "use", "it is an inter-communicator",
                "merge it with MPI_Intercomm_merge first");
  return given;
}

void MpiBootstrap::copy_communicator(MpiComm original, const Deadline& deadline) {
  int rank = 0, size = 1;
  check(mpi_.Comm_rank(original, &rank), "MPI_Comm_rank");
  check(mpi_.Comm_size(original, &size), "MPI_Comm_size");
  set_ranks(rank, size);
  last_call_of_.assign(ranks(), -1);
  MpiRequest request = nullptr;
  check(mpi_.Comm_idup(original, &comm_, &request), "MPI_Comm_idup");
  // Progress queries need a communicator, which does not exist yet: the timeout error names no
  // rank.
  Wait wait(health(), deadline, {"MPI_Comm_idup"}, library_backoff);
  wait_until(wait, [&] {
    int done = 0;
    check(mpi_.Test(&request, &done, MpiLibrary::ignore_status), "MPI_Comm_idup");
    return done != 0;
  });
  check(mpi_.Comm_set_errhandler(comm_, mpi_.errors_return), "MPI_Comm_set_errhandler");
}

void MpiBootstrap::check(int code, const char* call) const {
  if (code != MpiLibrary::success)
    throw Error(ExitCode::unavailable, call, "complete", mpi_.error_text(code),
                "check the output of the launcher and of the other PEs");
}

std::size_t MpiBootstrap::chunk_bytes() const {
  return std::max<std::size_t>(1, staging_bytes_ / ranks());
}

/// Makes room for blocks of a header and `bytes` of payload each, and fills in the headers. Returns
/// the address of the first payload.
std::byte* MpiBootstrap::begin_send(const Header& header, std::size_t blocks, std::size_t bytes) {
  const std::size_t block_bytes = sizeof(Header) + bytes;
  buffers_->send.resize(blocks * block_bytes);
  for (std::size_t block = 0; block < blocks; ++block)
    copy_bytes(buffers_->send.data() + block * block_bytes, &header, sizeof header);
  return buffers_->send.data() + sizeof(Header);
}

std::byte* MpiBootstrap::begin_receive(std::size_t blocks, std::size_t bytes) {
  buffers_->receive.resize(blocks * (sizeof(Header) + bytes));
  return buffers_->receive.data() + sizeof(Header);
}

void MpiBootstrap::check_header(const Header& local, int from) const {
  const std::size_t block_bytes = buffers_->receive.size() / ranks();
  Header remote{};
  copy_bytes(&remote, buffers_->receive.data() + static_cast<std::size_t>(from) * block_bytes,
             sizeof remote);
  if (remote.kind != local.kind || remote.bytes != local.bytes)
    throw Error(ExitCode::unavailable, "bootstrap mpi", "continue",
                "PE " + std::to_string(from) + " is out of step: it calls " + text_of(remote.kind) +
                    " of " + std::to_string(remote.bytes) + " bytes, and this PE calls " +
                    text_of(local.kind) + " of " + std::to_string(local.bytes) + " bytes",
                "run the same program and version on all PEs");
}

void MpiBootstrap::allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                             const Deadline& deadline) {
  const Header header{allgather_kind, bytes_per_rank};
  for_each_chunk(bytes_per_rank, chunk_bytes(), [&](std::size_t offset, std::size_t bytes) {
    const std::size_t block_bytes = sizeof(Header) + bytes;
    copy_bytes(begin_send(header, 1, bytes), static_cast<const std::byte*>(send) + offset, bytes);
    const std::byte* received = begin_receive(ranks(), bytes);
    const int count = static_cast<int>(block_bytes);
    MpiRequest request = nullptr;
    check(mpi_.Iallgather(buffers_->send.data(), count, mpi_.byte, buffers_->receive.data(), count,
                          mpi_.byte, comm_, &request),
          "MPI_Iallgather");
    wait(request, "allgather", deadline);
    for (int from = 0; from < size(); ++from)
      check_header(header, from);
    copy_blocks(static_cast<std::byte*>(receive) + offset, bytes_per_rank, received, block_bytes,
                bytes, ranks());
  });
}

void MpiBootstrap::alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                            const Deadline& deadline) {
  const Header header{alltoall_kind, bytes_per_rank};
  for_each_chunk(bytes_per_rank, chunk_bytes(), [&](std::size_t offset, std::size_t bytes) {
    const std::size_t block_bytes = sizeof(Header) + bytes;
    copy_blocks(begin_send(header, ranks(), bytes), block_bytes,
                static_cast<const std::byte*>(send) + offset, bytes_per_rank, bytes, ranks());
    const std::byte* received = begin_receive(ranks(), bytes);
    const int count = static_cast<int>(block_bytes);
    MpiRequest request = nullptr;
    check(mpi_.Ialltoall(buffers_->send.data(), count, mpi_.byte, buffers_->receive.data(), count,
                         mpi_.byte, comm_, &request),
          "MPI_Ialltoall");
    wait(request, "alltoall", deadline);
    for (int from = 0; from < size(); ++from)
      check_header(header, from);
    copy_blocks(static_cast<std::byte*>(receive) + offset, bytes_per_rank, received, block_bytes,
                bytes, ranks());
  });
}

void MpiBootstrap::barrier(const Deadline& deadline) {
  MpiRequest request = nullptr;
  check(mpi_.Ibarrier(comm_, &request), "MPI_Ibarrier");
  wait(request, "barrier", deadline);
}

void MpiBootstrap::broadcast(void* data, std::size_t size_bytes, int root,
                             const Deadline& deadline) {
  for_each_chunk(size_bytes, staging_bytes_, [&](std::size_t offset, std::size_t bytes) {
    buffers_->send.resize(bytes);
    if (rank() == root)
      copy_bytes(buffers_->send.data(), static_cast<const std::byte*>(data) + offset, bytes);
    MpiRequest request = nullptr;
    check(mpi_.Ibcast(buffers_->send.data(), static_cast<int>(bytes), mpi_.byte, root, comm_,
                      &request),
          "MPI_Ibcast");
    wait(request, "broadcast", deadline);
    if (rank() != root)
      copy_bytes(static_cast<std::byte*>(data) + offset, buffers_->send.data(), bytes);
  });
}

void MpiBootstrap::abort(ExitCode code, const std::string& message) noexcept {
  if (blocking_ && blocking_->abandoned())
    return; // a thread hangs in MPI_Init or MPI_Finalize: MPI cannot be asked
  log(LogLevel::info, "bootstrap", "MPI_Abort: " + message);
  mpi_.Abort(comm_ != nullptr ? comm_ : mpi_.world, static_cast<int>(code));
}

void MpiBootstrap::finish(const Deadline& deadline) {
  barrier(deadline);
  check(mpi_.Comm_free(&comm_), "MPI_Comm_free");
  if (blocking_) {
    const auto result = std::make_shared<int>(MpiLibrary::success);
    blocking_->run(
        "MPI_Finalize", [finalize = mpi_.Finalize, result] { *result = finalize(); }, deadline,
        health());
    check(*result, "MPI_Finalize");
    buffers_->pending_queries.clear();
  }
}

void MpiBootstrap::leave(const Deadline& deadline) noexcept {
  if (!blocking_ || blocking_->abandoned())
    return;
  try {
    JobHealth nobody; // the job is ending already
    blocking_->run(
        "MPI_Finalize", [finalize = mpi_.Finalize] { finalize(); }, deadline, nobody);
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
}

namespace {

/// Throws Error if MPI started as a job of one process in a larger job, as an Open MPI does that
/// does not support the launcher's interface.
void refuse_silent_single(const Bootstrap& bootstrap, const Environment& environment) {
  const long long launched = launched_size(environment);
  if (bootstrap.size() == 1 && launched > 1)
    throw Error(ExitCode::unavailable, "MPI", "use",
                launcher_text(environment) + " started " + std::to_string(launched) +
                    " processes, but MPI sees one: this Open MPI does not support that launcher",
                "start the job with mpirun, or set SHMEMCTL_BOOTSTRAP=auto");
}

} // namespace

std::unique_ptr<Bootstrap> open_mpi(BootstrapRequest& request, const Deadline& deadline) {
  MpiBootstrap::Arguments arguments;
  arguments.library = request.options->text("MPI_LIBRARY");
  arguments.communicator = request.mpi_communicator;
  auto bootstrap = std::make_unique<MpiBootstrap>(arguments, deadline);
  if (arguments.communicator == nullptr)
    refuse_silent_single(*bootstrap, request.environment);
  return bootstrap;
}

// Waits of the MPI bootstrap, and the search for the rank that has not entered a call.

namespace {

constexpr int progress_query_tag = 0x5348;
/// How long the other ranks have to answer once a deadline has passed.
constexpr std::chrono::duration<double> answer_span{1.0};
/// In larger jobs queries from all ranks to all ranks would be too many messages.
constexpr int max_ranks_to_query = 1024;
constexpr int polls_between_queries = 16;

} // namespace

void MpiBootstrap::wait(MpiRequest& request, const char* call, const Deadline& deadline) {
  ++call_;
  pending_ = true;
  // `find_peer` asks the other ranks, which may take a second; it is called at the deadline only.
  Wait wait(health(), deadline, {.step = call, .find_peer = [this] { return missing_rank(); }},
            library_backoff);
  for (int poll = 1;; ++poll) {
    int done = 0;
    check(mpi_.Test(&request, &done, MpiLibrary::ignore_status), call);
    if (done != 0) {
      pending_ = false;
      return;
    }
    if (poll % polls_between_queries == 0)
      answer_progress_queries();
    wait.pause();
  }
}

/// Asks every rank which call it is in. Waiting ranks respond; the first one that does not, or that
/// is in an earlier call, is the missing one. -1 if there is none, or if the job is too large.
int MpiBootstrap::missing_rank() {
  if (size() > max_ranks_to_query)
    return -1;
  last_call_of_[static_cast<std::size_t>(rank())] = call_;
  for (int other = 0; other < size(); ++other)
    if (other != rank())
      send_progress_query(other, true);
  const Deadline answers_due = Deadline::after(answer_span);
  const auto culprit = [this] {
    return std::find_if(last_call_of_.begin(), last_call_of_.end(),
                        [this](std::int64_t call) { return call < call_; });
  };
  Backoff backoff(library_backoff);
  while (culprit() != last_call_of_.end() && !answers_due.passed()) {
    answer_progress_queries();
    health().check();
    backoff.pause();
  }
  return culprit() == last_call_of_.end() ? -1
                                          : static_cast<int>(culprit() - last_call_of_.begin());
}

void MpiBootstrap::send_progress_query(int other, bool wants_response) {
  buffers_->pending_queries.push_back({rank(), call_, wants_response});
  MpiRequest request = nullptr;
  check(mpi_.Isend(&buffers_->pending_queries.back(), sizeof(ProgressQuery), mpi_.byte, other,
                   progress_query_tag, comm_, &request),
        "MPI_Isend");
  check(mpi_.Request_free(&request), "MPI_Request_free");
}

void MpiBootstrap::answer_progress_queries() {
  for (;;) {
    int waiting = 0;
    check(mpi_.Iprobe(MpiLibrary::any_source, progress_query_tag, comm_, &waiting,
                      MpiLibrary::ignore_status),
          "MPI_Iprobe");
    if (waiting == 0)
      return;
    ProgressQuery query{};
    check(mpi_.Recv(&query, sizeof query, mpi_.byte, MpiLibrary::any_source, progress_query_tag,
                    comm_, MpiLibrary::ignore_status),
          "MPI_Recv");
    if (query.rank < 0 || query.rank >= size())
      continue;
    std::int64_t& last = last_call_of_[static_cast<std::size_t>(query.rank)];
    last = std::max(last, query.call);
    if (query.wants_response != 0)
      send_progress_query(static_cast<int>(query.rank), false);
  }
}

} // namespace shmemctl
