// Memory for the ring's own code in the model checker: a shared memory of small words, a buffer of
// late stores for each thread, and one atomic step at a time.
//
// A step runs the thread's current operation from its start, replays the loads that it has made
// before from a log, makes one more, and leaves by an exception before the one after that. So the
// operation's code needs no change, and its local state is the log. Stores go into the thread's
// buffer, which no other thread sees, so they need no step of their own; each arrives in memory by
// a step that may come at any later time and in any order that the store's memory order allows.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "tests/unit/runtime/proxy/explorer.h"

namespace shmemctl::test {

inline constexpr unsigned max_threads = 5; ///< producers, then the proxy threads, then the thread
                                           ///< that stops
inline constexpr unsigned max_words = 60;  ///< words of shared memory
inline constexpr unsigned max_late = 20;   ///< stores in flight, by thread
inline constexpr unsigned max_logged = 24; ///< loads of one operation
inline constexpr unsigned max_producers = 3;
inline constexpr unsigned max_rings = 2;
inline constexpr unsigned max_pairs = 4; ///< pairs of a producer and a ring

struct LateStore {
  /// Arrives after everything that the thread stored before.
  static constexpr std::uint16_t release = 1;
  static constexpr std::uint16_t fenced = 2; ///< later stores arrive after this one
  std::uint16_t place;
  std::uint16_t order;
  std::uint32_t value;
};

struct ModelThread {
  std::uint8_t script_at, log_size, late_size, stores_made;
  std::uint8_t posted[max_rings], accepted[max_rings];
  std::uint8_t accepted_before[max_pairs]; ///< when the current operation began
  std::uint8_t refused, done, failed_before, padding;
  std::uint8_t result_tag[max_rings], more_padding[2];
  std::uint32_t known_completed[max_rings];
  std::uint32_t log[max_logged];
  LateStore late[max_late];
};

struct ModelState {
  std::uint32_t memory[max_words];
  ModelThread threads[max_threads];
  std::uint8_t delivered[max_pairs], complete[max_pairs]; ///< given to the sink; at the target
  std::uint8_t sink_failed[max_rings], padding[2];
  std::uint8_t awaited[max_rings][2], fetched[max_rings][2]; ///< data of gets, by their number
  std::uint64_t drain[max_rings][16];                        ///< the RingDrains' bytes
};

/// The end of a step.
struct StepEnd {};

class ModelContext {
public:
  using State = ModelState;
  /// Of a thread: its next step, or the arrival of one of its delayed stores.
  static constexpr unsigned moves_each = 1 + max_late;

  ModelContext(ModelState& state, unsigned thread, unsigned = 0)
      : state_(state), me_(state.threads[thread]) {
    current_ = this;
  }
  ~ModelContext() { current_ = nullptr; }
  ModelContext(const ModelContext&) = delete;
  ModelContext& operator=(const ModelContext&) = delete;
  static ModelContext& current() { return *current_; }

  static bool is_operation(unsigned which) { return which == 0; }
  bool possible() const { return true; }
  static bool settled(const ModelState& state, unsigned thread) {
    return state.threads[thread].late_size == 0;
  }
  static void begin(ModelState&) {}
  static void set(ModelState& state, unsigned place, std::uint32_t value) {
    state.memory[place] = value;
  }
  /// The value of a word in memory, or the thread's own latest store.
  static std::uint32_t known(const ModelState& state, unsigned thread, unsigned place) {
    const ModelThread& me = state.threads[thread];
    for (unsigned i = me.late_size; i-- > 0;)
      if (me.late[i].place == place)
        return me.late[i].value;
    return state.memory[place];
  }
  static std::string text(const ModelState& state, unsigned thread, unsigned which) {
    if (which == 0)
      return "";
    const LateStore& store = state.threads[thread].late[which - 1];
    return ": store to word " + std::to_string(store.place) +
           " arrives: " + std::to_string(store.value);
  }

  ModelState& state() { return state_; }
  bool fresh() const { return me_.log_size == 0 && me_.stores_made == 0; }

  /// What others can see or change: a step. `act` returns what the operation learns.
  template <class Act>
  std::uint32_t visible(Act&& act) {
    if (replayed_ < me_.log_size)
      return me_.log[replayed_++];
    if (moved_)
      throw StepEnd{};
    moved_ = true;
    if (me_.log_size == max_logged)
      throw std::logic_error("an operation with more loads than the model has room for");
    const std::uint32_t value = act();
    me_.log[me_.log_size++] = value;
    ++replayed_;
    return value;
  }

