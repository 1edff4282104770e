#include "src/instruments/bringup/buffer_check.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reports/table.h"
#include "src/base/round_up.h"
#include "src/base/text.h"
#include "src/instruments/bringup/pattern.h"
#include "src/runtime/fault.h"
#include "src/runtime/registered_memory.h"

namespace shmemctl {

namespace {

constexpr const char* buffer_phase = "buffer-check";
constexpr std::size_t sizes_bytes[] = {1, 8, 4096, (std::size_t{64} << 10) + 3};
constexpr std::size_t buffer_guard_bytes = 64; ///< before and after the payload; must not change
constexpr int patterns_number =
    1000; ///< takes the place of a transport's number in PatternKey; no transport has this number

/// A put, the same on all PEs.
struct BufferPut {
  std::size_t offset_bytes, size_bytes;
};

std::vector<BufferPut> puts() {
  std::vector<BufferPut> all;
  std::size_t end = 0;
  for (const std::size_t size : sizes_bytes) {
    const std::size_t offset = end + buffer_guard_bytes + size % 8; // odd sizes at odd addresses
    all.push_back({offset, size});
    end = round_up(offset + size, std::size_t{64});
  }
  return all;
}

std::size_t buffer_bytes() {
  return puts().back().offset_bytes + puts().back().size_bytes + buffer_guard_bytes;
}

PatternKey key_of(const BufferPut& put, int source, int target) {
  return {source, target, patterns_number, 0, put.size_bytes};
}

/// The neighbours in a ring of the PEs that share memory with this one: the PE that puts to this
/// PE, and the PE that this one puts to. Both are -1 for a PE that shares memory with no other.
struct Neighbours {
  int from = -1, to = -1;
};
Neighbours neighbours_of(Runtime& runtime) {
  Teams& teams = runtime.teams();
  const int n = teams.n_pes(team_shared), my_pe = teams.my_pe(team_shared);
  if (n < 2)
    return {};
  return {teams.world_pe(team_shared, (my_pe + n - 1) % n),
          teams.world_pe(team_shared, (my_pe + 1) % n)};
}

void put_all(Buffers& buffers, const BufferDescriptor& target, int source_pe) {
  for (const BufferPut& put : puts()) {
    std::vector<std::byte> data(put.size_bytes);
    fill_pattern(key_of(put, source_pe, target.pe), data.data(), data.size());
    buffers.put(target, put.offset_bytes, data.data(), data.size());
  }
}

BufferFailure wrong_byte(int source, int target, const BufferPut& put, std::size_t at,
                         std::byte expected, std::byte found) {
  return {source,
          target,
          put.size_bytes,
          at,
          std::to_integer<int>(expected),
          std::to_integer<int>(found)};
}

/// The first wrong byte of each put, and of each gap between puts.
std::vector<BufferFailure> verify_all(const std::byte* buffer, int source, int target) {
  std::vector<BufferFailure> failures;
  std::size_t end = 0;
  const auto untouched = [&](const BufferPut& put, std::size_t size_bytes) {
    if (const auto at = sentinel_difference(buffer + end, size_bytes))
      failures.push_back(wrong_byte(source, target, put, end + *at, sentinel, buffer[end + *at]));
  };
  for (const BufferPut& put : puts()) {
    untouched(put, put.offset_bytes - end);
    const PatternKey key = key_of(put, source, target);
    const std::byte* const arrived = buffer + put.offset_bytes;
    if (const auto at = pattern_difference(key, arrived, put.size_bytes))
      failures.push_back(wrong_byte(source, target, put, put.offset_bytes + *at,
                                    pattern_byte(key, *at), arrived[*at]));
    end = put.offset_bytes + put.size_bytes;
  }
  untouched(puts().back(), buffer_guard_bytes);
  return failures;
}

} // namespace

BufferVerdict check_registered_buffers(Runtime& runtime, const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  runtime.failure_detector().phase(buffer_phase);
  const Neighbours neighbours = neighbours_of(runtime);
  BufferReport own;
  // An error that does not concern the job is a result of this check, and all PEs continue.
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable && error.code() != ExitCode::usage)
        throw;
      runtime.failure_detector().check(); // throws if the job has failed
      own.problem = error.message();
    }
  };
  std::unique_ptr<RegisteredMemory> memory;
  attempt([&] { memory = std::make_unique<RegisteredMemory>(runtime, buffer_bytes()); });
  if (memory) { // on all PEs or on none
    std::fill_n(memory->get(), buffer_bytes(), sentinel);
    runtime.gather_text(""); // so that no PE puts before all buffers are filled
    if (neighbours.to >= 0)
      attempt([&] {
        const BufferDescriptor& target = memory->of(neighbours.to);
        own.path = to_string(runtime.buffers().path_to(target).kind);
        put_all(runtime.buffers(), target, runtime.pe());
      });
    const bool put_here = [&] { // the buffer must not be read before all puts are complete
      const std::vector<std::string> problems = runtime.gather_text(own.problem);
      return neighbours.from >= 0 && problems.at(static_cast<std::size_t>(neighbours.from)).empty();
    }();
    if (is_fault(options, FaultKind::corrupt, runtime.pe(), buffer_phase))
      memory->get()[puts().back().offset_bytes] ^= std::byte{0xff};
    if (put_here)
      own.failures = verify_all(memory->get(), neighbours.from, runtime.pe());
    memory->free();
  }
  if (!own.problem.empty() && neighbours.to >= 0)
    own.problem = "to PE " + std::to_string(neighbours.to) + ": " + own.problem;
  BufferVerdict verdict = merge_buffer_reports(runtime.gather_text(to_bytes(own)));
  verdict.time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return verdict;
}

