// Dispatch and combine by one-sided operations of the host: for all transports, on any machine.
#pragma once

#include <chrono>
#include <functional>
#include <set>

#include "src/instruments/bench/moe/backend.h"
#include "src/instruments/bench/moe/host_layout.h"
#include "src/instruments/bench/moe/row_fields.h"
#include "src/runtime/rma.h"

namespace shmemctl::moe {

/// A deliberate mistake of one rank, which verification must find.
struct Mutation {
  enum class Kind {
    none,
    swapped_rows,  ///< two rows are swapped
    skipped_chunk, ///< the last quarter of a row's payload is not sent, once
    early_signal,  ///< the signal is sent before its rows, which wait for `gate`
    no_fence,      ///< rows and signals are not ordered
    lost_row       ///< the first row of each dispatch is not sent
  };
  Kind kind = Kind::none;
  std::int32_t rank = 0;
  std::function<void()> gate;
};

/// The symmetric memory that make_host_backend() needs.
std::size_t host_backend_bytes(const Setup& setup);

/// Why the host's calls cannot run with these settings; "" if they can.
std::string host_invalid_reason(const Setup& setup, Direction direction, const Settings& wanted);

/// @param memory symmetric, of host_backend_bytes(), zeroed on all ranks before any rank continues;
/// owned by the caller, and must outlive the backend
/// @param mutation for tests
std::unique_ptr<Backend> make_host_backend(Rma& rma, std::byte* memory, const Setup& setup,
                                           Mutation mutation = {});

/// What both modes share: rows to send, signals, and waits.
class HostBackend : public Backend {
public:
  HostBackend(Rma& rma, std::byte* memory, const Setup& setup, Mutation mutation);
  std::string name() const override { return "host"; }
  std::vector<MemoryUse> memory() const override { return layout_.uses; }
  std::string window() const override {
    return "from the call's start until its result may be used, by the host's steady clock";
  }
  void corrupt() override;
  std::vector<std::int32_t> masked() override {
    return std::vector<std::int32_t>(masked_.begin(), masked_.end());
  }
  /// The only setting is chunk_bytes, the size of a put; the backend's own choice is the whole row.
  Settings settings(Direction direction) const override;
  std::string cannot_use(Direction direction, const Settings& wanted) const override {
    return host_invalid_reason(setup_, direction, wanted);
  }
  std::vector<Settings> candidates(Direction direction) const override;

protected:
  using Clock = std::chrono::steady_clock;
  static double us_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }

  /// The rank whose data is awaited, and the rank that delivers the data, which is another one if
  /// rows are forwarded.
  struct Awaited {
    std::int32_t rank, by;
  };
  /// Waits until `is_there(rank)` is true for each rank, and records when it became true. A timeout
  /// error names the rank that should have delivered. With Setup::rank_timeout_us, a rank that does
  /// not respond within that time is masked.
  void wait_for_all(const std::vector<Awaited>& all,
                    const std::function<bool(std::int32_t)>& is_there, const char* step,
                    Times& times);
  /// Adds up the rows of one token in order (begin + first + ...) in FP32, and rounds once.
  /// @param begin nullptr means 0
  static void add_up(const std::vector<const std::uint16_t*>& rows, const std::uint16_t* begin,
                     std::size_t channels, std::uint16_t* out);
  std::uint64_t* words(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t*>(memory_ + offset);
  }
  Times no_times() const {
    Times times;
    times.wait_us.resize(static_cast<std::size_t>(setup_.shape.n_ranks));
    return times;
  }
  static std::uint64_t load(const std::uint64_t* word);
  /// Selects the direction whose chunk size later puts use.
  void select_direction(Direction direction);
  void put(std::byte* target, const std::byte* source, std::size_t size_bytes, std::int32_t rank);
  /// Sets a flag at that rank. Call fence_rows() before it to order it after the rows.
  void signal(std::uint64_t* word, std::uint64_t value, std::int32_t rank);
  /// Orders earlier puts before later signals.
  void fence_rows();

