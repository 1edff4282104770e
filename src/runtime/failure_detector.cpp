#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/archive.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/failure_detector.h"
#include "src/runtime/failure_detector_tree.h"
#include "src/runtime/identity.h"
#include "src/runtime/phases.h"
#include "src/runtime/root_cause.h"

namespace shmemctl {

namespace failure_detector {

namespace {

constexpr double announce_limit_s = 0.2;
/// How long to wait for the notice of a failure after its effect was seen, such as an error of the
/// bootstrap.
constexpr std::chrono::milliseconds notice_time{300};
/// How long a PE waits for another one to print the job's failure, before it does so itself.
constexpr std::chrono::seconds print_limit{2};

/// The result of connecting on one PE.
struct Verdict {
  enum class Kind : char { good, cannot_connect, not_connected };
  Kind kind = Kind::good;
  std::string words;
};

constexpr std::size_t max_verdict_bytes = 255;

Verdict make_verdict(Verdict::Kind kind, const std::string& words) {
  return {kind, words.substr(0, max_verdict_bytes)};
}

bool over_unix(const AddressBook& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [](const auto& of_pe) {
    return !of_pe.empty() && of_pe.front().family() == AF_UNIX;
  });
}

/// The verdict to report, or nullptr if all are good. A PE that could not connect knows why; a PE
/// that waited for another one's connection does not.
const Verdict* worst(const std::vector<Verdict>& verdicts) {
  for (const Verdict::Kind kind : {Verdict::Kind::cannot_connect, Verdict::Kind::not_connected})
    for (const Verdict& verdict : verdicts)
      if (verdict.kind == kind)
        return &verdict;
  return nullptr;
}

/// Collective. Texts are exchanged only if a verdict is bad; usually one byte of each PE suffices.
std::vector<Verdict> gather_verdicts(Bootstrap& bootstrap, const Verdict& own,
                                     const Deadline& deadline) {
  std::vector<Verdict> verdicts;
  for (const Verdict::Kind kind : allgather_value(bootstrap, own.kind, deadline))
    verdicts.push_back({kind, ""});
  if (!worst(verdicts))
    return verdicts;
  const std::vector<std::string> words = allgather_text(bootstrap, own.words, deadline);
  for (std::size_t pe = 0; pe < words.size(); ++pe)
    verdicts[pe].words = printable(words[pe], 4 * max_verdict_bytes); // another PE wrote the words
  return verdicts;
}

void say_hello(Socket& socket, const State& state, int peer, const Deadline& deadline,
               const WaitCheck& check) {
  const Handshake handshake = request_challenge(socket, deadline, check);
  const std::string hello = encode(proven(handshake, state.secret(), state.hello()));
  socket.send_all(hello.data(), hello.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* welcome = answer ? std::get_if<Welcome>(&*answer) : nullptr;
  if (!welcome || welcome->rank != peer || !is_proven(handshake, state.secret(), *answer))
    throw Error(ExitCode::unavailable, state.describe(peer), "connect",
                "another process listens at its address", "start the job again");
}

/// While it exists, the waits of the bootstrap check the job's health.
class Watched {
public:
  Watched(Bootstrap& bootstrap, JobHealth& health) : bootstrap_(bootstrap) {
    bootstrap_.watch(&health);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { bootstrap_.watch(nullptr); }

private:
  Bootstrap& bootstrap_;
};

/// Adds the address to the error, unless it contains it: errors after connecting do not name it.
Error at_address(const Error& error, const SocketAddress& address) {
  const std::string text = address.text();
  if (error.message().find(text) != std::string::npos)
    return error;
  return error.with_subject(error.subject() + " at " + text);
}

} // namespace

TreeFailureDetector::TreeFailureDetector(std::unique_ptr<State> state, AddressBook addresses,
                                         std::vector<Listener> listeners)
    : state_(std::move(state)), addresses_(std::move(addresses)),
      thread_(*state_, std::move(listeners), accepts_from(state_->rank(), state_->size())) {}

void TreeFailureDetector::connect(Bootstrap& bootstrap, const Settings& settings,
                                  const Deadline& deadline) {
  // Half of the time is left for telling the others that it failed.
  const Deadline limit = deadline.at_most(std::chrono::duration<double>(
      std::min(settings.connect_limit_s, deadline.remaining_s() / 2)));
  Verdict verdict;
  try {
    const std::vector<int> peers = connects_to(state_->rank(), state_->size());
    for (std::size_t i = 0; i < peers.size(); ++i)
      connect_to(peers[i], limit.at_most(std::chrono::duration<double>(
                               limit.remaining_s() / static_cast<double>(peers.size() - i))));
    const int missing = thread_.wait_linked(neighbours(state_->rank(), state_->size()), limit);
    state_->check();
    if (missing >= 0)
      verdict = make_verdict(Verdict::Kind::not_connected, state_->describe(missing) +
                                                               " did not connect to " +
                                                               state_->describe(state_->rank()));
  } catch (const Error& error) {
    state_->check();
    verdict = make_verdict(Verdict::Kind::cannot_connect,
                           state_->describe(state_->rank()) + ": " + error.message());
  }
  // A PE that failed before its bring-up announces its problem and leaves as soon as it has all
  // verdicts. On a PE that is still waiting for verdicts, the job has then already failed with that
  // announcement. All PEs are connected, so this detector works like that of any job that fails.
  std::vector<Verdict> verdicts;
  try {
    const Watched watched(bootstrap, *this);
    verdicts = gather_verdicts(bootstrap, verdict, deadline);
  } catch (const Error&) {
    if (verdict.kind == Verdict::Kind::good && state_->failed())
      return;
    throw;
  }
  if (const Verdict* bad = worst(verdicts))
    throw printed_once(bootstrap, settings.printer,
                       Error(ExitCode::unavailable, "failure detector", "start", bad->words,
                             over_unix(addresses_)
                                 ? "check the output and exit status of these PEs"
                                 : "allow TCP between the PEs' hosts on all ports above 1023, "
                                   "or name an interface in SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME"));
}

/// The best address comes first; if none works, its error is reported.
void TreeFailureDetector::connect_to(int peer, const Deadline& deadline) {
  const WaitCheck check = [this] { state_->check(); };
  const std::vector<SocketAddress>& known = addresses_[static_cast<std::size_t>(peer)];
  std::optional<Error> first_problem;
  for (std::size_t i = 0; i < known.size(); ++i) {
    // If an address fails at once, the time that it does not use is left for the next addresses.
    const double share_s = deadline.remaining_s() / static_cast<double>(known.size() - i);
    const Deadline share = deadline.at_most(std::chrono::duration<double>(share_s));
    try {
      Socket socket = Socket::connect(known[i], state_->describe(peer), share, check);
      say_hello(socket, *state_, peer, share, check);
      thread_.add_link(peer, std::move(socket));
      return;
    } catch (const Error& error) {
      state_->check();
      if (!first_problem)
        first_problem = at_address(error, known[i]);
    }
  }
  if (!first_problem)
    throw Error(ExitCode::unavailable, state_->describe(peer), "connect",
                "none of its addresses is reachable from this host",
                "bring up an interface on a network that both hosts share");
  throw Error(*first_problem);
}

void TreeFailureDetector::give_up(const std::string& step, int peer) {
  if (state_->size() == 1)
    JobHealth().give_up(step, peer);
  state_->check();
  state_->set_step(step);
  const Asker asker = [this](int pe, int about, double limit_s) {
    return ask(*state_, addresses_, pe, about, limit_s);
  };
  const bool known = peer >= 0 && peer < state_->size() && peer != state_->rank();
  if (known && state_->status(-1).waiting_for != peer)
    state_->set_waiting_for(peer);
  const Failure culprit =
      known ? follow_chain(*state_, asker, peer) : query_all_pes(*state_, asker);
  const bool first = state_->propose(culprit);
  publish_failure();
  if (!first)
    state_->check();
  throw Error(culprit.code, step, "finish", culprit.message, culprit.fix);
}

void TreeFailureDetector::await_cause(int peer) {
  if (state_->size() == 1 || peer == state_->rank())
    return;
  thread_.wait_failed(Deadline::after(notice_time));
  state_->check();
}

void TreeFailureDetector::publish_failure() {
  state_->publish();
  await_sent();
}

void TreeFailureDetector::phase(const std::string& name) noexcept {
  try {
    state_->enter_phase(name);
    thread_.wake();
  } catch (const std::exception&) {
    // Out of memory: the neighbours keep the last phase that was sent.
  }
}

void TreeFailureDetector::await_sent() noexcept {
  thread_.hand_over(announce_limit_s);
}

bool TreeFailureDetector::announce(const Error& error, const std::string& given_phase) noexcept {
  if (state_->excluded())
    return true;
  try {
    const std::string phase = given_phase.empty() ? state_->phase().name : given_phase;
    Failure failure;
    failure.pe = state_->rank();
    failure.host = state_->host_of(failure.pe);
    failure.phase = phase;
    const std::string where = " in phase " + phase;
    failure.message = state_->describe(failure.pe);
    failure.message += error.code() == ExitCode::interrupted
                           ? " was " + error.system_message() + where
                           : " failed" + where + ": " + error.message();
    failure.fix = error.fix();
    failure.code = error.code() == ExitCode::ok ? ExitCode::unavailable : error.code();
    if (error.code() != ExitCode::interrupted)
      failure.error = error;
    const bool first = state_->propose(std::move(failure));
    publish_failure();
    return first;
  } catch (const std::exception&) {
    // Out of memory: the others see the end of the connections.
    return true;
  }
}

bool TreeFailureDetector::await_printed(const Error* own) noexcept {
  try {
    const std::unique_ptr<Failure> failure = state_->failure();
    if (!failure || !state_->has_printer() || state_->size() == 1 || state_->excluded())
      return false;
    if (failure->code == ExitCode::interrupted && state_->print(*failure))
      thread_.wake();
    if (!thread_.wait_printed(Deadline::after(print_limit)))
      return false;
    const std::unique_ptr<Failure> printed = state_->printed();
    return !own || printed->pe == state_->rank() ||
           (printed->error && same_failure(*printed->error, *own));
  } catch (const std::exception&) {
    return false; // out of memory
  }
}

void TreeFailureDetector::goodbye() noexcept {
  state_->say_goodbye();
  await_sent();
}

std::unique_ptr<TreeFailureDetector> start(Bootstrap& bootstrap, const Secret& secret,
                                           const std::vector<SocketAddress>& my_addresses,
                                           std::vector<std::string> host_names,
                                           const Settings& settings, const Deadline& deadline) {
  Listeners listeners(my_addresses);
  AddressBook addresses = listeners.exchange(bootstrap, host_names, settings, deadline);
  auto made = std::make_unique<TreeFailureDetector>(
      std::make_unique<State>(bootstrap.rank(), bootstrap.size(), secret, std::move(host_names),
                              settings.printer),
      std::move(addresses), listeners.take());
  try {
    made->connect(bootstrap, settings, deadline);
  } catch (const Error& error) {
    if (error.printed())
      made->goodbye(); // all PEs know the error, so it is no failure when the others leave
    else
      made->announce(error, phase::failure_detector);
    throw;
  }
  return made;
}

} // namespace failure_detector

Error printed_once(Bootstrap& bootstrap, const ErrorPrinter& printer, Error error) {
  if (bootstrap.size() == 1)
    return error;
  if (printer && bootstrap.rank() == 0) {
    printer(error);
    error.mark_printed();
  }
  try { // also without a printer: a PE that leaves early causes an error on other PEs
    bootstrap.barrier(Deadline::after(failure_detector::print_limit));
    if (printer)
      error.mark_printed();
  } catch (const Error&) {
    // PE 0 may not have printed it, so the caller prints.
  }
  return error;
}

std::unique_ptr<FailureDetector> FailureDetector::start(
    Bootstrap& bootstrap, const Secret& secret, const std::vector<SocketAddress>& my_addresses,
    std::vector<std::string> host_names, const Deadline& deadline, ErrorPrinter printer) {
  failure_detector::Settings settings;
  settings.printer = std::move(printer);
  // A longer deadline indicates that a slow start is expected: many PEs on few cores.
  settings.connect_limit_s = std::max(settings.connect_limit_s, deadline.remaining_s() / 3);
  return failure_detector::start(bootstrap, secret, my_addresses, std::move(host_names), settings,
                                 deadline);
}

} // namespace shmemctl

namespace shmemctl::failure_detector {

namespace {

constexpr std::size_t max_tcp_listeners = 5;

/// What each PE sends to all others.
struct ListenAddresses {
  std::uint64_t machine_id = 0, network_namespace = 0;
  std::vector<std::string> addresses;
};

void serialize(Archive& archive, ListenAddresses& pe) {
  archive(pe.machine_id, pe.network_namespace, pe.addresses);
}

SocketAddress new_unix_address() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = static_cast<std::uint64_t>(Deadline::Clock::now().time_since_epoch().count());
  return SocketAddress::abstract_unix(
      fmt::format("shmemctl-failures-{}-{:016x}", ::getpid(), number));
}

bool is_unix(const SocketAddress& address) {
  return address.family() == AF_UNIX;
}

bool same_network(const ListenAddresses& left, const ListenAddresses& right) {
  return left.machine_id == right.machine_id && left.network_namespace == right.network_namespace &&
         left.network_namespace != 0;
}

/// Whether PEs are in several network namespaces, so that for each PE some others are in another
/// namespace.
bool several_networks(const std::vector<ListenAddresses>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&all](const ListenAddresses& pe) { return !same_network(pe, all.front()); });
}

