#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/runtime/failure_detector_thread.h"

namespace shmemctl::failure_detector {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_pending = 128;
constexpr auto stranger_lifetime = 5s; // several round trips of a slow network
/// When all slots are in use, pending connections that are older than this are dropped.
constexpr auto stranger_timeout = 100ms;
constexpr auto accept_pause = 100ms;
constexpr double last_flush_s = 0.2;
constexpr int idle_poll_ms = 10000;

FileDescriptor make_event() {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event)
    throw system_error("failure detector", "start", errno,
                       "raise the limit of open files (ulimit -n)");
  return event;
}

} // namespace

Thread::Thread(State& state, std::vector<Listener> listeners, const std::vector<int>& accepts_from)
    : state_(state), listeners_(std::move(listeners)),
      accepts_from_(accepts_from.begin(), accepts_from.end()), wake_(make_event()) {
  thread_ = start_service_thread("failures", [this] { run(); });
}

Thread::~Thread() {
  stop_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void Thread::add_link(int peer, Socket socket) {
  {
    const std::lock_guard lock(mutex_);
    new_links_.emplace_back(peer, std::move(socket), "");
  }
  wake();
}

int Thread::wait_linked(const std::vector<int>& peers, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto missing = [&] {
    const auto found = std::find_if(peers.begin(), peers.end(),
                                    [&](int peer) { return linked_.count(peer) == 0; });
    return found == peers.end() ? -1 : *found;
  };
  changed_.wait_until(lock, deadline.at(), [&] { return missing() < 0 || state_.failed(); });
  return missing();
}

void Thread::wait_failed(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(), [this] { return state_.failed(); });
}

bool Thread::wait_printed(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.at(), [this] { return printed_; });
}

void Thread::wake() noexcept {
  const std::uint64_t one = 1;
  // The write can only fail if the eventfd's counter is full, and then the thread will wake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

bool Thread::hand_over(double timeout_s) noexcept {
  std::unique_lock lock(mutex_);
  const std::uint64_t request = ++requested_;
  wake();
  return changed_.wait_until(lock, Deadline::after(std::chrono::duration<double>(timeout_s)).at(),
                             [&] { return handed_over_ >= request; });
}

void Thread::run() {
  while (!stop_.load(std::memory_order_acquire))
    run_once();
  listeners_.clear();
  pending_.clear();
  const Deadline end = Deadline::after(std::chrono::duration<double>(last_flush_s));
  take_new_links();
  notify_links();
  for (Link& link : links_) {
    while (link.has_unsent() && !end.passed()) {
      pollfd writable{link.descriptor(), POLLOUT, 0};
      ::poll(&writable, 1, end.poll_ms());
      link.flush();
    }
    link.drain();
  }
  links_.clear();
}

void Thread::run_once() {
  std::uint64_t request = 0;
  {
    const std::lock_guard lock(mutex_);
    request = requested_;
  }
  take_new_links();
  notify_links();
  confirm(request);
  wait();
  read_links();
  read_pending();
  accept_pending();
}

void Thread::take_new_links() {
  std::vector<Link> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(new_links_);
  }
  for (Link& link : taken) {
    links_.push_back(std::move(link));
    send_current_state(links_.back());
    linked(links_.back().peer()); // the Welcome of the peer has arrived
  }
}

void Thread::send_current_state(Link& link) {
  if (goodbye_sent_)
    link.queue(Goodbye{});
  if (failure_sent_)
    link.queue(*state_.failure());
  if (printed_sent_)
    link.queue(Printed{*state_.printed()});
}

void Thread::linked(int peer) {
  const std::lock_guard lock(mutex_);
  linked_.insert(peer);
  changed_.notify_all();
}

bool Thread::is_linked(int peer) {
  const std::lock_guard lock(mutex_);
  return linked_.count(peer) != 0;
}

