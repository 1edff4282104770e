
#include "src/runtime/failure_detector_state.h"
#include "src/base/text.h"
#include "src/runtime/failure_detector_link.h"
#include "src/runtime/phases.h"

namespace shmemctl::failure_detector {

State::State(int rank, int size, const Secret& secret, std::vector<std::string> host_names,
             ErrorPrinter printer)
    : rank_(rank), size_(size), printer_(std::move(printer)), secret_(secret),
      host_names_(std::move(host_names)), phase_{0, phase::failure_detector} {}

std::string State::host_of(int pe) const {
  const bool known = pe >= 0 && static_cast<std::size_t>(pe) < host_names_.size();
  return known ? host_names_[static_cast<std::size_t>(pe)] : "";
}

std::string State::describe(int pe) const {
  const std::string host = host_of(pe);
  return "PE " + std::to_string(pe) + (host.empty() ? "" : " (host " + host + ")");
}

void State::enter_phase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  phase_ = {phase_.number + 1, name.substr(0, max_name_bytes)};
}

PhaseNotice State::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

void State::set_step(const std::string& step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void State::set_waiting_for(int peer, bool by_network) noexcept {
  if (peer >= 0 || by_network)
    calls_.fetch_add(1, std::memory_order_relaxed);
  wait_.store(encode_wait(peer, by_network), std::memory_order_relaxed);
}

Status State::status(int about) const {
  Status status;
  const std::optional<PhaseNotice> other = phase_of(about);
  status.knows_other = other.has_value();
  status.other = other.value_or(PhaseNotice{});
  decode_wait(status, wait_.load(std::memory_order_relaxed));
  status.calls = calls_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  status.phase = phase_;
  status.step = step_;
  return status;
}

void State::note_phase(int pe, PhaseNotice phase) {
  const std::lock_guard lock(mutex_);
  neighbour_phases_[pe] = std::move(phase);
}

std::optional<PhaseNotice> State::phase_of(int pe) const {
  const std::lock_guard lock(mutex_);
  const auto found = neighbour_phases_.find(pe);
  return found == neighbour_phases_.end() ? std::nullopt : std::optional(found->second);
}

bool State::propose(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_)
    return false;
  failure_ = std::make_unique<const Failure>(std::move(failure));
  return true;
}

std::unique_ptr<Failure> State::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? std::make_unique<Failure>(*failure_) : nullptr;
}

namespace {

Error job_cannot_continue(const Failure& failure) {
  return Error(failure.code, "job", "continue", failure.message, failure.fix);
}

/// PE 0, unless it was lost, does not respond or was ended by a signal: it may be unable to print.
int printing_pe(const Failure& failure) {
  return failure.pe == 0 && !failure.error ? 1 : 0;
}

} // namespace

void State::throw_failure() const {
  throw job_cannot_continue(*failure());
}

Error State::error_of(const Failure& failure) const {
  if (!failure.error)
    return job_cannot_continue(failure);
  const Error& error = *failure.error;
  if (failure.pe == rank_ || error.same_on_all_pes())
    return error;
  return error.located(failure.host, failure.pe);
}

bool State::print(const Failure& failure) {
  if (!printer_ || excluded() || rank_ != printing_pe(failure) || printing_.exchange(true))
    return false;
  printer_(error_of(failure));
  note_printed(failure);
  return true;
}

void State::note_printed(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (!printed_)
    printed_ = std::make_unique<const Failure>(std::move(failure));
}

std::unique_ptr<Failure> State::printed() const {
  const std::lock_guard lock(mutex_);
  return printed_ ? std::make_unique<Failure>(*printed_) : nullptr;
}

Failure lost_pe(const State& state, int pe, const std::string& how) {
  const std::optional<PhaseNotice> phase = state.phase_of(pe);
  Failure failure;
  failure.pe = pe;
  failure.host = state.host_of(pe);
  failure.phase = phase ? phase->name : "";
  failure.message = state.describe(pe) + " was lost" +
                    (failure.phase.empty() ? "" : " in phase " + failure.phase) + ": " + how;
  failure.fix = "check the output and exit status of PE " + std::to_string(pe) +
                (failure.host.empty() ? "" : " and the kernel log of host " + failure.host) +
                ": a killed process prints nothing";
  failure.code = ExitCode::unavailable;
  failure.unresponsive = starts_with(how, out_of_reach);
  return failure;
}

} // namespace shmemctl::failure_detector