  std::uint32_t load(unsigned place) {
    return visible([&] {
      for (unsigned i = me_.late_size; i-- > 0;)
        if (me_.late[i].place == place)
          return me_.late[i].value;
      return state_.memory[place];
    });
  }

  void store(unsigned place, std::uint64_t value, bool release) {
    if (stores_replayed_ < me_.stores_made) {
      ++stores_replayed_;
      return;
    }
    if (me_.late_size == max_late || value > UINT32_MAX)
      throw std::logic_error("a store that the model has no room for");
    me_.late[me_.late_size++] = {static_cast<std::uint16_t>(place),
                                 release ? LateStore::release : std::uint16_t{0},
                                 static_cast<std::uint32_t>(value)};
    ++me_.stores_made;
    ++stores_replayed_;
    moved_ = true;
  }

  /// Of an operation that does nothing else.
  void fence() {
    for (unsigned i = 0; i < me_.late_size; ++i)
      me_.late[i].order |= LateStore::fenced;
  }

  unsigned mark() const { return replayed_; }
  /// The poll of a word that began at `mark` found nothing: it leaves no trace in the log.
  [[noreturn]] void retry(unsigned mark) {
    for (unsigned i = mark; i < me_.log_size; ++i)
      me_.log[i] = 0;
    me_.log_size = static_cast<std::uint8_t>(mark);
    throw StepEnd{};
  }

  void end_operation() {
    for (unsigned i = 0; i < me_.log_size; ++i)
      me_.log[i] = 0;
    me_.log_size = me_.stores_made = 0;
  }

  /// A delayed store arrives in memory; false if its order does not allow it yet.
  static bool arrive(ModelState& state, unsigned thread, unsigned entry) {
    ModelThread& me = state.threads[thread];
    if (entry >= me.late_size)
      return false;
    const LateStore store = me.late[entry];
    for (unsigned i = 0; i < entry; ++i)
      if ((store.order & LateStore::release) != 0 || me.late[i].place == store.place ||
          (me.late[i].order & ~store.order & LateStore::fenced) != 0)
        return false;
    state.memory[store.place] = store.value;
    for (unsigned i = entry; i + 1 < me.late_size; ++i)
      me.late[i] = me.late[i + 1];
    me.late[--me.late_size] = {};
    return true;
  }

private:
  inline static thread_local ModelContext* current_ = nullptr;
  ModelState& state_;
  ModelThread& me_;
  unsigned replayed_ = 0, stores_replayed_ = 0;
  bool moved_ = false;
};

/// Addresses of the model's memory: only their distance from its start counts.
inline std::array<std::uint64_t, max_words> model_addresses{};

/// The ring's atomics on the model. Counters wrap after `Bits` bits.
template <unsigned Bits>
struct ModelAtomics {
  static constexpr bool release_is_free = false;

  static unsigned place(const std::uint64_t* word) {
    return static_cast<unsigned>(word - model_addresses.data());
  }
  static std::uint64_t load_relaxed(const std::uint64_t* word) {
    return ModelContext::current().load(place(word));
  }
  static std::uint64_t load_acquire(const std::uint64_t* word) { return load_relaxed(word); }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    ModelContext::current().store(place(word), value, false);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    ModelContext::current().store(place(word), value, true);
  }
  template <class Change>
  static std::uint64_t modify(std::uint64_t* word, Change&& change) {
    ModelContext& context = ModelContext::current();
    return context.visible([&] {
      std::uint32_t& value = context.state().memory[place(word)];
      const std::uint32_t old = value;
      value = static_cast<std::uint32_t>(change(old) & low_bits(Bits));
      return old;
    });
  }
  static std::uint64_t fetch_add_relaxed(std::uint64_t* word, std::uint64_t value) {
    return modify(word, [&](std::uint64_t old) { return old + value; });
  }
  static std::uint64_t fetch_or_relaxed(std::uint64_t* word, std::uint64_t bits) {
    return modify(word, [&](std::uint64_t old) { return old | bits; });
  }
};

/// A wait that polls again whenever the checker lets it.
class ModelWait {
public:
  void start() { mark_ = ModelContext::current().mark(); }
  bool pause() { ModelContext::current().retry(mark_); }
  void stop() {}

private:
  unsigned mark_ = 0;
};

} // namespace shmemctl::test
