// An emulated HCA without a thread, a peer whose memory is this process's, and a queue between them
// that tests write to directly, like a faulty driver.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "src/abi/wqe.h"
#include "transports/mlx5/emulated/emulated_hca.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/host_memory.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::test {

using namespace shmemctl::mlx5;

/// The words of one WQE.
struct EntryWords {
  std::array<std::uint64_t, 2 * max_ds_count> words{};
  unsigned count = 0;
  constexpr void set(unsigned word, std::uint64_t value) {
    words[word] = value;
    if (word >= count)
      count = word + 1;
  }
};

inline std::uint64_t address_of(const void* place) {
  return reinterpret_cast<std::uint64_t>(place);
}

inline const std::vector<std::uint8_t>& bytes_of(std::vector<std::uint8_t>& storage,
                                                 const EntryWords& entry) {
  storage.resize(entry.count * 8);
  std::memcpy(storage.data(), entry.words.data(), storage.size());
  return storage;
}

/// A completion, read by hand.
struct SeenCompletion {
  CqeTail tail;
  Failure failure;
  std::uint32_t size_bytes;
};

/// Drives a queue without any of send_queue.h.
class RawQueue {
public:
  explicit RawQueue(const QpView& view) : view_(view) {}

  std::uint64_t position() const { return position_; }
  WqeHead head(std::uint8_t flags = flag_completion) const { return {position_, view_.qpn, flags}; }
  /// Writes the words at the next WQEBB; `wqebbs` is how far the position moves.
  void put(const EntryWords& entry, std::uint32_t wqebbs) {
    for (unsigned i = 0; i < entry.count; ++i)
      word(position_ * wqebb_words + i) = entry.words[i];
    position_ += wqebbs;
  }
  void put(const EntryWords& entry) { put(entry, wqebbs_for(entry.count / 2)); }
  template <class Build>
  void build(const Build& build, std::uint8_t flags = flag_completion) {
    EntryWords entry;
    build(entry, head(flags));
    put(entry);
  }
  /// Writes record and register, for the current position or another one.
  void ring() { ring(position_); }
  void ring(std::uint64_t index) {
    HostMemory::store_record(view_.send_record, send_dbrec_value(index));
    HostMemory::store_doorbell(view_.doorbell, doorbell_value(index, view_.qpn), 0);
  }

  /// The next completion in ring mode; empty if there is none.
  std::optional<SeenCompletion> next() {
    const std::uint64_t* entry =
        view_.completions + (taken_ & ((1u << view_.wqebbs_log2) - 1)) * cqe_words;
    const CqeTail tail = decode_tail(entry[cqe_last_word]);
    if (!is_new_cqe(tail, taken_, view_.wqebbs_log2))
      return std::nullopt;
    ++taken_;
    return seen(entry);
  }
  /// The contents of the first CQE.
  SeenCompletion first() const { return seen(view_.completions); }
  void release() { HostMemory::store_record(view_.completions_record, cq_dbrec_value(taken_)); }

private:
  std::uint64_t& word(std::uint64_t number) {
    return view_.wqes[number & ((std::uint64_t{wqebb_words} << view_.wqebbs_log2) - 1)];
  }
  static SeenCompletion seen(const std::uint64_t* entry) {
    const CqeTail tail = decode_tail(entry[cqe_last_word]);
    return {tail, decode_failure(tail, entry[cqe_syndrome_word]),
            static_cast<std::uint32_t>(to_wire(entry[cqe_size_word]))};
  }

  QpView view_;
  std::uint64_t position_ = 0, taken_ = 0;
};

/// Memory of the peer and of this side, and a queue.
struct EmulatedWorld {
  static constexpr std::size_t size_bytes = 4096;
  alignas(64) std::array<std::byte, size_bytes> here{}, there{};
  std::shared_ptr<MappedExecutor> way = std::make_shared<MappedExecutor>();
  EmulatedHca hca;
  std::unique_ptr<HcaMemory> memory;
  std::unique_ptr<HcaQp> queue;
  RawQueue raw;
  static constexpr std::uint32_t rkey = 0x4711;
  /// Read-only access to the peer's memory, and no remote write access to it.
  static constexpr std::uint32_t rkey_read_only = 0x4712, rkey_write_only = 0x4713;

  explicit EmulatedWorld(const QpOptions& options = small_ring(), bool connected = true)
      : hca(emulated_options(way)),
        memory(hca.register_memory({here.data(), here.size(), access_all})),
        queue(hca.create_queue(options)), raw(queue->view()) {
    for (const auto& [key, access] :
         {std::pair{rkey, 15u}, {rkey_read_only, 4u}, {rkey_write_only, 2u}}) {
      KeyWindow window;
      window.key = key;
      window.address = address_of(there.data());
      window.size_bytes = there.size();
      window.access = access;
      window.mapped = there.data();
      way->add(window);
    }
    if (connected)
      queue->connect(queue->local());
  }

  static QpOptions small_ring() {
    QpOptions options;
    options.wqebbs = 16;
    options.signal_every = 4;
    return options;
  }
  static EmulatedHcaOptions emulated_options(std::shared_ptr<Executor> way) {
    EmulatedHcaOptions options;
    options.has_thread = false;
    options.path_to_peer = [way](const PeerInfo&) { return way; };
    return options;
  }

  DataSegment local(std::size_t offset, std::uint32_t size) const {
    return {address_of(here.data() + offset), memory->lkey(), size};
  }
  RaddrSegment remote(std::size_t offset) const {
    return {address_of(there.data() + offset), rkey};
  }
  template <class Number>
  Number at(std::size_t offset) const {
    Number number;
    std::memcpy(&number, there.data() + offset, sizeof number);
    return number;
  }
  template <class Number>
  void set_there(std::size_t offset, Number number) {
    std::memcpy(there.data() + offset, &number, sizeof number);
  }
  template <class Number>
  Number at_here(std::size_t offset) const {
    Number number;
    std::memcpy(&number, here.data() + offset, sizeof number);
    return number;
  }
  EmulatedHcaQp& emulated_queue() { return static_cast<EmulatedHcaQp&>(*queue); }
};

} // namespace shmemctl::test
