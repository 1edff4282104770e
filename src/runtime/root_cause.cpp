#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/text.h"
#include "src/runtime/failure_detector_tree.h"
#include "src/runtime/root_cause.h"

namespace shmemctl::failure_detector {

namespace {

/// Queries the PE over an established connection. Nothing if the peer cannot prove that it is a PE
/// of this job.
std::optional<Status> ask_on(Socket& socket, const State& state, int about,
                             const Deadline& deadline, const WaitCheck& check) {
  const Handshake handshake = request_challenge(socket, deadline, check);
  const std::string question =
      encode(proven(handshake, state.secret(), Query{state.hello(), about}));
  socket.send_all(question.data(), question.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* status = answer ? std::get_if<Status>(&*answer) : nullptr;
  const bool is_true = status && is_proven(handshake, state.secret(), *answer);
  return is_true ? std::optional(*status) : std::nullopt;
}

std::optional<Status> ask_at(const State& state, const SocketAddress& address, int pe, int about,
                             const Deadline& deadline) {
  const WaitCheck check = [&state] { state.check(); };
  try {
    Socket socket = Socket::connect(address, state.describe(pe), deadline, check);
    return ask_on(socket, state, about, deadline, check);
  } catch (const Error&) {
    state.check();
    return std::nullopt;
  }
}

/// The errno of connecting; 0 on success, ETIME on a timeout.
int connect_once(const SocketAddress& address, const std::string& words, const Deadline& deadline,
                 Socket& socket) {
  int problem = 0;
  socket = Socket::start_connect(address, words, problem);
  while (problem == 0 && (problem = socket.connect_error()) == EINPROGRESS) {
    if (deadline.passed())
      return ETIME;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    problem = 0;
  }
  return problem;
}

/// The reply of the listener at that address; nothing if the connection ended without an answer.
std::optional<Presence> presence_at(const State& state, const SocketAddress& address, int pe,
                                    const Deadline& deadline) {
  const WaitCheck check = [&state] { state.check(); };
  try {
    Socket socket;
    const int problem = connect_once(address, state.describe(pe), deadline, socket);
    if (problem != 0)
      return problem == ECONNREFUSED ? Presence::gone : Presence::silent;
    if (ask_on(socket, state, -1, deadline, check))
      return Presence::answers;
  } catch (const Error& error) {
    state.check();
    if (error.code() == ExitCode::deadline)
      return Presence::silent;
  }
  return std::nullopt;
}

} // namespace

std::optional<Message> receive_message(Socket& socket, const Deadline& deadline,
                                       const WaitCheck& check) {
  std::string received(frame_header_bytes, '\0');
  socket.receive_all(received.data(), received.size(), deadline, check);
  const std::optional<std::size_t> size_bytes = frame_size(received, max_frame_bytes);
  if (!size_bytes)
    return std::nullopt;
  received.resize(*size_bytes);
  socket.receive_all(received.data() + frame_header_bytes, *size_bytes - frame_header_bytes,
                     deadline, check);
  Decoded decoded = decode(received, max_frame_bytes);
  return decoded.state == Decoding::complete ? std::optional(std::move(decoded.message))
                                             : std::nullopt;
}

Handshake request_challenge(Socket& socket, const Deadline& deadline, const WaitCheck& check) {
  Handshake handshake;
  handshake.dialer = random_nonce();
  const std::string connect_request = encode(ConnectionRequest{handshake.dialer});
  socket.send_all(connect_request.data(), connect_request.size(), deadline, check);
  const std::optional<Message> answer = receive_message(socket, deadline, check);
  const auto* challenge = answer ? std::get_if<Challenge>(&*answer) : nullptr;
  if (!challenge)
    throw Error(ExitCode::unavailable, socket.peer(), "connect",
                "the process that listens there is not a PE of this version of shmemctl",
                "run the same version of shmemctl on all hosts");
  handshake.listener = challenge->nonce;
  return handshake;
}

Presence presence_of(const State& state, const AddressBook& addresses, int pe, double limit_s) {
  const std::vector<SocketAddress>& known = addresses[static_cast<std::size_t>(pe)];
  bool silent = false;
  for (const SocketAddress& address : known) {
    const double share_s = limit_s / static_cast<double>(known.size());
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(share_s));
    std::optional<Presence> presence;
    // If the PE exits during a query, the connection ends without an answer; the next attempt is
    // then refused.
    while (!presence && !deadline.passed())
      presence = presence_at(state, address, pe, deadline);
    if (presence == Presence::answers)
      return Presence::answers;
    silent = silent || presence != Presence::gone;
  }
  return silent ? Presence::silent : Presence::gone;
}

std::optional<Status> ask(const State& state, const AddressBook& addresses, int pe, int about,
                          double limit_s) {
  const std::vector<SocketAddress>& known = addresses[static_cast<std::size_t>(pe)];
  for (const SocketAddress& address : known) {
    const double share_s = limit_s / static_cast<double>(known.size());
    const Deadline deadline = Deadline::after(std::chrono::duration<double>(share_s));
    if (std::optional<Status> status = ask_at(state, address, pe, about, deadline))
      return status;
  }
  return std::nullopt;
}

namespace {

constexpr double hop_limit_s = 0.3, last_chance_s = 0.7, witness_limit_s = 0.15;
constexpr int max_hops = 16, max_witnesses = 3;
constexpr std::size_t max_named = 8, max_silent = 256, max_askers = 32;

std::string number_of(int pe) {
  return "PE " + std::to_string(pe);
}

std::string words_for_all(const State& state, const std::vector<int>& pes) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < pes.size() && i < max_named; ++i)
    words.push_back(state.describe(pes[i]));
  if (pes.size() > max_named)
    return join(words, ", ") + " and " + std::to_string(pes.size() - max_named) + " more";
  if (words.size() == 1)
    return words.front();
  const std::string last = words.back();
  words.pop_back();
  return join(words, ", ") + " and " + last;
}

