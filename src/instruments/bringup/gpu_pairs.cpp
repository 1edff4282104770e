// The part of the check that runs kernels.
#include "src/instruments/bringup/gpu_pairs.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/archive.h"

namespace shmemctl {

namespace {

using kernel_check::Layout;
using kernel_check::Result;
using kernel_check::Step;

/// A signal that takes longer than this, or than half of TIMEOUT, counts as lost, so that a lost
/// signal is a finding about the pair, and does not end the job.
constexpr std::uint64_t max_signal_timeout_ns = 10'000'000'000;

unsigned capabilities_of(const KernelPath& route, const std::string& heap_kind) {
  if (route.path == DevicePath::none)
    return 0;
  const bool atomics = route.path != DevicePath::load_store || heap_kind != "host";
  return can_put | can_get | can_put_signal | (atomics ? can_atomics : 0U);
}

/// The steps of the check on one PE.
class KernelCheck {
public:
  KernelCheck(PeGpu& gpu, const TransportReach& reach)
      : gpu_(gpu), reach_(reach), layout_{reach.n_pes}, job_(gpu.job()),
        buffer_(
            static_cast<std::byte*>(gpu.allocate(layout_.size_bytes(), Layout::alignment_bytes))) {
    job_ = gpu.job(); // the heap may have grown
    gpu_.fill(buffer_, 0xA5, layout_.size_bytes());
    const std::vector<std::byte> flags = flags_of(job_.pe);
    gpu_.copy(buffer_ + layout_.flags(0), flags.data(), flags.size());
  }

  /// Launches a step. Returns why it cannot be launched; "" if it was.
  std::string try_to_start(Step step) {
    if (const std::string& why_not = gpu_.info().no_kernels; !why_not.empty())
      return why_not;
    return kernel_check::launch(step, job_, buffer_, layout_,
                                std::min(max_signal_timeout_ns, job_.timeout_ns / 2),
                                gpu_.stream());
  }
  void start(Step step) {
    if (const std::string problem = try_to_start(step); !problem.empty())
      throw Error(ExitCode::unavailable, gpu_.info().name, "launch the pair check", problem,
                  "run shmemctl doctor --only driver,gpu");
  }
  void wait() { gpu_.wait(gpu_.stream(), "pair check by kernels"); }

  std::vector<Result> results() {
    std::vector<Result> all(static_cast<std::size_t>(layout_.n_pes) * kernel_check::n_ops);
    gpu_.copy(all.data(), buffer_ + layout_.result(0, 0), all.size() * sizeof(Result));
    return all;
  }
  /// Collective; not done by a destructor, because after an Error the others do not take part.
  void free() { gpu_.free(buffer_); }

private:
  std::vector<std::byte> flags_of(int me) const {
    std::vector<std::byte> flags;
    for (int peer = 0; peer < reach_.n_pes; ++peer) {
      unsigned flag = reach_.from(me, peer) != 0 ? kernel_check::reaches : 0U;
      if (reach_.from(peer, me) != 0)
        flag |= kernel_check::is_reached;
      // There is one bit for both directions: if only one direction has atomics, they are not
      // checked.
      if ((reach_.from(me, peer) & reach_.from(peer, me) & can_atomics) != 0)
        flag |= kernel_check::has_atomics;
      flags.push_back(static_cast<std::byte>(flag));
    }
    return flags;
  }

  PeGpu& gpu_;
  const TransportReach& reach_;
  Layout layout_;
  DeviceJob job_;
  std::byte* buffer_;
};

std::string hex_of(std::uint64_t value, PairOp op) {
  const bool is_byte = op == PairOp::put || op == PairOp::get || op == PairOp::put_signal;
  return is_byte ? fmt::format("{:02x}", value) : fmt::format("{:016x}", value);
}

} // namespace

const char* to_string(DevicePath path) {
  switch (path) {
  case DevicePath::none:
    return "none";
  case DevicePath::load_store:
    return "load/store";
  case DevicePath::proxy:
    return "proxy";
  case DevicePath::ibgda:
    return "ibgda";
  }
  return "none";
}

std::string kernel_reach_message(const std::vector<KernelPath>& routes,
                                 const std::string& heap_kind) {
  std::vector<ReachRow> rows(1, ReachRow(kernels_name));
  for (const KernelPath& route : routes)
    rows[0].add(capabilities_of(route, heap_kind), route.reason);
  return to_bytes(rows);
}

std::vector<PairFailure> kernel_failures(const std::vector<Result>& results, int me,
                                         int transport) {
  std::vector<PairFailure> failures;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    if (result.state == Result::well)
      continue;
    const auto peer = static_cast<int>(i / kernel_check::n_ops);
    PairFailure failure;
    failure.transport = transport;
    failure.op = static_cast<PairOp>(i % kernel_check::n_ops);
    const bool seen_by_target = failure.op == PairOp::put || failure.op == PairOp::put_signal ||
                                result.state == Result::wrong_at_target;
    failure.source = seen_by_target ? peer : me;
    failure.target = seen_by_target ? me : peer;
    failure.size_bytes = result.size_bytes;
    if (result.state == Result::nothing_arrived) {
      failure.note = "the signal did not arrive";
    } else {
      failure.offset_bytes = result.offset_bytes;
      failure.expected = hex_of(result.expected, failure.op);
      failure.found = hex_of(result.found, failure.op);
      failure.note = "seen by a kernel of PE " + std::to_string(me);
    }
    failures.push_back(std::move(failure));
  }
  return failures;
}

KernelFindings
check_pairs_by_kernels(PeGpu& gpu, const TransportReach& reach, int transport,
                       const std::function<std::vector<std::string>(const std::string&)>& gather) {
  KernelCheck check(gpu, reach);
  KernelFindings findings;
  // If a PE cannot launch kernels, the others must not wait for its kernels.
  const std::vector<std::string> problems = gather(check.try_to_start(Step::prepare));
  for (std::size_t pe = 0; pe < problems.size() && findings.problem.empty(); ++pe)
    if (!problems[pe].empty())
      findings.problem = "PE " + std::to_string(pe) + ": " + problems[pe];
  check.wait();
  if (findings.problem.empty()) {
    gather("");
    check.start(Step::act);
    check.start(Step::await);
    check.wait();
    gather("");
    check.start(Step::verify);
    check.wait();
    findings.failures = kernel_failures(check.results(), gpu.job().pe, transport);
  }
  check.free();
  return findings;
}

} // namespace shmemctl