bool has_address(const ListenAddresses& pe, bool over_unix) {
  return std::any_of(pe.addresses.begin(), pe.addresses.end(), [&](const std::string& text) {
    if (starts_with(text, "unix:") != over_unix)
      return false;
    const std::vector<SocketAddress> parsed = parse_foreign_addresses({text});
    return !parsed.empty() && is_unix(parsed.front()) == over_unix;
  });
}

/// Whether all PEs can connect through abstract Unix names, which are visible to all processes of
/// one network namespace of one kernel.
bool all_over_unix(const std::vector<ListenAddresses>& all) {
  return !several_networks(all) &&
         std::all_of(all.begin(), all.end(),
                     [](const ListenAddresses& pe) { return has_address(pe, true); });
}

/// The addresses that this PE tries in order to connect to another PE.
std::vector<SocketAddress> addresses_for(const ListenAddresses& local, const ListenAddresses& other,
                                         bool over_unix) {
  std::vector<std::string> texts = other.addresses;
  texts.erase(std::remove_if(
                  texts.begin(), texts.end(),
                  [&](const std::string& text) { return starts_with(text, "unix:") != over_unix; }),
              texts.end());
  return addresses_to_try(texts, same_network(local, other));
}

} // namespace

Listeners::Listeners(const std::vector<SocketAddress>& tcp_addresses) {
  std::vector<SocketAddress> wanted = {new_unix_address()};
  for (const SocketAddress& address : without_local_only(tcp_addresses))
    if (!is_unix(address) && wanted.size() <= max_tcp_listeners)
      wanted.push_back(address.with_port(0));
  for (const SocketAddress& address : wanted)
    try {
      listeners_.emplace_back(address);
    } catch (const Error& error) {
      log(LogLevel::info, "failure detector", error.message());
    }
}

