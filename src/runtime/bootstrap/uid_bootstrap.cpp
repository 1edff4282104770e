// Joining a `uid` job, and its collectives.
#include <algorithm>
#include <cstring>
#include <limits>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/bootstrap/peer_links.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

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

/// A random number that tells a second attempt of this PE from another PE with its rank.
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
                   rendezvous.peer(), "join the job");
  std::optional<Neighbours> neighbours;
  if (frame.header().kind == FrameKind::neighbours)
    neighbours = Neighbours::decode(frame.payload());
  if (!neighbours || neighbours->addresses.size() != static_cast<std::size_t>(levels_of(size)))
    throw Error(ExitCode::unavailable, rendezvous.peer(), "join the job",
                "its reply does not list the neighbours of this PE",
                "run the same version of shmemctl on all hosts");
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
      links_.send_failure({ExitCode::unavailable, rank(),
                           "PE " + std::to_string(rank()) + " left the job before the job ended",
                           "check the output of PE " + std::to_string(rank())});
  }

  const char* name() const override { return name_.c_str(); }

  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    auto* blocks = static_cast<std::byte*>(receive);
    std::byte* own_block = blocks + static_cast<std::size_t>(rank()) * bytes_per_rank;
    if (bytes_per_rank > 0 && own_block != send)
      std::memcpy(own_block, send, bytes_per_rank);
    const auto plan = plan_allgather(rank(), size(), blocks, bytes_per_rank);
    call(*plan, FrameKind::allgather, bytes_per_rank, 0, deadline);
  }

  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override {
    const auto plan = plan_alltoall(rank(), size(), static_cast<const std::byte*>(send),
                                    static_cast<std::byte*>(receive), bytes_per_rank);
    call(*plan, FrameKind::alltoall, bytes_per_rank, 0, deadline);
  }

  void gather(const void* send, void* receive, std::size_t bytes_per_rank,
              const Deadline& deadline) override {
    const auto plan = plan_gather(rank(), size(), static_cast<const std::byte*>(send),
                                  static_cast<std::byte*>(receive), bytes_per_rank);
    call(*plan, FrameKind::gather, bytes_per_rank, 0, deadline);
  }

  void barrier(const Deadline& deadline) override {
    call(*plan_barrier(), FrameKind::barrier, 0, 0, deadline);
  }

  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override {
    if (root < 0 || root >= size())
      throw Error(ExitCode::usage, "broadcast", "", "invalid root PE " + std::to_string(root),
                  "pass a PE from 0 to " + std::to_string(size() - 1));
    const auto plan =
        plan_broadcast(rank(), size(), static_cast<std::byte*>(data), size_bytes, root);
    call(*plan, FrameKind::broadcast, size_bytes, static_cast<std::uint32_t>(root), deadline);
  }

  void abort(ExitCode code, const std::string& message) noexcept override {
    links_.send_failure(
        {code, rank(), message, "check the output of PE " + std::to_string(rank())});
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
      // The receivers put the same subject and action before the text again.
      const bool own = error.subject() == label.text() && error.attempted() == call_attempted;
      links_.send_failure(
          {error.code(), rank(), own ? error.system_message() : error.message(), error.fix()});
      health().waiting_for(-1);
      throw;
    }
    health().waiting_for(-1);
  }

  const std::string name_;
  const Secret secret_;
  const std::unique_ptr<Rendezvous> rendezvous_; ///< kept because other PEs may still need it
  PeerLinks links_;
  std::uint32_t calls_ = 0;
  std::optional<Error> failure_;
  bool over_ = false; ///< the other PEs know how this PE ended
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
  const ConnectRequest request{arguments.rank, arguments.size, id.secret,
                               &neighbours,    &rendezvous,    join.who};
  NeighbourSockets sockets = connect_neighbours(request, std::move(listeners), deadline);
  return std::make_unique<UidBootstrap>(std::move(arguments), std::move(sockets));
}

namespace {

constexpr std::size_t max_addresses = 32, max_uid_text_bytes = 8192;
constexpr std::string_view prefix = "shmemctl-uid-";
constexpr const char* hex_digits = "0123456789abcdef";

/// The text of the id is never part of the message, because it contains the secret.
[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ExitCode::usage, "unique id", "", problem,
              "run the same version of shmemctl on all PEs, and pass the id exactly as the PE that "
              "created it printed it: shmemctl-uid-1:<32 hex digits>:<address>[,<address>...]");
}

std::string hex(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += hex_digits[bytes[i] >> 4];
    text += hex_digits[bytes[i] & 15];
  }
  return text;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

Secret parse_secret(std::string_view hex) {
  Secret secret{};
  if (hex.size() != 2 * secret.size())
    refuse("its secret has " + std::to_string(hex.size()) + " digits, not 32");
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      refuse("its secret has characters other than 0-9 and a-f");
    secret[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return secret;
}

/// The part is not shown: if an id was pasted twice, the part contains its secret.
SocketAddress parse_address(const std::string& part, std::size_t number) {
  try {
    return parse_foreign_address(part);
  } catch (const Error&) {
    refuse("its address " + std::to_string(number) +
           " is not written as 10.0.0.1:4711, [fd00::1]:4711 or unix:NAME");
  }
}

void check_together(const std::vector<SocketAddress>& addresses) {
  for (const SocketAddress& address : addresses) {
    if (address.family() == AF_UNIX && addresses.size() > 1)
      refuse("it has a Unix socket name and other addresses");
    if (address.family() != AF_UNIX && address.port() == 0)
      refuse("one of its addresses has port 0");
    if (address.port() != addresses.front().port())
      refuse("its addresses have different ports");
  }
}

} // namespace

std::string UniqueId::text() const {
  std::string text =
      std::string(prefix) + std::to_string(version) + ":" + hex(secret.data(), secret.size()) + ":";
  for (std::size_t i = 0; i < addresses.size(); ++i)
    text += (i > 0 ? "," : "") + addresses[i].text();
  return text;
}

UniqueId UniqueId::parse(const std::string& text) {
  if (text.size() > max_uid_text_bytes)
    refuse("it is longer than " + std::to_string(max_uid_text_bytes) + " bytes");
  if (!starts_with(text, prefix))
    refuse("it does not begin with " + std::string(prefix));
  const std::size_t version_end = text.find(':', prefix.size());
  if (version_end == std::string::npos)
    refuse("it ends after its version");
  const std::string its_version = text.substr(prefix.size(), version_end - prefix.size());
  if (its_version != std::to_string(version))
    refuse("its version is \"" + printable(its_version, 20) +
           "\", and this shmemctl reads version " + std::to_string(version));
  const std::size_t secret_end = text.find(':', version_end + 1);
  if (secret_end == std::string::npos)
    refuse("it has no addresses");
  UniqueId id;
  id.secret =
      parse_secret(std::string_view(text).substr(version_end + 1, secret_end - version_end - 1));
  const std::vector<std::string> parts = split(std::string_view(text).substr(secret_end + 1), ',');
  if (parts.size() > max_addresses)
    refuse("it has more than " + std::to_string(max_addresses) + " addresses");
  for (const std::string& part : parts)
    id.addresses.push_back(parse_address(part, id.addresses.size() + 1));
  check_together(id.addresses);
  return id;
}

std::string random_unix_name() {
  return "shmemctl-" + hex(random_secret().data(), 8);
}

} // namespace shmemctl
