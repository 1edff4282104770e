// How a call of the MPI bootstrap waits, and how it finds out who did not come.
#include <algorithm>
#include <chrono>

#include "src/bootstrap/backoff.h"
#include "src/bootstrap/mpi_bootstrap.h"

namespace shmemctl {

namespace {

constexpr int hail_tag = 0x5348;
/// How long others have to answer once a deadline has passed.
constexpr std::chrono::duration<double> answer_span{1.0};
/// In larger jobs everybody asking everybody would be a storm of its own.
constexpr int most_ranks_to_hail = 1024;
constexpr int turns_between_hearings = 16;

} // namespace

void MpiBootstrap::wait(MpiRequest& request, const char* call, const Deadline& deadline) {
  ++call_;
  pending_ = true;
  PollBackoff backoff;
  for (int turn = 0;; ++turn, backoff.pause()) {
    int done = 0;
    check(mpi_.Test(&request, &done, MpiLibrary::ignore_status), call);
    if (done != 0) {
      pending_ = false;
      return;
    }
    health().check();
    if (turn % turns_between_hearings == turns_between_hearings - 1)
      hear_hails();
    if (deadline.passed())
      give_up(call);
  }
}

void MpiBootstrap::give_up(const char* call) {
  const int culprit = missing_rank();
  health().waiting_for(culprit);
  health().give_up(call, culprit);
}

/// Asks every rank which call it is in. Ranks that wait answer; the first one that does not, or
/// that is in an earlier call, is the culprit. -1 if nobody can be blamed.
int MpiBootstrap::missing_rank() {
  if (size() > most_ranks_to_hail)
    return -1;
  heard_[static_cast<std::size_t>(rank())] = call_;
  for (int other = 0; other < size(); ++other)
    if (other != rank())
      hail(other, true);
  const Deadline answers_due = Deadline::after(answer_span);
  const auto culprit = [this] {
    return std::find_if(heard_.begin(), heard_.end(),
                        [this](std::int64_t call) { return call < call_; });
  };
  PollBackoff backoff;
  while (culprit() != heard_.end() && !answers_due.passed()) {
    hear_hails();
    health().check();
    backoff.pause();
  }
  return culprit() == heard_.end() ? -1 : static_cast<int>(culprit() - heard_.begin());
}

void MpiBootstrap::hail(int other, bool wants_answer) {
  buffers_->outbox.push_back({rank(), call_, wants_answer});
  MpiRequest request = nullptr;
  check(mpi_.Isend(&buffers_->outbox.back(), sizeof(Hail), mpi_.byte, other, hail_tag, comm_,
                   &request),
        "MPI_Isend");
  check(mpi_.Request_free(&request), "MPI_Request_free");
}

void MpiBootstrap::hear_hails() {
  for (;;) {
    int waiting = 0;
    check(mpi_.Iprobe(MpiLibrary::any_source, hail_tag, comm_, &waiting, MpiLibrary::ignore_status),
          "MPI_Iprobe");
    if (waiting == 0)
      return;
    Hail heard{};
    check(mpi_.Recv(&heard, sizeof heard, mpi_.byte, MpiLibrary::any_source, hail_tag, comm_,
                    MpiLibrary::ignore_status),
          "MPI_Recv");
    if (heard.rank < 0 || heard.rank >= size())
      continue;
    std::int64_t& last = heard_[static_cast<std::size_t>(heard.rank)];
    last = std::max(last, heard.call);
    if (heard.wants_answer != 0)
      hail(static_cast<int>(heard.rank), false);
  }
}

} // namespace shmemctl
