#include "src/instruments/fabric/measurement.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "src/base/round_up.h"
#include "src/base/statistics.h"
#include "src/base/units.h"
#include "src/instruments/bench/tcp_counters.h"
#include "src/runtime/fault.h"

namespace shmemctl::fabric {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t alignment_bytes = 4096;
/// The first and the last word of each block of this size identify sender, part and round.
constexpr std::size_t stamped_bytes = std::size_t{64} << 10;
/// A batch takes about this share of a slot, so that a slot contains several batches.
constexpr double batch_share = 0.125;
constexpr std::size_t min_batches = 2, max_batches = 4096;
/// Duration of the flows of a pattern, in slots: many concurrent flows need longer than a single
/// one to reach their rates.
constexpr double slots_of_flow = 4;
/// FAULT=slow:PE:fabric (or fabric-PARTNER, towards this PE only): each batch takes this many times
/// as long, and is delayed by at least `slow_at_least`.
constexpr int slow_times = 20;
constexpr std::chrono::milliseconds slow_at_least{200};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// The stamp of a word: not 0, and different for each PE, part of a round and place.
std::uint64_t stamp_of(int source, std::uint64_t slot, std::uint64_t place) {
  return slot_masks::mixed(slot_masks::mixed(static_cast<std::uint64_t>(source) + 1, slot), place) |
         1U;
}

void store(std::byte* to, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(value, std::memory_order_release);
}
std::uint64_t load(std::byte* from) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(from)).load(std::memory_order_acquire);
}

/// Calls `use(place, address)` for every stamped word of that memory.
template <class Use>
void for_each_stamp(std::byte* memory, std::size_t size_bytes, const Use& use) {
  for (std::size_t begin = 0; begin < size_bytes; begin += stamped_bytes) {
    const std::size_t end = std::min(begin + stamped_bytes, size_bytes);
    use(begin, memory + begin);
    use(end, memory + end - sizeof(std::uint64_t));
  }
}

} // namespace

SymmetricBlock::SymmetricBlock(Runtime& runtime, std::size_t size_bytes)
    : runtime_(runtime),
      address_(static_cast<std::byte*>(runtime.allocate(size_bytes, alignment_bytes))) {
  constexpr std::size_t MiB = std::size_t{1} << 20;
  if (!address_)
    throw Error(ExitCode::unavailable, "symmetric heap",
                "allocate " + std::to_string(size_bytes) + " bytes", "too small for fabric",
                "set SHMEMCTL_SYMMETRIC_SIZE to " +
                    format_size_bytes((size_bytes / MiB + 2) * MiB) + " or more");
}

/// What one PE has measured and received in a round.
struct Measurement::Record {
  enum State : std::uint32_t { nothing, intact, damaged };
  float GBps, latency_us, resent; ///< towards the partner
  std::uint32_t arrived;          ///< State of the data from the partner
};

/// What the sender writes to the receiver after its data.
struct Measurement::Header {
  std::uint64_t slot, window;
};

Measurement::Measurement(Runtime& runtime, const Options& options, const Effort& effort,
                         int max_rounds, Announce announce)
    : runtime_(runtime), options_(options), effort_(effort), max_rounds_(std::max(max_rounds, 1)),
      announce_(std::move(announce)), source_at_(0),
      landing_at_(round_up(effort.message_bytes * static_cast<std::size_t>(effort.max_window),
                           alignment_bytes)),
      header_at_(2 * landing_at_), word_at_(header_at_ + alignment_bytes),
      records_at_(word_at_ + alignment_bytes),
      scratch_at_(records_at_ + round_up(static_cast<std::size_t>(max_rounds_) * sizeof(Record),
                                         alignment_bytes)),
      plan_at_(2 * scratch_at_ - records_at_),
      memory_(runtime, plan_at_ + round_up((static_cast<std::size_t>(max_rounds_) + 1) *
                                               sizeof(std::int32_t),
                                           alignment_bytes)) {
  std::memset(memory_.get(), 0, plan_at_);
  runtime.failure_detector().phase(phase_name);
  sync();
}

Measurement::Record& Measurement::record(int round) const {
  return reinterpret_cast<Record*>(at(records_at_))[round];
}

void Measurement::stamp(int window) {
  for_each_stamp(at(source_at_), static_cast<std::size_t>(window) * effort_.message_bytes,
                 [&](std::size_t place, std::byte* word) {
                   store(word, stamp_of(runtime_.pe(), slot_, place));
                 });
}

bool Measurement::arrived(int source) const {
  std::byte* const header = at(header_at_);
  if (load(header) != slot_)
    return false;
  const std::uint64_t window = load(header + sizeof(std::uint64_t));
  if (window == 0 || window > static_cast<std::uint64_t>(effort_.max_window))
    return false;
  bool intact = true;
  for_each_stamp(at(landing_at_), static_cast<std::size_t>(window) * effort_.message_bytes,
                 [&](std::size_t place, std::byte* word) {
                   intact = intact && load(word) == stamp_of(source, slot_, place);
                 });
  return intact;
}