/// Forwards a failure before it publishes it, so that a PE whose main thread ends because of the
/// failure has already forwarded it.
void Thread::notify_links() {
  const std::unique_ptr<Failure> failure = failure_sent_ ? nullptr : state_.failure();
  const bool leaves = !goodbye_sent_ && state_.leaving();
  const PhaseNotice phase = state_.phase();
  for (Link& link : links_) {
    link.offer_phase(phase);
    if (failure)
      link.queue(*failure);
    if (leaves)
      link.queue(Goodbye{});
    link.flush();
  }
  failure_sent_ = failure_sent_ || failure;
  goodbye_sent_ = goodbye_sent_ || leaves;
  if (failure) {
    state_.publish();
    {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
    // Printed here because the main thread may be busy for long. If a PE was interrupted by a
    // signal, the main threads print (await_printed()): a signal that was sent to all PEs ends them
    // without a message.
    if (failure->code != ExitCode::interrupted)
      state_.print(*failure);
  }
  notify_printed();
}

/// Notifies the neighbours before this PE's main thread, because that thread may then end the
/// process.
void Thread::notify_printed() {
  const std::unique_ptr<Failure> printed = printed_sent_ ? nullptr : state_.printed();
  if (!printed)
    return;
  for (Link& link : links_) {
    link.queue(Printed{*printed});
    link.flush();
  }
  printed_sent_ = true;
  const std::lock_guard lock(mutex_);
  printed_ = true;
  changed_.notify_all();
}

void Thread::confirm(std::uint64_t request) {
  const bool all_sent = std::none_of(links_.begin(), links_.end(),
                                     [](const Link& link) { return link.has_unsent(); });
  if (!all_sent)
    return;
  const std::lock_guard lock(mutex_);
  handed_over_ = std::max(handed_over_, request);
  changed_.notify_all();
}

bool Thread::accepting() const {
  return Clock::now() >= accept_again_at_ && pending_.size() < max_pending;
}

int Thread::poll_timeout_ms() const {
  if (pending_.empty() && accepting())
    return idle_poll_ms;
  return std::chrono::duration_cast<std::chrono::milliseconds>(stranger_timeout).count() / 2;
}

void Thread::wait() {
  polled_.clear();
  polled_.push_back({wake_.get(), POLLIN, 0});
  for (const Link& link : links_)
    polled_.push_back(
        {link.descriptor(), static_cast<short>(link.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  for (const PendingConnection& pending : pending_)
    polled_.push_back({pending.descriptor(), POLLIN, 0});
  if (accepting())
    for (const Listener& listener : listeners_)
      polled_.push_back({listener.descriptor(), POLLIN, 0});
  ::poll(polled_.data(), polled_.size(), poll_timeout_ms());
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t cleared = ::read(wake_.get(), &count, sizeof count);
}

void Thread::accept_pending() {
  drop_oldest_pending();
  try {
    // Bounded, so that a flood of connections does not delay notices.
    std::size_t left = max_pending;
    for (Listener& listener : listeners_)
      while (accepting() && left-- > 0) {
        Socket socket = listener.accept_now();
        if (!socket)
          break;
        pending_.emplace_back(std::move(socket));
        if (!handle(pending_.back()))
          pending_.pop_back();
      }
  } catch (const Error& error) {
    // Out of descriptors or memory: connections stay in the listener's queue for a while.
    log(LogLevel::warning, "failure detector", error.message());
    accept_again_at_ = Clock::now() + accept_pause;
  }
}

void Thread::drop_oldest_pending() {
  pending_.remove_if(
      [](const PendingConnection& pending) { return pending.age() > stranger_lifetime; });
  if (pending_.size() >= max_pending)
    pending_.remove_if(
        [](const PendingConnection& pending) { return pending.age() > stranger_timeout; });
}

void Thread::read_pending() {
  pending_.remove_if([this](PendingConnection& pending) { return !handle(pending); });
}

/// Returns false if the connection can be removed: it was answered, taken over, or is not of this
/// job.
bool Thread::handle(PendingConnection& pending) {
  const Decoding state = pending.receive();
  if (state == Decoding::incomplete)
    return true;
  if (state == Decoding::garbage)
    return false;
  const auto* query = std::get_if<Query>(&pending.message());
  const Hello hello = query ? query->from : std::get<Hello>(pending.message());
  if (!is_proven(pending.handshake(), state_.secret(), pending.message()) ||
      hello.size != state_.size()) {
    log(LogLevel::debug, "failure detector", "a connection of another job was dropped");
    return false;
  }
  if (query)
    pending.answer(proven(pending.handshake(), state_.secret(), state_.status(query->about)));
  else
    welcome(pending, hello);
  return false;
}

/// If a neighbour connects again, it has not received the Welcome on its previous connection and
/// has abandoned it; the new connection replaces the old one.
void Thread::welcome(PendingConnection& pending, const Hello& hello) {
  if (accepts_from_.count(hello.rank) == 0 || is_linked(hello.rank)) {
    log(LogLevel::debug, "failure detector",
        state_.describe(hello.rank) + " connected twice, or is no neighbour");
    return;
  }
  links_.remove_if([&](const Link& link) { return link.peer() == hello.rank; });
  const Welcome welcome = proven(pending.handshake(), state_.secret(), Welcome{{}, state_.rank()});
  Link& link = links_.emplace_back(hello.rank, pending.take_socket(), pending.take_rest());
  link.queue(welcome);
  send_current_state(link);
  link.flush();
  wake();
}

void Thread::read_links() {
  for (auto link = links_.begin(); link != links_.end();) {
    const auto now = link++;
    const Ending ending = now->receive([&](Message message) { handle(*now, std::move(message)); });
    if (ending)
      close_link(now, *ending);
  }
}

void Thread::handle(Link& link, Message message) {
  // The connecting side sends nothing more until it has received the Welcome.
  if (!is_linked(link.peer()))
    linked(link.peer());
  if (auto* phase = std::get_if<PhaseNotice>(&message))
    state_.note_phase(link.peer(), std::move(*phase));
  else if (auto* failure = std::get_if<Failure>(&message))
    state_.propose(std::move(*failure));
  else if (auto* printed = std::get_if<Printed>(&message))
    state_.note_printed(std::move(printed->failure));
  else if (std::holds_alternative<Goodbye>(message))
    departed_.insert(link.peer());
}

void Thread::close_link(std::list<Link>::iterator link, const std::string& how) {
  const int peer = link->peer();
  links_.erase(link);
  if (!is_linked(peer)) { // the peer may connect again
    log(LogLevel::info, "failure detector",
        state_.describe(peer) + " gave up a connection before it was complete: " + how);
    return;
  }
  if (departed_.count(peer) == 0 && !state_.leaving() && !state_.may_die(peer))
    state_.propose(lost_pe(state_, peer, how));
}

} // namespace shmemctl::failure_detector
