#include "src/runtime/proxy/proxy_channel.h"

#include <algorithm>
#include <new>
#include <thread>

#include "src/base/timeout_words.h"

namespace shmemctl {

namespace {

const char* name_of(std::uint32_t op) {
  static constexpr const char* names[proxy_op_count] = {"none",
                                                        "put",
                                                        "put of a value",
                                                        "get",
                                                        "get of a value",
                                                        "atomic operation",
                                                        "put with signal",
                                                        "fence",
                                                        "quiet"};
  return op < proxy_op_count ? names[op] : "request";
}

Error bad_rings(const std::string& problem) {
  return {ExitCode::usage, "proxy threads", "", problem,
          "pass 1 to " + std::to_string(most_proxy_threads)};
}

/// Fills in what `options` leave out.
ProxyOptions completed(ProxyOptions options, std::size_t n_pes) {
  if (options.threads < 1 || options.threads > most_proxy_threads)
    throw bad_rings("invalid number: " + std::to_string(options.threads));
  if (options.ring_of_pe.empty())
    for (std::size_t pe = 0; pe < n_pes; ++pe)
      options.ring_of_pe.push_back(static_cast<std::uint8_t>(pe % options.threads));
  if (options.ring_of_pe.size() != n_pes ||
      std::any_of(options.ring_of_pe.begin(), options.ring_of_pe.end(),
                  [&](std::uint8_t ring) { return ring >= options.threads; }))
    throw bad_rings("not every PE has one");
  return options;
}

} // namespace

ProxyChannel::ProxyChannel(JobHealth& health, const ProxyOptions& options, std::size_t n_pes)
    : health_(health), options_(completed(options, n_pes)) {
  for (unsigned ring = 0; ring < options_.threads; ++ring) {
    memories_.push_back(std::make_unique<ProxyMemory>(options_));
    views_.push_back(memories_.back()->view());
  }
  rings_ = {views_.data(), options_.ring_of_pe.data(), n_rings(), static_cast<std::int32_t>(n_pes)};
}

void ProxyChannel::fail(const Error& error, Condition condition, unsigned ring) noexcept {
  const std::lock_guard lock(error_mutex_);
  try {
    if (!error_)
      error_ = error;
  } catch (const std::bad_alloc&) {
    // throw_failure() says so.
  }
  for (unsigned each = 0; each < n_rings(); ++each) {
    const Condition mine = each == ring ? condition : Condition::failed;
    std::uint64_t& failed = memories_[each]->header().failed;
    // Release: the error is there for who sees this.
    HostAtomics::store_release(&failed, std::max(failed, static_cast<std::uint64_t>(mine)));
  }
}

void ProxyChannel::throw_failure() const {
  const std::lock_guard lock(error_mutex_);
  if (!error_)
    throw Error(ExitCode::unavailable, "proxy", "store its error", "out of memory",
                "free host memory");
  throw *error_;
}

Error ProxyChannel::overdue(const std::string& step, unsigned ring) const {
  const std::string which = n_rings() > 1 ? " of ring " + std::to_string(ring) : "";
  return {ExitCode::deadline, step + which, "wait for the proxy",
          "timed out: " + memories_[ring]->culprit(),
          "check this process's threads and the GPU's kernels, or " + raise_timeout()};
}

void ProxyChannel::give_up(const std::string& step, unsigned ring) {
  try {
    const std::uint64_t word = HostAtomics::load_relaxed(&header(ring).serving);
    if (word != 0) {
      const ProxyServing serving = to_serving(word);
      health_.give_up(step + " behind a " + name_of(serving.op) + " of the proxy", serving.pe);
    }
    throw overdue(step, ring);
  } catch (const Error& error) {
    fail(error);
    throw;
  }
}

bool ProxyWait::pause_long() {
  constexpr int yields = 200;
  constexpr std::chrono::microseconds nap{50};
  const auto now = Deadline::Clock::now();
  if (!began_)
    began_ = now;
  if (turns_ <= spins + yields)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(nap);
  if (turns_ % 16 != 0 && turns_ <= spins + yields)
    return true;
  if (channel_.condition(ring_) == ProxyChannel::Condition::stuck)
    channel_.throw_failure();
  channel_.health().check();
  if (now - *began_ > std::chrono::duration<double>(channel_.options().timeout_s))
    channel_.give_up(step_, ring_);
  return true;
}

} // namespace shmemctl