  bool mutates(Mutation::Kind kind) const {
    return mutation_.kind == kind && mutation_.rank == me_;
  }
  std::byte* send_row(std::int32_t token) const {
    return memory_ + layout_.send_rows +
           static_cast<std::size_t>(token) * row_fields_.stride_bytes();
  }
  /// Puts a token's row, with the deliberate mistakes of tests.
  void put_row(std::byte* target, const std::byte* row, std::int32_t rank);
  std::int32_t tokens() const { return mine_.tokens(); }
  std::size_t value_row_bytes() const {
    return static_cast<std::size_t>(setup_.shape.hidden) * sizeof(std::uint16_t);
  }
  /// The size of a returned row: values, and the top-k weights if combine returns them.
  std::size_t back_row_bytes() const { return RowFields::back_bytes(setup_); }
  float* weights_of(std::byte* output_row_in) const {
    return reinterpret_cast<float*>(output_row_in + value_row_bytes());
  }
  const float* weights_of(const std::uint16_t* output_row_in) const {
    return reinterpret_cast<const float*>(output_row_in + setup_.shape.hidden);
  }
  float* combined_weights_of(std::int32_t token) {
    return combined_weights_.data() +
           static_cast<std::size_t>(token) * static_cast<std::size_t>(setup_.shape.top_k);
  }
  /// Whether the rank and the token are in range. A row that has not arrived may name any; nothing
  /// is returned for it, and verification reports what is wrong.
  bool is_token(RowSource source) const {
    return source.rank >= 0 && source.rank < setup_.shape.n_ranks && source.token >= 0 &&
           source.token < setup_.shape.max_tokens;
  }
  /// Adds up the weights of the same rows as add_up() does; does nothing if combine returns no
  /// weights.
  void add_up_weights(const std::vector<const std::uint16_t*>& rows, float* out) const;
  std::uint16_t* combined_row(std::int32_t token) {
    return combined_.data() +
           static_cast<std::size_t>(token) * static_cast<std::size_t>(setup_.shape.hidden);
  }

  /// The received rows, in order.
  virtual std::vector<std::byte*> received_rows() const = 0;
  /// What is wrong with the counts of the last dispatch, or with memory that it must not write.
  virtual std::optional<std::string> wrong_counts_or_gaps(std::size_t rows) const = 0;
  std::optional<std::string> verify_dispatch() override;
  std::optional<std::string> verify_combine() override;
  void poison_common();

  Rma& rma_;
  std::byte* memory_;
  const Setup setup_;
  const Mutation mutation_;
  const std::int32_t me_;
  const RankRouting& mine_;
  const RowFields row_fields_;
  std::vector<RankMask> masks_; ///< by token: the ranks that it goes to
  std::vector<std::uint16_t> combined_;
  std::vector<float> combined_weights_; ///< [token][choice]
  const HostLayout layout_;
  /// The routing without the masked ranks.
  const Routing& active_routing() const { return active_routing_; }
  bool is_masked(std::int32_t rank) const { return masked_.count(rank) != 0; }

  bool skipped_ = false; ///< whether the chunk has been skipped
  bool lost_ = false;    ///< whether this dispatch has already lost its row

private:
  friend std::string host_invalid_reason(const Setup& setup, Direction direction,
                                         const Settings& wanted);
  static std::size_t row_bytes(const Setup& setup, Direction direction) {
    return direction == Direction::combine
               ? static_cast<std::size_t>(setup.shape.hidden) * sizeof(std::uint16_t)
               : RowFields(setup).stride_bytes();
  }
  /// The size of a row for calls in that direction.
  std::size_t row_bytes(Direction direction) const { return row_bytes(setup_, direction); }
  void mask(std::int32_t rank);

  std::size_t chunk_bytes_ = 0; ///< largest size of a put; 0: no limit
  std::set<std::int32_t> masked_;
  Routing active_routing_;
};

std::unique_ptr<Backend> make_host_high_throughput(Rma& rma, std::byte* memory, const Setup& setup,
                                                   Mutation mutation);
std::unique_ptr<Backend> make_host_low_latency(Rma& rma, std::byte* memory, const Setup& setup,
                                               Mutation mutation);

} // namespace shmemctl::moe