void serialize(Archive& archive, BufferFailure& failure) {
  archive(failure.source, failure.target, failure.size_bytes, failure.offset_bytes,
          failure.expected, failure.found);
}

void serialize(Archive& archive, BufferReport& report) {
  archive(report.path, report.problem, report.failures);
}

BufferVerdict merge_buffer_reports(const std::vector<std::string>& messages) {
  BufferVerdict verdict;
  std::set<std::string> paths;
  for (std::size_t pe = 0; pe < messages.size(); ++pe) {
    const auto report = value_of_pe<BufferReport>(messages[pe], pe, "check of registered buffers");
    if (!report.problem.empty()) {
      verdict.problems.push_back("PE " + std::to_string(pe) + " " + report.problem);
    } else if (!report.path.empty()) {
      ++verdict.pairs;
      paths.insert(report.path);
    }
    verdict.failures.insert(verdict.failures.end(), report.failures.begin(), report.failures.end());
  }
  verdict.paths.assign(paths.begin(), paths.end());
  return verdict;
}

namespace {

std::string describe(const BufferFailure& failure) {
  return fmt::format(
      "put of {} bytes from PE {} into a registered buffer of PE {}: at offset {} of "
      "the buffer expected {:02x}, found {:02x}",
      failure.size_bytes, failure.source, failure.target, failure.offset_bytes, failure.expected,
      failure.found);
}

/// The number of distinct pairs with a failure.
std::size_t wrong_pairs(const BufferVerdict& verdict) {
  std::set<std::pair<int, int>> pairs;
  for (const BufferFailure& failure : verdict.failures)
    pairs.emplace(failure.source, failure.target);
  return pairs.size();
}

std::string result_text(const BufferVerdict& verdict) {
  if (!verdict.failures.empty())
    return fmt::format("{} of {} got wrong data", wrong_pairs(verdict),
                       counted(static_cast<std::size_t>(verdict.pairs), "pair"));
  if (verdict.pairs == 0)
    return verdict.problems.empty() ? "no PEs share memory" : verdict.problems.front();
  return counted(static_cast<std::size_t>(verdict.pairs), "pair") + ", " +
         join(verdict.paths, " and ");
}

} // namespace

void add_to_report(const BufferVerdict& verdict, Report& report) {
  if (verdict.pairs == 0 && verdict.problems.empty())
    return; // no PEs share memory, so nothing can be checked
  ResultRow row;
  row.case_name = "bringup.registered-buffer";
  row.params = {{"transport", "registered buffer"}};
  row.reason = result_text(verdict);
  if (verdict.pairs == 0 && verdict.passed()) {
    row.status = RowStatus::skip;
  } else {
    row.verified = verdict.passed() ? Verified::passed : Verified::failed;
    row.status = verdict.passed() ? RowStatus::pass : RowStatus::fail;
    row.time_s = verdict.time_s;
  }
  report.results.push_back(std::move(row));
  if (!verdict.failures.empty()) {
    const BufferFailure& first = verdict.failures.front();
    report.findings.push_back(
        {"buffer-corrupt", Severity::error,
         fmt::format("PE {} to PE {}", first.source, first.target),
         describe(first) + "; " + result_text(verdict),
         "check the memory of this host (shmemctl doctor, dmesg): registered buffers are copied "
         "within one node"});
  }
  if (!verdict.problems.empty())
    report.findings.push_back(
        {"buffer-unavailable", Severity::warning, "registered buffers",
         fmt::format("{} cannot use them: {}", counted(verdict.problems.size(), "pair"),
                     verdict.problems.front()),
         "run the PEs of a node as one user in one PID namespace, with memory to register; "
         "programs "
         "that only use the symmetric heap are not affected"});
}

std::string buffers_line(const BufferVerdict& verdict) {
  return "registered buffers: " +
         std::string(!verdict.passed() || (verdict.pairs == 0 && !verdict.problems.empty()) ? "x "
                     : verdict.pairs == 0                                                   ? "- "
                                          : "+ ") +
         safe_text(result_text(verdict)) + "\n";
}

} // namespace shmemctl
