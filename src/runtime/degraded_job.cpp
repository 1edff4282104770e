#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "src/base/error.h"
#include "src/runtime/degraded_job.h"

namespace shmemctl {

namespace {

/// The time before a late PE is probed for the first time, and the time between two probes.
constexpr std::chrono::milliseconds first_pause{200}, pause{1000};
/// A PE counts as silent if it does not respond within this time, or this share of the timeout if
/// that is shorter. A running failure detector responds within a millisecond, later on an
/// oversubscribed machine.
constexpr double max_silence_s = 2, silence_share = 0.25;
/// Share of the timeout after which a PE that responds counts as late. Less than 1, so that PE 0
/// decides before the other PEs' deadlines.
constexpr double lateness_share = 0.5;

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

} // namespace

/// The layout is the same on all PEs.
struct DegradedJob::Memory {
  struct Release {
    std::uint64_t lost, decision;
  };
  // On PE 0, written by each PE at its index; the size is visible before the barrier number.
  std::uint64_t arrived[max_pes], sizes[max_pes];
  // On every PE, written by PE 0; the release is visible before its barrier number.
  Release released;
  std::uint64_t released_number;
  // The sources of this PE's puts and of others' gets.
  std::uint64_t own_size;
  Release own_release;
  std::byte text[chunk_bytes];
};

std::size_t DegradedJob::size_bytes() {
  return sizeof(Memory);
}

DegradedJob::DegradedJob(Rma& rma, DegradedJobHooks hooks, std::byte* memory)
    : rma_(rma), hooks_(std::move(hooks)), memory_(*reinterpret_cast<Memory*>(memory)) {}

void DegradedJob::barrier(const char* step) {
  barrier(step, 0, [] { return std::uint64_t{0}; });
}

std::uint64_t DegradedJob::barrier(const char* step, std::uint64_t size,
                                   const std::function<std::uint64_t()>& decide) {
  ++number_;
  rma_.quiet();
  const auto me = static_cast<std::size_t>(rma_.pe());
  if (me == 0)
    return release(step, decide);
  memory_.own_size = size;
  rma_.put_signal(&memory_.sizes[me], &memory_.own_size, sizeof size, &memory_.arrived[me], number_,
                  SignalOp::set, 0);
  rma_.wait([this] { return load(memory_.released_number) >= number_; }, step, 0);
  // PE 0 releases a later barrier only after all survivors have arrived there, so this PE is lost.
  if (load(memory_.released_number) > number_)
    throw_excluded();
  lost_ = memory_.released.lost;
  if (is_lost(rma_.pe()))
    throw_excluded();
  return memory_.released.decision;
}

std::uint64_t DegradedJob::release(const char* step, const std::function<std::uint64_t()>& decide) {
  const Clock::time_point begin = Clock::now();
  for (int pe = 1; pe < rma_.n_pes(); ++pe)
    if (!is_lost(pe))
      await(pe, step, begin);
  memory_.own_release = {lost_, decide()};
  for (int pe = 1; pe < rma_.n_pes(); ++pe)
    // A PE that was declared lost is also released, so that it learns of it if it arrives later;
    // but not over a network, because PE 0 would have to wait for that put.
    if (!is_lost(pe) || rma_.direct(&memory_, pe))
      rma_.put_signal(&memory_.released, &memory_.own_release, sizeof memory_.own_release,
                      &memory_.released_number, number_, SignalOp::set, pe);
  return memory_.own_release.decision;
}

void DegradedJob::await(int pe, const char* step, Clock::time_point begin) {
  const auto has_arrived = [&] {
    return load(memory_.arrived[static_cast<std::size_t>(pe)]) >= number_;
  };
  const double silence_s = std::min(max_silence_s, rma_.timeout_s() * silence_share);
  const double max_delay_s = rma_.timeout_s() * lateness_share;
  Clock::time_point ask_at = Clock::now() + first_pause;
  for (;;) {
    rma_.wait([&] { return has_arrived() || Clock::now() >= ask_at; }, step, pe);
    if (has_arrived())
      return;
    const Presence presence = hooks_.presence(pe, silence_s);
    if (has_arrived())
      return;
    if (presence == Presence::gone)
      return mark_lost(pe, "its process is gone");
    if (presence == Presence::silent)
      return mark_lost(
          pe, fmt::format("it has not answered for {:g} s: it is stopped, or its host hangs",
                          silence_s));
    if (Clock::now() - begin > std::chrono::duration<double>(max_delay_s))
      return mark_lost(pe,
                       fmt::format("it is late: its process answers, but did not reach this step "
                                   "within {:g} s: {}",
                                   max_delay_s, step));
    ask_at = Clock::now() + pause;
  }
}

void DegradedJob::mark_lost(int pe, const std::string& why) {
  lost_ |= std::uint64_t{1} << pe;
  reasons_.push_back({pe, why});
}

void DegradedJob::throw_excluded() {
  hooks_.exclude_self();
  throw Error(ExitCode::finding, fmt::format("PE {}", rma_.pe()), "continue",
              "the other PEs timed out waiting for it and continued without it",
              "check what delayed it; the report of PE 0 says how long the others waited");
}

std::vector<std::string> DegradedJob::gather(const std::string& text) {
  std::string all;
  if (rma_.pe() == 0) {
    // Texts are sent as sizes, then their bytes.
    const std::vector<std::string> texts = gather_on_first(text);
    for (const std::string& one : texts) {
      const std::uint64_t size = one.size();
      all.append(reinterpret_cast<const char*>(&size), sizeof size);
    }
    for (const std::string& one : texts)
      all += one;
  } else {
    gather_on_first(text);
  }
  return split_gathered(broadcast(std::move(all)), rma_.n_pes());
}

std::vector<std::string> split_gathered(const std::string& all, int n_pes) {
  const auto count = static_cast<std::size_t>(n_pes);
  std::vector<std::string> texts;
  std::size_t at = count * sizeof(std::uint64_t);
  bool whole = at <= all.size();
  for (std::size_t pe = 0; whole && pe < count; ++pe) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data() + pe * sizeof size, sizeof size);
    whole = size <= all.size() - at;
    if (whole)
      texts.push_back(all.substr(at, size));
    at += whole ? size : 0;
  }
  if (!whole || at != all.size())
    throw Error(
        ExitCode::unavailable, "data gathered by PE 0", "read",
        fmt::format("its {} bytes do not hold one text for each of {} PEs", all.size(), count),
        "run the same version of shmemctl on all hosts, and check PE 0");
  return texts;
}

