#include "src/instruments/bench/moe/rank_timings.h"

#include <algorithm>
#include <optional>

#include "src/base/archive.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::moe {

namespace {

/// What other ranks need to know about one rank's calls of one operation; times in us.
struct OperationMessage {
  double cold = 0, late = 0; ///< late: median
  std::vector<double> total = {}, counts = {}, transfer = {}, arrival = {}, pack = {};
  std::vector<double> send = {}, receive = {};
  std::vector<double> waits = {}, begin_waits = {}; ///< by peer: medians over the calls
};

void serialize(Archive& archive, OperationMessage& one) {
  archive(one.cold, one.late, one.total, one.counts, one.transfer, one.arrival, one.pack, one.send,
          one.receive, one.waits, one.begin_waits);
}

struct TimingsMessage {
  std::vector<OperationMessage> operations = {};
  std::vector<double> period_us = {}, without_us = {};
  double masking_us = 0;
  std::vector<std::int32_t> masked = {}, masked_at_last = {};
  std::string wrong = {};
};

void serialize(Archive& archive, TimingsMessage& timings) {
  archive(timings.operations, timings.period_us, timings.without_us, timings.masking_us,
          timings.masked, timings.masked_at_last, timings.wrong);
}

/// The timings of all ranks; nothing for lost ranks.
using AllTimings = std::vector<std::optional<TimingsMessage>>;

/// Medians over the calls, by peer; 0 if the backend does not report that time.
std::vector<double> by_peer(const CallTimings& calls, int n_pes, std::vector<double> Times::*of) {
  std::vector<double> medians;
  for (std::size_t peer = 0; peer < static_cast<std::size_t>(n_pes); ++peer) {
    std::vector<double> of_peer;
    for (const Times& times : calls.times)
      of_peer.push_back((times.*of).empty() ? 0 : (times.*of)[peer]);
    medians.push_back(bench::median(of_peer));
  }
  return medians;
}

OperationMessage message_of(const CallTimings& calls, int n_pes) {
  OperationMessage one;
  one.cold = calls.cold_us;
  for (const Times& times : calls.times) {
    one.total.push_back(times.total_us);
    one.counts.push_back(times.counts_us);
    one.transfer.push_back(times.transfer_us);
    one.arrival.push_back(times.arrival_us);
    one.pack.push_back(times.pack_us);
  }
  one.send = calls.send_us;
  one.receive = calls.receive_us;
  one.waits = by_peer(calls, n_pes, &Times::wait_us);
  one.begin_waits = by_peer(calls, n_pes, &Times::begin_wait_us);
  one.late = bench::median(calls.late_us);
  return one;
}

/// @param n_operations number of operations that this rank has measured; all ranks must have the
/// same
AllTimings read_all(const std::vector<std::string>& texts, std::size_t n_operations) {
  AllTimings all;
  for (std::size_t pe = 0; pe < texts.size(); ++pe) {
    all.emplace_back();
    if (texts[pe].empty())
      continue;
    all.back() = value_of_pe<TimingsMessage>(texts[pe], pe, "times");
    if (all.back()->operations.size() != n_operations)
      throw malformed_message(pe, "times");
  }
  return all;
}

/// By call: the largest value of all ranks that are not lost.
/// @param of_pe returns a rank's values
template <class OfPe>
std::vector<double> slowest(const AllTimings& all, const OfPe& of_pe) {
  std::vector<double> most;
  for (const auto& pe : all) {
    if (!pe)
      continue;
    const std::vector<double>& values = of_pe(*pe);
    most.resize(std::max(most.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      most[i] = std::max(most[i], values[i]);
  }
  return most;
}

/// How much later than each rank each other rank began, computed from operation number `at`.
WaitMatrix lateness(const AllTimings& all, std::size_t at) {
  WaitMatrix late;
  for (const auto& waiting : all) {
    if (!waiting) {
      late.emplace_back(all.size());
      continue;
    }
    const OperationMessage& own = waiting->operations[at];
    late.push_back(own.begin_waits);
    for (std::size_t peer = 0; peer < late.back().size() && peer < all.size(); ++peer)
      if (all[peer])
        late.back()[peer] = std::max(late.back()[peer], all[peer]->operations[at].late - own.late);
  }
  return late;
}

/// The masked ranks of each rank; empty if no rank has masked any.
Masked masked_of(const AllTimings& all, std::vector<std::int32_t> TimingsMessage::*when) {
  Masked masked;
  bool somebody = false;
  for (const auto& pe : all) {
    masked.push_back(pe ? (*pe).*when : std::vector<std::int32_t>{});
    somebody = somebody || !masked.back().empty();
  }
  return somebody ? masked : Masked{};
}

OperationResult operation_of(const AllTimings& all, std::size_t at, Operation operation) {
  OperationResult one;
  one.operation = operation;
  const auto part = [&](std::vector<double> OperationMessage::*of) {
    return slowest(all, [&](const TimingsMessage& pe) -> const std::vector<double>& {
      return pe.operations[at].*of;
    });
  };
  one.total_us = part(&OperationMessage::total);
  one.counts_us = part(&OperationMessage::counts);
  one.transfer_us = part(&OperationMessage::transfer);
  one.arrival_us = part(&OperationMessage::arrival);
  one.pack_us = part(&OperationMessage::pack);
  one.send_us = part(&OperationMessage::send);
  one.receive_us = part(&OperationMessage::receive);
  for (const auto& pe : all) {
    if (!pe) {
      one.waits.emplace_back(all.size());
      continue;
    }
    one.cold_us = std::max(one.cold_us, pe->operations[at].cold);
    one.waits.push_back(pe->operations[at].waits);
  }
  one.late = lateness(all, at);
  return one;
}

} // namespace

std::string timings_message(const RankTimings& timings, int n_pes) {
  TimingsMessage message;
  for (const CallTimings& calls : timings.calls)
    message.operations.push_back(message_of(calls, n_pes));
  message.period_us = timings.period_us;
  message.without_us = timings.without_us;
  message.masking_us = timings.masking_us;
  message.masked = timings.masked;
  message.masked_at_last = timings.masked_at_last;
  message.wrong = timings.wrong;
  return to_bytes(message);
}

PointResult merge_timings(const std::vector<std::string>& messages, const RankTimings& own,
                          std::optional<int> absent) {
  const AllTimings all = read_all(messages, own.calls.size());
  PointResult result;
  for (std::size_t i = 0; i < own.calls.size(); ++i) {
    result.operations.push_back(operation_of(all, i, own.calls[i].operation));
    result.operations.back().wall_s = own.calls[i].wall_s;
    result.operations.back().phases_wall_s = own.calls[i].phases_wall_s;
  }
  using List = const std::vector<double>&;
  result.period_us = slowest(all, [](const TimingsMessage& pe) -> List { return pe.period_us; });
  result.masked = masked_of(all, &TimingsMessage::masked);
  if (absent) {
    Absence absence;
    absence.absent = *absent;
    absence.masked = masked_of(all, &TimingsMessage::masked_at_last);
    for (const auto& pe : all)
      if (pe)
        absence.masking_us = std::max(absence.masking_us, pe->masking_us);
    absence.period_us =
        slowest(all, [](const TimingsMessage& pe) -> List { return pe.without_us; });
    result.absence = absence;
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank])
      result.lost.push_back(static_cast<std::int32_t>(rank));
    else if (!all[rank]->wrong.empty())
      result.wrong.push_back(all[rank]->wrong);
  }
  return result;
}

} // namespace shmemctl::moe