AddressBook Listeners::exchange(Bootstrap& bootstrap, const std::vector<std::string>& host_names,
                                const Settings& settings, const Deadline& deadline) {
  const HostIdentity identity = read_machine_identity(Sysroot());
  ListenAddresses local{identity.machine_id, identity.network_namespace, {}};
  for (const Listener& listener : listeners_)
    local.addresses.push_back(listener.address().text());
  const std::vector<ListenAddresses> all =
      allgather_archived(bootstrap, local, "listeners", deadline);

  const bool over_unix = !settings.always_tcp && all_over_unix(all);
  const bool several = several_networks(all);
  AddressBook addresses;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    // Decided only from the exchanged data, so that all PEs decide alike.
    if (!over_unix &&
        !(several ? reachable_from_elsewhere(all[pe].addresses) : has_address(all[pe], false)))
      throw printed_once(
          bootstrap, settings.printer,
          Error(ExitCode::unavailable, "failure detector", "start",
                "PE " + std::to_string(pe) +
                    (pe < host_names.size() ? " (host " + host_names[pe] + ")" : "") +
                    " has no network address, and not all PEs are in one network namespace",
                "bring up an interface on that host, or name one in "
                "SHMEMCTL_BOOTSTRAP_UID_SOCK_IFNAME"));
    addresses.push_back(
        addresses_for(all[static_cast<std::size_t>(bootstrap.rank())], all[pe], over_unix));
  }
  listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listener& listener) {
                                    return is_unix(listener.address()) != over_unix;
                                  }),
                   listeners_.end());
  return addresses;
}