double Measurement::batch_s(int partner, int window) const {
  Rma& rma = runtime_.rma();
  const SteadyClock::time_point start = SteadyClock::now();
  for (int i = 0; i < window; ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * effort_.message_bytes;
    rma.put(at(landing_at_ + offset), at(source_at_ + offset), effort_.message_bytes, partner, 0,
            false);
  }
  rma.quiet();
  const bool slow =
      is_fault(options_, FaultKind::slow, runtime_.pe(), phase_name) ||
      is_fault(options_, FaultKind::slow, runtime_.pe(), fmt::format("{}-{}", phase_name, partner));
  if (slow)
    std::this_thread::sleep_for(std::max<SteadyClock::duration>(
        (slow_times - 1) * (SteadyClock::now() - start), slow_at_least));
  return seconds_since(start);
}

void Measurement::send(int partner, Record& record) {
  stamp(effort_.max_window);
  const auto transport = runtime_.transport_index_by_pe()[static_cast<std::size_t>(partner)];
  const bool over_tcp = transport >= 0 && runtime_.transports()[static_cast<std::size_t>(transport)]
                                                  .transport->connection(partner)
                                                  .find("tcp") != std::string::npos;
  const bench::TcpCounters before =
      over_tcp ? bench::read_tcp_counters(sysroot_) : bench::TcpCounters{};
  const SteadyClock::time_point start = SteadyClock::now();
  // The first batch is one put, which opens the path and determines how many puts make a batch.
  const double first_s = std::max(batch_s(partner, 1), 1e-9);
  const int window =
      std::clamp(static_cast<int>(batch_share * effort_.slot_s / first_s), 1, effort_.max_window);
  const double bytes = static_cast<double>(effort_.message_bytes) * static_cast<double>(window);
  std::vector<double> rates;
  while (rates.size() < min_batches ||
         (seconds_since(start) < effort_.slot_s && rates.size() < max_batches))
    rates.push_back(bytes / std::max(batch_s(partner, window), 1e-9) * 1e-9);
  record.GBps = static_cast<float>(median(std::move(rates)));
  if (over_tcp) {
    const bench::TcpCounters change =
        bench::change_between(before, bench::read_tcp_counters(sysroot_));
    if (change.sent && change.sent_again && *change.sent > 0)
      record.resent = static_cast<float>(static_cast<double>(*change.sent_again) /
                                         static_cast<double>(*change.sent));
  }
  Rma& rma = runtime_.rma();
  rma.put_value<std::uint64_t>(at(header_at_ + sizeof(std::uint64_t)),
                               static_cast<std::uint64_t>(window), partner);
  rma.put_value<std::uint64_t>(at(header_at_), slot_, partner);
  rma.quiet();
}

void Measurement::time_latency(int partner, Record& record) const {
  Rma& rma = runtime_.rma();
  std::vector<double> times_us;
  const int untimed = effort_.latency_puts / 4;
  const SteadyClock::time_point begin = SteadyClock::now();
  for (int i = 0; i < untimed + effort_.latency_puts; ++i) {
    // A slow pair is measured with a few puts only, because the other PEs wait for it.
    if (times_us.size() >= min_batches && seconds_since(begin) > effort_.slot_s)
      break;
    const SteadyClock::time_point start = SteadyClock::now();
    rma.put_value<std::uint64_t>(at(word_at_), slot_, partner);
    rma.quiet();
    if (i >= untimed)
      times_us.push_back(seconds_since(start) * 1e6);
  }
  if (!times_us.empty())
    record.latency_us = static_cast<float>(median(std::move(times_us)));
}

void Measurement::measure_round(int partner, int round) {
  Record& own = record(round);
  own = {not_measured, not_measured, not_measured, Record::nothing};
  const bool is_first = runtime_.pe() < partner;
  for (const bool first_sends : {true, false}) {
    sync();
    ++slot_;
    if (partner >= 0 && is_first == first_sends)
      send(partner, own);
    sync(); // the data has arrived: send() ends with a quiet
    if (partner >= 0 && is_first != first_sends)
      own.arrived = arrived(partner) ? Record::intact : Record::damaged;
  }
  sync();
  ++slot_;
  if (partner >= 0)
    time_latency(partner, own);
}

std::vector<PairFigure> Measurement::run(const PartnerOf& partner_of, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    announce_(round, rounds);
    if (round == rounds / 2 && !std::exchange(faulted_, true))
      inject_fault(options_, runtime_.pe(), phase_name);
    measure_round(partner_of(runtime_.pe(), round), round);
  }
  return collect(partner_of, rounds);
}

template <class Use>
void Measurement::read_records(int rounds, const Use& use) {
  sync(); // all records are written
  if (runtime_.pe() == 0) {
    const std::size_t size_bytes = static_cast<std::size_t>(rounds) * sizeof(Record);
    for (int pe = 0; pe < runtime_.n_pes(); ++pe) {
      if (pe == 0)
        std::memcpy(at(scratch_at_), at(records_at_), size_bytes);
      else if (size_bytes > 0)
        runtime_.rma().get(at(scratch_at_), at(records_at_), size_bytes, pe);
      use(pe, reinterpret_cast<const Record*>(at(scratch_at_)));
    }
  }
  sync(); // the blocks may be overwritten
}