Failure blame(const State& state, int pe, const std::string& phase, const std::string& message,
              const std::string& fix) {
  Failure failure;
  failure.pe = pe;
  failure.host = state.host_of(pe);
  failure.phase = phase;
  failure.message = message;
  failure.fix = fix;
  failure.code = ExitCode::deadline;
  return failure;
}

/// The last phase that an unresponsive PE sent to its neighbours; "" if unknown.
std::string last_phase(const State& state, const Asker& ask, int pe) {
  if (const std::optional<PhaseNotice> phase = state.phase_of(pe))
    return phase->name;
  int asked = 0;
  for (const int witness : neighbours(pe, state.size())) {
    if (asked++ == max_witnesses)
      break;
    const std::optional<Status> status = ask(witness, pe, witness_limit_s);
    if (status && status->knows_other)
      return status->other.name;
  }
  return "";
}

Failure silent(const State& state, const Asker& ask, const std::vector<int>& pes) {
  const int first = pes.front();
  const bool several = pes.size() > 1;
  const std::string phase = last_phase(state, ask, first);
  std::string message =
      words_for_all(state, pes) + (several ? " do not answer" : " does not answer");
  message += "; last phase " + (several ? number_of(first) : "it") +
             " reported: " + (phase.empty() ? "unknown" : phase);
  const std::string host = state.host_of(first);
  Failure failure = blame(
      state, first, phase, message,
      "check whether " + number_of(first) + " is stopped, or its host hangs or cannot be reached" +
          (host.empty() ? "" : ": ping, ps and the kernel log on host " + host));
  failure.unresponsive = true;
  return failure;
}

Failure idle(const State& state, int pe, const PhaseNotice& phase) {
  return blame(state, pe, phase.name,
               state.describe(pe) + " is in phase " + phase.name + " and waits for no other PE",
               "check what " + number_of(pe) +
                   " is doing: it has not reached the step in which others wait; if it is only "
                   "slow, " +
                   raise_timeout());
}

/// `path` is the chain of waiting PEs, starting with this PE; `again` is the PE that closes the
/// cycle.
Failure circle(const State& state, const std::vector<int>& path, int again,
               const PhaseNotice& phase) {
  std::vector<int> members(std::find(path.begin(), path.end(), again), path.end());
  std::sort(members.begin(), members.end());
  const std::string whom = members.size() == 1 ? " waits for itself" : " wait for each other";
  return blame(state, members.front(), phase.name, words_for_all(state, members) + whom,
               "compare what these PEs call: collectives and waits must come in the same order on "
               "all of them");
}

/// `pe` waits for its network, and its peer responds: the network is the cause.
/// @param peer -1: several peers
Failure unanswered(const State& state, int pe, int peer, const PhaseNotice& phase) {
  const std::string with = peer < 0 ? "other PEs" : state.describe(peer);
  return blame(state, pe, phase.name,
               state.describe(pe) + " is in phase " + phase.name +
                   " and waits for its network: its operations with " + with + " do not complete",
               "check the ports and links between them (ip -s link, ibstat, dmesg on both hosts); "
               "if it is only slow, " +
                   raise_timeout());
}

Failure endless(const State& state, int pe, const Status& status) {
  return blame(state, pe, status.phase.name,
               state.describe(pe) + " is in phase " + status.phase.name + " and waits for " +
                   state.describe(status.waiting_for) + ", which waits for other PEs",
               "check the output of these PEs, or " + raise_timeout());
}

bool is_pe(const State& state, int pe) {
  return pe >= 0 && pe < state.size();
}

/// All replies, by PE. PEs that were no longer queried have none, and are not in `silent`.
struct Replies {
  std::vector<std::optional<Status>> status;
  std::vector<int> silent;
};

