#include "transports/ibrc/am_service.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>

#include "src/base/log.h"
#include "src/base/service_thread.h"

namespace shmemctl::ibrc {

namespace {

/// The thread polls a few times before it sleeps, since requests rarely come alone. It does not
/// poll for longer: a sleeping thread is woken at once, whereas a thread that yields on a busy core
/// waits milliseconds until the other thread's time slice ends.
constexpr int polls_before_sleep = 16;
constexpr int max_rounds = 16;
/// Nothing wakes the thread when there is room for pending replies, so it polls while there are
/// any.
constexpr int pending_ms = 1, longest_ms = 1000;

std::size_t connected(const std::vector<std::uint32_t>& credits) {
  return static_cast<std::size_t>(
      std::count_if(credits.begin(), credits.end(), [](std::uint32_t each) { return each > 0; }));
}

} // namespace

MessageMemory::MessageMemory(const JobView& job, const std::vector<std::uint32_t>& credits,
                             int qp_sets)
    : job_(job) {
  std::size_t all_bytes = 0;
  for (const std::uint32_t each : credits) {
    targets_.push_back({each, all_bytes});
    all_bytes += each == 0 ? 0 : ReplyBlock{each}.size_bytes() * static_cast<std::size_t>(qp_sets);
  }
  pages_ = rc::Pages(all_bytes, "memory for messages");
  for (const UsedDevice& used : job.devices)
    handles_.push_back(verbs::register_memory(*used.device, pages_.data(), all_bytes,
                                              verbs::MemoryKind::host, {}, "memory for messages"));
}

ReplyAddress MessageMemory::place_for(int pe) const {
  ReplyAddress place;
  place.credits = targets_[static_cast<std::size_t>(pe)].credits;
  place.address = reinterpret_cast<std::uintptr_t>(block(pe, 0));
  for (const auto& nic : job_.nics)
    place.keys.push_back(handles_[nic->device_index]->rkey);
  return place;
}

MessageService::MessageService(JobView& job, const MessageRoom& room)
    : job_(job), memory_(job, room.credits, room.qp_sets),
      responder_(job, regions_, room.own_credits, connected(room.credits)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakeup_)
    throw system_error("ibrc", "create an eventfd", errno,
                       "raise the limit of open files (ulimit -n)");
  const std::uint32_t receives = room.own_credits * static_cast<std::uint32_t>(job.n_pes) *
                                 static_cast<std::uint32_t>(room.qp_sets);
  // All messages may arrive at the same device.
  for (UsedDevice& used : job.devices)
    used.receives =
        std::make_unique<verbs::SharedReceives>(*used.device, receives, AtomicMessage::size_bytes);
}

MessageService::~MessageService() {
  stop_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // The write fails only if the counter is full, and then the thread wakes up anyway.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof one);
  if (thread_.joinable())
    thread_.join();
}

void MessageService::start(Exchange& exchange) {
  std::vector<std::string> out(static_cast<std::size_t>(job_.n_pes));
  for (int pe = 0; pe < job_.n_pes; ++pe)
    if (memory_.layout(pe).credits > 0)
      out[static_cast<std::size_t>(pe)] = to_bytes(memory_.place_for(pe));
  const std::vector<std::string> in = exchange.alltoall(out);
  for (int pe = 0; pe < job_.n_pes; ++pe) {
    if (memory_.layout(pe).credits == 0)
      continue;
    const std::optional<ReplyAddress> place =
        from_bytes<ReplyAddress>(in[static_cast<std::size_t>(pe)]);
    if (!place || !responder_.set_place(pe, *place))
      throw job_.malformed(pe, "the address of its reply buffer");
  }
  thread_ = start_service_thread("ibrc", [this] { run(); });
}

bool MessageService::serve() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && serve_locked();
}

bool MessageService::serve_locked() {
  if (failure_)
    throw Error(*failure_);
  bool any = false;
  try {
    for (int round = 0; round < max_rounds; ++round) {
      int count = 0;
      for (std::size_t device = 0; device < job_.devices.size(); ++device)
        count += job_.devices[device].receives->poll(
            [&](std::uint32_t queue_pair, const std::byte* bytes, std::size_t size_bytes) {
              responder_.on_message(device, queue_pair, bytes, size_bytes);
            });
      responder_.poll();
      responder_.send();
      any = any || count > 0;
      if (count == 0)
        break;
    }
  } catch (const Error& error) {
    failure_ = error.with_where({job_.host, job_.pe, error.where().device, std::nullopt});
    throw Error(*failure_);
  }
  return any;
}

void MessageService::run() {
  try {
    int polls = 0;
    while (!stop_.load(std::memory_order_acquire)) {
      bool any = false;
      {
        const std::lock_guard lock(mutex_);
        any = serve_locked();
      }
      polls = any ? 0 : polls + 1;
      if (polls == polls_before_sleep) {
        sleep();
        polls = 0;
      }
    }
  } catch (const Error& error) {
    // Threads of this PE that wait get the error from serve(), too. Requesters on other PEs fail in
    // their own waits.
    log(LogLevel::warning, "ibrc", error.message());
  }
}

void MessageService::sleep() {
  std::vector<pollfd> events(1, {wakeup_.get(), POLLIN, 0});
  bool pending = false;
  {
    const std::lock_guard lock(mutex_);
    for (const UsedDevice& used : job_.devices) {
      used.receives->clear_events();
      used.receives->arm();
      events.push_back({used.receives->descriptor(), POLLIN, 0});
    }
    if (serve_locked()) // messages that arrived before the notification was armed
      return;
    pending = responder_.pending();
  }
  ::poll(events.data(), events.size(), pending ? pending_ms : longest_ms);
}

} // namespace shmemctl::ibrc
