// Joining a `uid` job, and its collectives.
#include <algorithm>
#include <cstring>
#include <limits>
#include <unistd.h>

#include "src/base/error.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/peer_links.h"
#include "src/bootstrap/uid.h"

namespace shmemctl {

namespace {

std::uint32_t milliseconds(double span_s) {
  const double most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(span_s * 1000, most));
}

std::string who_am_i() {
  char name[256] = {};
  const bool known = gethostname(name, sizeof(name) - 1) == 0;
  return "host " + std::string(known ? name : "unknown") + ", process " + std::to_string(getpid());
}

/// Tells a second attempt of this PE from a second PE.
std::uint64_t attempt_number() {
  const Secret bytes = random_secret();
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::string place_of(const UniqueId& id) {
  return "the rendezvous at " + (id.addresses.empty() ? "no address" : id.addresses[0].text());
}

Join join_frame(const UidArguments& arguments, const std::vector<Listener>& listeners,
                const Deadline& deadline) {
  Join join;
  join.rank = arguments.rank;
  join.size = arguments.size;
  join.nonce = attempt_number();
  join.remaining_ms = milliseconds(deadline.remaining_s());
  join.who = who_am_i();
  for (const Listener& listener : listeners)
    join.addresses.push_back(listener.address().text());
  return join;
}

Neighbours await_neighbours(Socket& rendezvous, int size, const Deadline& deadline) {
  const FrameReader frame = await_from_rendezvous(rendezvous, deadline);
  if (frame.header().kind == FrameKind::failure)
    throw error_of(FailureReport::decode(frame.payload()).value_or(FailureReport{}),
                   rendezvous.peer(), "join the job of");
  std::optional<Neighbours> neighbours;
  if (frame.header().kind == FrameKind::neighbours)
    neighbours = Neighbours::decode(frame.payload());
  if (!neighbours || neighbours->addresses.size() != static_cast<std::size_t>(levels_of(size)))
    throw Error(ExitCode::unavailable, rendezvous.peer(), "join the job of",
                "it does not name the neighbours of this PE",
                "start all PEs with the same version of this tool");
  return *neighbours;
}

class UidBootstrap final : public Bootstrap {
public:
  UidBootstrap(UidArguments arguments, NeighbourSockets sockets)
      : Bootstrap(arguments.rank, arguments.size), name_(std::move(arguments.name)),
        secret_(arguments.id.secret), rendezvous_(std::move(arguments.rendezvous)),
        links_(arguments.rank, arguments.size, std::move(sockets)) {}

  ~UidBootstrap() override {
    if (!over_)
      links_.tell_failure({ExitCode::unavailable, rank(),
                           "PE " + std::to_string(rank()) + " left the job before its end",
                           "look at the output of PE " + std::to_string(rank())});
  }

  const char* name() const override { return name_.c_str(); }

  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    auto* blocks = static_cast<std::byte*>(receive);
    std::byte* mine = blocks + static_cast<std::size_t>(rank()) * bytes_per_rank;
    if (bytes_per_rank > 0 && mine != send)
      std::memcpy(mine, send, bytes_per_rank);
    const auto plan = plan_allgather(rank(), size(), blocks, bytes_per_rank);
    call(*plan, FrameKind::allgather, bytes_per_rank, 0, deadline);
  }

  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override {
    const auto plan = plan_alltoall(rank(), size(), static_cast<const std::byte*>(send),
                                    static_cast<std::byte*>(receive), bytes_per_rank);
    call(*plan, FrameKind::alltoall, bytes_per_rank, 0, deadline);
  }

  void barrier(const Deadline& deadline) override {
    call(*plan_barrier(), FrameKind::barrier, 0, 0, deadline);
  }

  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override {
    if (root < 0 || root >= size())
      throw Error(ExitCode::usage, "the broadcast", "start",
                  "there is no PE " + std::to_string(root), "name a root below the number of PEs");
    const auto plan =
        plan_broadcast(rank(), size(), static_cast<std::byte*>(data), size_bytes, root);
    call(*plan, FrameKind::broadcast, size_bytes, static_cast<std::uint32_t>(root), deadline);
  }

  void abort(ExitCode code, const std::string& message) noexcept override {
    links_.tell_failure(
        {code, rank(), message, "look at the output of PE " + std::to_string(rank())});
    over_ = true;
  }

  Secret mix_secret(const Secret& said) const override {
    return derive_secret(secret_, "secret of the job",
                         {reinterpret_cast<const char*>(said.data()), said.size()});
  }

  void finish(const Deadline& deadline) override {
    barrier(deadline);
    links_.say_goodbye(deadline);
    over_ = true;
  }

private:
  void call(Plan& plan, FrameKind kind, std::size_t block_bytes, std::uint32_t root,
            const Deadline& deadline) {
    if (failure_)
      throw Error(*failure_);
    const CallLabel label{kind, ++calls_, root, block_bytes};
    links_.watch(health());
    try {
      run_plan(plan, links_, label, deadline);
    } catch (const Error& error) {
      failure_ = error;
      over_ = true;
      // The others put the same words before it.
      const bool own = error.subject() == label.text() && error.attempted() == call_attempted;
      links_.tell_failure(
          {error.code(), rank(), own ? error.system_message() : error.message(), error.fix()});
      health().waiting_for(-1);
      throw;
    }
    health().waiting_for(-1);
  }

  const std::string name_;
  const Secret secret_;
  const std::unique_ptr<Rendezvous> rendezvous_; ///< others may still need it
  PeerLinks links_;
  std::uint32_t calls_ = 0;
  std::optional<Error> failure_;
  bool over_ = false; ///< the others know how this PE ended
};

} // namespace

std::unique_ptr<Bootstrap> join_uid(UidArguments arguments, const Deadline& deadline) {
  const UniqueId& id = arguments.id;
  std::vector<Listener> listeners = listen_for_neighbours(id, arguments.interfaces);
  const Join join = join_frame(arguments, listeners, deadline);
  Dialer dialer(place_of(id), id.addresses,
                Introduction{FrameKind::join, join.encode(), id.secret});
  Socket rendezvous = dial(dialer, deadline);
  const Neighbours neighbours = await_neighbours(rendezvous, arguments.size, deadline);
  const LinkingRequest request{arguments.rank, arguments.size, id.secret,
                               &neighbours,    &rendezvous,    join.who};
  NeighbourSockets sockets = link_neighbours(request, std::move(listeners), deadline);
  return std::make_unique<UidBootstrap>(std::move(arguments), std::move(sockets));
}

} // namespace shmemctl
