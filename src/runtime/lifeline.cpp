#include "src/runtime/lifeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "src/runtime/lifeline_culprit.h"
#include "src/runtime/lifeline_start.h"
#include "src/runtime/lifeline_tree.h"
#include "src/runtime/phases.h"

namespace shmemctl {

namespace lifeline {

namespace {

constexpr double announce_limit_s = 0.2;
/// How long the notice of a failure may take that a bootstrap has seen the effect of.
constexpr std::chrono::milliseconds notice_time{300};

/// How connecting went on one PE.
struct Verdict {
  enum class Kind : char { good, cannot_connect, not_connected };
  Kind kind = Kind::good;
  std::array<char, 255> words{};
};

Verdict make_verdict(Verdict::Kind kind, const std::string& words) {
  Verdict verdict;
  verdict.kind = kind;
  std::memcpy(verdict.words.data(), words.data(), std::min(words.size(), verdict.words.size() - 1));
  return verdict;
}

/// Another PE wrote them: they need not end with a 0, and are no text that may be printed as it is.
std::string words_of(const Verdict& verdict) {
  return printable(
      std::string(verdict.words.data(), ::strnlen(verdict.words.data(), verdict.words.size())),
      4 * sizeof verdict.words);
}

bool over_unix(const AddressBook& addresses) {
  return std::any_of(addresses.begin(), addresses.end(), [](const auto& of_pe) {
    return !of_pe.empty() && of_pe.front().family() == AF_UNIX;
  });
}

/// The PE that could not connect knows why; the one that waited for it does not.
const Verdict* worst(const std::vector<Verdict>& verdicts) {
  for (const Verdict::Kind kind : {Verdict::Kind::cannot_connect, Verdict::Kind::not_connected})
    for (const Verdict& verdict : verdicts)
      if (verdict.kind == kind)
        return &verdict;
  return nullptr;
}

void say_hello(Socket& socket, const State& state, int peer, const Deadline& deadline,
               const WaitCheck& check) {
  const Handshake handshake = knock_at(socket, deadline, check);
  const std::string hello = encode(proven(handshake, state.secret(), state.hello()));
  socket.send_all(hello.data(), hello.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* welcome = answer ? std::get_if<Welcome>(&*answer) : nullptr;
  if (!welcome || welcome->rank != peer || !is_proven(handshake, state.secret(), *answer))
    throw Error(ExitCode::unavailable, state.words_for(peer), "connect",
                "another process listens at its address", "start the job again");
}

/// Errors behind connecting do not say which address was in use.
Error at_address(const Error& error, const SocketAddress& address) {
  const std::string text = address.text();
  if (error.message().find(text) != std::string::npos)
    return error;
  return {error.code(), error.subject() + " at " + text, error.attempted(), error.system_message(),
          error.fix()};
}

} // namespace

TreeLifeline::TreeLifeline(std::unique_ptr<State> state, AddressBook addresses,
                           std::vector<Listener> listeners)
    : state_(std::move(state)), addresses_(std::move(addresses)),
      thread_(*state_, std::move(listeners), accepts_from(state_->rank(), state_->size())) {}

void TreeLifeline::connect(Bootstrap& bootstrap, const Settings& settings,
                           const Deadline& deadline) {
  // Half of the time is left for the others to hear that it did not work.
  const Deadline limit = deadline.at_most(std::chrono::duration<double>(
      std::min(settings.connect_limit_s, deadline.remaining_s() / 2)));
  Verdict mine;
  try {
    const std::vector<int> peers = connects_to(state_->rank(), state_->size());
    for (std::size_t i = 0; i < peers.size(); ++i)
      connect_to(peers[i], limit.at_most(std::chrono::duration<double>(
                               limit.remaining_s() / static_cast<double>(peers.size() - i))));
    const int missing = thread_.wait_linked(neighbours(state_->rank(), state_->size()), limit);
    state_->check();
    if (missing >= 0)
      mine = make_verdict(Verdict::Kind::not_connected, state_->words_for(missing) +
                                                            " did not connect to " +
                                                            state_->words_for(state_->rank()));
  } catch (const Error& error) {
    state_->check();
    mine = make_verdict(Verdict::Kind::cannot_connect,
                        state_->words_for(state_->rank()) + ": " + error.message());
  }
  const std::vector<Verdict> verdicts = allgather_value(bootstrap, mine, deadline);
  if (const Verdict* bad = worst(verdicts))
    throw Error(ExitCode::unavailable, "lifeline", "start", words_of(*bad),
                over_unix(addresses_) ? "check the output and exit status of that PE"
                                      : "allow TCP between the PEs' hosts on all ports above 1023, "
                                        "or name an interface in BOOTSTRAP_UID_SOCK_IFNAME");
}

/// The best address comes first, so what is wrong with it is what is told if none leads there.
void TreeLifeline::connect_to(int peer, const Deadline& deadline) {
  const WaitCheck check = [this] { state_->check(); };
  const std::vector<SocketAddress>& known = addresses_[static_cast<std::size_t>(peer)];
  std::optional<Error> first_problem;
  for (std::size_t i = 0; i < known.size(); ++i) {
    // What an address that fails at once has left over goes to those behind it.
    const double share_s = deadline.remaining_s() / static_cast<double>(known.size() - i);
    const Deadline share = deadline.at_most(std::chrono::duration<double>(share_s));
    try {
      Socket socket = Socket::connect(known[i], state_->words_for(peer), share, check);
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
    throw Error(ExitCode::unavailable, state_->words_for(peer), "connect",
                "none of its addresses is reachable from this host",
                "bring up an interface on a network that both hosts share");
  throw Error(*first_problem);
}

void TreeLifeline::give_up(const std::string& step, int peer) {
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
  const Failure culprit = known ? follow_chain(*state_, asker, peer) : ask_everyone(*state_, asker);
  const bool first = state_->propose(culprit);
  spread_failure();
  if (!first)
    state_->check();
  throw Error(culprit.code, step, "finish", culprit.message, culprit.fix);
}

void TreeLifeline::await_cause(int peer) {
  if (state_->size() == 1 || peer == state_->rank())
    return;
  thread_.wait_failed(Deadline::after(notice_time));
  state_->check();
}

void TreeLifeline::spread_failure() {
  state_->publish();
  thread_.hand_over(announce_limit_s);
}

void TreeLifeline::phase(const std::string& name) noexcept {
  try {
    state_->enter_phase(name);
    thread_.wake();
  } catch (const std::exception&) {
    // Out of memory: the others keep the last phase that they heard of.
  }
}

bool TreeLifeline::announce(const Error& error, const std::string& given_phase) noexcept {
  if (state_->aside())
    return true;
  try {
    const std::string phase = given_phase.empty() ? state_->phase().name : given_phase;
    Failure failure;
    failure.pe = state_->rank();
    failure.host = state_->host_of(failure.pe);
    failure.phase = phase;
    const std::string where = " in phase " + phase;
    failure.message = state_->words_for(failure.pe);
    failure.message += error.code() == ExitCode::interrupted
                           ? " was " + error.system_message() + where
                           : " failed" + where + ": " + error.message();
    failure.fix = error.fix();
    failure.code = error.code() == ExitCode::ok ? ExitCode::unavailable : error.code();
    const bool first = state_->propose(std::move(failure));
    spread_failure();
    return first;
  } catch (const std::exception&) {
    // Out of memory: the end of the connections tells the others.
    return true;
  }
}

void TreeLifeline::goodbye() noexcept {
  state_->say_goodbye();
  thread_.hand_over(announce_limit_s);
}

std::unique_ptr<TreeLifeline> start(Bootstrap& bootstrap, const Secret& secret,
                                    const std::vector<SocketAddress>& my_addresses,
                                    std::vector<std::string> host_names, const Settings& settings,
                                    const Deadline& deadline) {
  Listeners listeners(my_addresses);
  AddressBook addresses = listeners.exchange(bootstrap, host_names, settings, deadline);
  auto made = std::make_unique<TreeLifeline>(
      std::make_unique<State>(bootstrap.rank(), bootstrap.size(), secret, std::move(host_names)),
      std::move(addresses), listeners.take());
  try {
    made->connect(bootstrap, settings, deadline);
  } catch (const Error& error) {
    made->announce(error, phase::lifeline);
    throw;
  }
  return made;
}

} // namespace lifeline

std::unique_ptr<Lifeline> Lifeline::start(Bootstrap& bootstrap, const Secret& secret,
                                          const std::vector<SocketAddress>& my_addresses,
                                          std::vector<std::string> host_names,
                                          const Deadline& deadline) {
  return lifeline::start(bootstrap, secret, my_addresses, std::move(host_names), {}, deadline);
}

} // namespace shmemctl