/// PE 0 gets the texts in chunks, with a barrier before each chunk.
/// @return on PE 0 the texts of all PEs
std::vector<std::string> DegradedJob::gather_on_first(const std::string& text) {
  std::vector<std::string> texts(static_cast<std::size_t>(rma_.n_pes()));
  std::vector<std::byte> part(chunk_bytes);
  const auto fetch = [&] {
    bool more = false;
    for (int pe = 1; pe < rma_.n_pes(); ++pe) {
      if (is_lost(pe))
        continue;
      const auto slot = static_cast<std::size_t>(pe);
      const std::uint64_t left = memory_.sizes[slot];
      const std::size_t size = std::min<std::uint64_t>(left, chunk_bytes);
      if (size > 0)
        rma_.get(part.data(), memory_.text, size, pe);
      texts[slot].append(reinterpret_cast<const char*>(part.data()), size);
      more = more || left > chunk_bytes;
    }
    return std::uint64_t{more};
  };
  std::size_t at = 0;
  bool more = true;
  while (more) {
    const std::size_t left = text.size() - at, size = std::min(left, chunk_bytes);
    if (rma_.pe() != 0 && size > 0) // other PEs may still read PE 0's `text` of the last broadcast
      std::memcpy(memory_.text, text.data() + at, size);
    at += size;
    more = barrier("gather of the PEs' reports", left, fetch) != 0;
  }
  texts[0] = text;
  for (int pe = 1; pe < rma_.n_pes(); ++pe)
    if (is_lost(pe)) // its text may be incomplete
      texts[static_cast<std::size_t>(pe)].clear();
  return texts;
}

/// Returns PE 0's text on all PEs.
std::string DegradedJob::broadcast(std::string text) {
  if (rma_.n_pes() == 1)
    return text;
  std::string received;
  std::vector<std::byte> part(chunk_bytes);
  std::size_t at = 0;
  std::uint64_t left = 0;
  do {
    // A PE that has arrived at this barrier has fetched the previous chunk.
    left = barrier("broadcast of the PEs' reports", 0, [&] {
      const std::size_t rest = text.size() - at;
      std::memcpy(memory_.text, text.data() + at, std::min(rest, chunk_bytes));
      at += std::min(rest, chunk_bytes);
      return std::uint64_t{rest};
    });
    const std::size_t size = std::min<std::uint64_t>(left, chunk_bytes);
    if (rma_.pe() != 0) {
      rma_.get(part.data(), memory_.text, size, 0);
      received.append(reinterpret_cast<const char*>(part.data()), size);
    }
  } while (left > chunk_bytes);
  return rma_.pe() == 0 ? text : received;
}

} // namespace shmemctl
