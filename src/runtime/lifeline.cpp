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
  const std::string hello = encode(state.hello());
  socket.send_all(hello.data(), hello.size(), deadline, check);
  std::string answer(encode(Welcome{}).size(), '\0');
  socket.receive_all(answer.data(), answer.size(), deadline, check);
  const Decoded decoded = decode(answer, max_frame_bytes);
  const auto* welcome = std::get_if<Welcome>(&decoded.message);
  if (decoded.state != Decoding::complete || !welcome || welcome->rank != peer)
    throw Error(ExitCode::unavailable, state.words_for(peer), "connect to",
                "somebody else answers at its address", "start the job again");
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
    for (const int peer : connects_to(state_->rank(), state_->size()))
      connect_to(peer, limit);
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
    throw Error(ExitCode::unavailable, "the lifeline", "start", bad->words.data(),
                addresses_.front().front().family() == AF_UNIX
                    ? "look at the output and exit status of the PE that is named"
                    : "let the PEs' hosts reach each other by TCP on all ports above 1023, or name "
                      "an interface that does in BOOTSTRAP_UID_SOCK_IFNAME");
}

void TreeLifeline::connect_to(int peer, const Deadline& deadline) {
  const WaitCheck check = [this] { state_->check(); };
  const std::vector<SocketAddress>& known = addresses_[static_cast<std::size_t>(peer)];
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double share_s = deadline.remaining_s() / static_cast<double>(known.size() - i);
    const Deadline share = deadline.at_most(std::chrono::duration<double>(share_s));
    try {
      Socket socket = Socket::connect(known[i], state_->words_for(peer), share, check);
      say_hello(socket, *state_, peer, share, check);
      thread_.add_link(peer, std::move(socket));
      return;
    } catch (const Error&) {
      if (i + 1 == known.size())
        throw;
      state_->check();
    }
  }
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

bool TreeLifeline::announce(const Error& error, const std::string& phase) noexcept {
  if (state_->aside())
    return true;
  try {
    Failure failure;
    failure.pe = state_->rank();
    failure.host = state_->host_of(failure.pe);
    failure.phase = phase;
    failure.message = state_->words_for(failure.pe) + " failed" +
                      (phase.empty() ? "" : " in phase " + phase) + ": " + error.message();
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