Replies collect(const State& state, const Asker& ask) {
  Replies replies;
  replies.status.resize(static_cast<std::size_t>(state.size()));
  std::atomic<int> next{0};
  std::atomic<std::size_t> silent_count{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (int pe = next++; pe < state.size(); pe = next++) {
        std::optional<Status> status =
            pe == state.rank() ? state.status(-1) : ask(pe, -1, hop_limit_s);
        // If a whole rack is down, second attempts for all its PEs would take too long.
        if (!status && silent_count++ < max_named)
          status = ask(pe, -1, last_chance_s);
        const std::lock_guard lock(mutex);
        if (!status)
          replies.silent.push_back(pe);
        if (replies.silent.size() >= max_silent)
          next = state.size();
        replies.status[static_cast<std::size_t>(pe)] = std::move(status);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = state.size();
    }
  };
  std::vector<std::thread> askers;
  try {
    for (std::size_t i = 1; i < std::min(max_askers, replies.status.size()); ++i)
      askers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads can be started; the existing ones query all PEs.
  }
  work();
  for (std::thread& asker : askers)
    asker.join();
  if (failure)
    std::rethrow_exception(failure);
  std::sort(replies.silent.begin(), replies.silent.end());
  return replies;
}

std::optional<Failure> earliest(const State& state, const Replies& replies) {
  const auto before = [](const std::optional<Status>& left, const std::optional<Status>& right) {
    return left->phase.number < right->phase.number;
  };
  const auto [first, last] =
      std::minmax_element(replies.status.begin(), replies.status.end(), before);
  const PhaseNotice behind = (*first)->phase, ahead = (*last)->phase;
  if (behind.number == ahead.number)
    return std::nullopt;
  std::vector<int> pes;
  for (int pe = 0; pe < state.size(); ++pe)
    if (replies.status[static_cast<std::size_t>(pe)]->phase.number == behind.number)
      pes.push_back(pe);
  return blame(state, pes.front(), behind.name,
               words_for_all(state, pes) + (pes.size() > 1 ? " are" : " is") + " still in phase " +
                   behind.name + "; others are in phase " + ahead.name,
               "check what " + number_of(pes.front()) + " is doing; if it is only slow, " +
                   raise_timeout());
}

} // namespace

Failure follow_chain(const State& state, const Asker& ask, int peer) {
  std::vector<int> path = {state.rank()};
  Status status = state.status(-1);
  status.by_network = status.by_network && status.waiting_for == peer;
  PhaseNotice phase = status.phase;
  for (int pe = peer, hop = 0; hop < max_hops; ++hop, pe = status.waiting_for) {
    if (!is_pe(state, pe))
      return status.by_network ? unanswered(state, path.back(), -1, phase)
                               : idle(state, path.back(), phase);
    if (std::find(path.begin(), path.end(), pe) != path.end())
      return status.by_network ? unanswered(state, path.back(), pe, phase)
                               : circle(state, path, pe, phase);
    std::optional<Status> answer = ask(pe, -1, hop_limit_s);
    if (!answer)
      answer = ask(pe, -1, last_chance_s);
    if (!answer)
      return silent(state, ask, {pe});
    if (status.by_network)
      return unanswered(state, path.back(), pe, phase);
    path.push_back(pe);
    status = std::move(*answer);
    phase = status.phase;
  }
  if (status.by_network)
    return unanswered(state, path.back(), status.waiting_for, phase);
  return is_pe(state, status.waiting_for) ? endless(state, path.back(), status)
                                          : idle(state, path.back(), phase);
}

Failure query_all_pes(const State& state, const Asker& ask) {
  const Replies replies = collect(state, ask);
  if (!replies.silent.empty())
    return silent(state, ask, replies.silent);
  if (std::optional<Failure> failure = earliest(state, replies))
    return *failure;
  if (const Status own = state.status(-1); own.by_network)
    return unanswered(state, state.rank(), own.waiting_for, own.phase);
  // All PEs are in the same phase: some PE waits for no PE or for a network, or PEs wait in a
  // cycle.
  for (const bool by_network : {false, true})
    for (int pe = 0; pe < state.size(); ++pe) {
      const Status& status = *replies.status[static_cast<std::size_t>(pe)];
      if (by_network && status.by_network)
        return unanswered(state, pe, status.waiting_for, status.phase);
      if (!by_network && !status.by_network && pe != state.rank() &&
          !is_pe(state, status.waiting_for))
        return idle(state, pe, status.phase);
    }
  const Asker recall = [&](int pe, int, double) {
    return replies.status[static_cast<std::size_t>(pe)];
  };
  const int start = state.rank() == 0 ? state.size() - 1 : 0;
  return follow_chain(state, recall, start);
}

} // namespace shmemctl::failure_detector