std::vector<PairFigure> Measurement::collect(const PartnerOf& partner_of, int rounds) {
  std::vector<PairFigure> figures;
  read_records(rounds, [&](int pe, const Record* records) {
    add_pe(pe, records, partner_of, rounds, figures);
  });
  return figures;
}

double Measurement::flow_GBps(const std::vector<int>& targets) const {
  Rma& rma = runtime_.rma();
  const SteadyClock::time_point start = SteadyClock::now();
  std::size_t next = 0;
  double bytes = 0, taken_s = 0;
  while (taken_s < slots_of_flow * effort_.slot_s) {
    for (int i = 0; i < effort_.max_window; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * effort_.message_bytes;
      rma.put(at(landing_at_ + offset), at(source_at_ + offset), effort_.message_bytes,
              targets[next], 0, false);
      next = (next + 1) % targets.size();
      bytes += static_cast<double>(effort_.message_bytes);
    }
    rma.quiet();
    taken_s = seconds_since(start);
  }
  return bytes / taken_s * 1e-9;
}

std::vector<std::vector<double>>
Measurement::run_flows(const std::function<std::vector<int>(int pe, int round)>& targets_of,
                       int rounds) {
  for (int round = 0; round < rounds; ++round) {
    announce_(round, rounds);
    const std::vector<int> targets = targets_of(runtime_.pe(), round);
    record(round) = {0, not_measured, not_measured, Record::nothing};
    sync();
    if (!targets.empty())
      record(round).GBps = static_cast<float>(flow_GBps(targets));
  }
  std::vector<std::vector<double>> sent;
  if (runtime_.pe() == 0)
    sent.assign(static_cast<std::size_t>(rounds),
                std::vector<double>(static_cast<std::size_t>(runtime_.n_pes()), 0));
  read_records(rounds, [&](int pe, const Record* records) {
    for (int round = 0; round < rounds; ++round)
      sent[static_cast<std::size_t>(round)][static_cast<std::size_t>(pe)] =
          static_cast<double>(records[round].GBps);
  });
  return sent;
}

void Measurement::add_pe(int pe, const Record* records, const PartnerOf& partner_of, int rounds,
                         std::vector<PairFigure>& to) {
  for (int round = 0; round < rounds; ++round) {
    const int partner = partner_of(pe, round);
    if (partner < 0)
      continue;
    const Record& record = records[round];
    PairFigure figure;
    figure.source = pe;
    figure.target = partner;
    figure.GBps = record.GBps;
    figure.latency_us = record.latency_us;
    figure.resent = record.resent;
    to.push_back(figure);
    verified_ += record.arrived == Record::intact ? 1 : 0;
    const bool known = std::any_of(corrupt_.begin(), corrupt_.end(), [&](const CorruptPair& pair) {
      return pair.source == partner && pair.target == pe;
    });
    if (record.arrived == Record::damaged && !known)
      corrupt_.push_back({partner, pe});
  }
}

std::vector<PairFigure> Measurement::lead(const std::vector<Round>& rounds) {
  const auto n_pes = static_cast<std::size_t>(runtime_.n_pes());
  const auto count =
      static_cast<int>(std::min(rounds.size(), static_cast<std::size_t>(max_rounds_)));
  std::vector<std::vector<std::int32_t>> partner(
      n_pes, std::vector<std::int32_t>(static_cast<std::size_t>(count) + 1, -1));
  for (std::vector<std::int32_t>& each : partner)
    each[0] = count;
  for (int round = 0; round < count; ++round)
    for (const Pairing& pair : rounds[static_cast<std::size_t>(round)]) {
      partner[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(round) + 1] =
          pair.second;
      partner[static_cast<std::size_t>(pair.second)][static_cast<std::size_t>(round) + 1] =
          pair.first;
    }
  for (std::size_t pe = 1; pe < n_pes; ++pe) {
    const std::size_t size_bytes = partner[pe].size() * sizeof(std::int32_t);
    std::memcpy(at(plan_at_), partner[pe].data(), size_bytes);
    runtime_.rma().put(at(plan_at_), at(plan_at_), size_bytes, static_cast<int>(pe));
    runtime_.rma().quiet(); // the memory is used again
  }
  sync();
  return run(
      [&partner](int pe, int round) {
        return partner[static_cast<std::size_t>(pe)][static_cast<std::size_t>(round) + 1];
      },
      count);
}

void Measurement::end_leading() {
  lead({});
}

void Measurement::follow() {
  for (;;) {
    sync();
    const auto* const plan = reinterpret_cast<const std::int32_t*>(at(plan_at_));
    const std::int32_t count = plan[0]; // put before the sync
    run([plan](int, int round) { return plan[round + 1]; }, count);
    if (count == 0)
      return;
  }
}

} // namespace shmemctl::fabric