namespace {
int parent(int rank) {
  return (rank - 1) / 2;
}
} // namespace

std::vector<int> connects_to(int rank, int size) {
  if (rank <= 0 || rank >= size)
    return {};
  if (rank == 1)
    return {0};
  if (rank == 2)
    return {0, 1};
  return {parent(parent(rank)), parent(rank)};
}

std::vector<int> accepts_from(int rank, int size) {
  std::vector<int> accepted;
  // For PE 1 its sibling; then the children and grandchildren, ascending.
  for (const long long other : {rank == 1 ? 2LL : 0LL, 2LL * rank + 1, 2LL * rank + 2,
                                4LL * rank + 3, 4LL * rank + 4, 4LL * rank + 5, 4LL * rank + 6})
    if (other > rank && other < size)
      accepted.push_back(static_cast<int>(other));
  return accepted;
}

std::vector<int> neighbours(int rank, int size) {
  std::vector<int> all = connects_to(rank, size);
  const std::vector<int> accepted = accepts_from(rank, size);
  all.insert(all.end(), accepted.begin(), accepted.end());
  return all;
}

std::vector<SocketAddress> addresses_to_try(const std::vector<std::string>& texts,
                                            bool same_network, const ReachableForms& forms) {
  std::vector<SocketAddress> known = parse_foreign_addresses(texts);
  if (!same_network)
    known.erase(std::remove_if(known.begin(), known.end(), is_loopback), known.end());
  std::vector<SocketAddress> tried;
  for (const SocketAddress& address : without_local_only(std::move(known)))
    for (const SocketAddress& form : forms(address))
      tried.push_back(form);
  return tried;
}

bool reachable_from_elsewhere(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    const std::vector<SocketAddress> parsed = parse_foreign_addresses({text});
    return !parsed.empty() && parsed.front().family() != AF_UNIX && !is_loopback(parsed.front());
  });
}

} // namespace shmemctl::failure_detector
