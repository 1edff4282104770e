// What the send queue's own code runs on in the model checker: its sizes, and loads and stores that
// are steps (tests/unit/runtime/proxy/model_context.h).
#pragma once

#include "src/abi/proxy_layout.h"
#include "src/abi/send_queue.h"
#include "tests/unit/runtime/proxy/model_context.h"
#include "tests/unit/transports/mlx5/fake_view.h"

namespace shmemctl::test {

using mlx5::CqeTail;
using mlx5::CqMode;
using mlx5::DoorbellMode;
using mlx5::PublishResult;
using mlx5::Signalled;

struct QueueModelWords {
  std::uint64_t reserved, ready, signalled, rung, completed, failure, poll_lock, taken;
};

struct QueueModelView {
  std::uint64_t *wqes, *completions, *send_record, *completions_record, *doorbell;
  QueueModelWords* words;
  std::uint32_t qpn, wqebbs_log2, signal_log2, ring_log2;
  CqMode mode;
  std::uint32_t write_combining;
};

/// The device's index has `Bits` bits: 2^Bits must be more than two queues.
template <unsigned Bits, unsigned Words>
struct QueueModelShape {
  using View = QueueModelView;
  static constexpr unsigned index_bits = Bits;
  static constexpr unsigned words_of_wqebb = Words, words_of_cqe = 1;
  static constexpr unsigned tail_word = 0, syndrome_word = 0;
  static constexpr std::uint64_t mask = (1u << Bits) - 1;

  static std::uint64_t send_record(std::uint64_t index) { return index & mask; }
  static std::uint64_t doorbell(const View&, std::uint64_t index) { return index & mask; }
  static std::uint64_t completions_record(std::uint64_t taken) { return taken & mask; }
  static std::uint64_t encode(std::uint64_t index, std::uint64_t kind, std::uint64_t owner) {
    return (index & mask) << 5 | kind << 1 | owner;
  }
  static CqeTail tail(std::uint64_t word) {
    return {0, 0, static_cast<std::uint16_t>(word >> 5), static_cast<std::uint8_t>(word >> 1 & 15),
            static_cast<std::uint8_t>(word & 1)};
  }
};

/// As for threads of the host.
struct QueueModelMemory {
  using Context = ModelContext;
  static constexpr unsigned words = max_words;
  static constexpr bool one_polls = false;

  static unsigned place(const std::uint64_t* word) {
    return static_cast<unsigned>(word - model_addresses.data());
  }
  static std::uint64_t load(const std::uint64_t* word) {
    return ModelContext::current().load(place(word));
  }
  static std::uint64_t load_acquire(const std::uint64_t* word) { return load(word); }
  static void store(std::uint64_t* word, std::uint64_t value) {
    ModelContext::current().store(place(word), value, false);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    ModelContext::current().store(place(word), value, true);
  }
  static std::uint64_t load_turn(const std::uint64_t* word) { return load(word); }
  static void wqes_written() {}
  static void pass_turn(std::uint64_t* word, std::uint64_t, std::uint64_t to) {
    store_release(word, to);
  }
  static std::uint64_t load_completion(const std::uint64_t* word) { return load(word); }
  static void store_plain(std::uint64_t* word, std::uint64_t value) { store(word, value); }
  static void store_record(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static void store_doorbell(std::uint64_t* word, std::uint64_t value, std::uint32_t) {
    store_release(word, value);
  }

  /// One step on memory, once this thread's own stores to the word have arrived, or all of them.
  template <class Change>
  static std::uint64_t modify(std::uint64_t* word, bool release, Change&& change) {
    ModelContext& context = ModelContext::current();
    return context.visible([&] {
      const ModelThread& me = context.state().threads[thread];
      for (unsigned i = 0; i < me.late_size; ++i)
        if (release || me.late[i].place == place(word) ||
            (me.late[i].order & LateStore::fenced) != 0)
          throw StepEnd{};
      std::uint32_t& value = context.state().memory[place(word)];
      const std::uint32_t old = value;
      value = static_cast<std::uint32_t>(change(old));
      return old;
    });
  }
  static std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return modify(word, false, [&](std::uint64_t old) { return old + value; });
  }
  static std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return modify(word, false, [&](std::uint64_t) { return value; });
  }
  static bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                       std::uint64_t desired) {
    return modify(word, false,
                  [&](std::uint64_t old) { return old == expected ? desired : old; }) == expected;
  }
  static void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    modify(word, true, [&](std::uint64_t old) { return old < value ? value : old; });
  }

  inline static thread_local unsigned thread = 0; ///< thread whose step is being made
  inline static thread_local bool is_device = false;
};

/// As for threads of a GPU.
struct GpuQueueModelMemory : QueueModelMemory {
  static constexpr bool one_polls = true;

  static void wqes_written() { ModelContext::current().fence(); }
  static void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    fetch_add(word, to - from);
  }
};

/// The model's memory if loads may read older values, too: kernels/device/gpu_memory.cuh.
struct ViewModelMemory {
  using Context = ViewContext;
  static constexpr unsigned words = view_words;
  static constexpr bool one_polls = true;

  static unsigned place(const std::uint64_t* word) { return QueueModelMemory::place(word); }
  static Context& context() { return Context::current(); }

  /// The device reads everything in order.
  static std::uint64_t load(const std::uint64_t* word) {
    return context().load(place(word), is_device);
  }
  static std::uint64_t load_acquire(const std::uint64_t* word) {
    return context().load(place(word), true);
  }
  static void store(std::uint64_t* word, std::uint64_t value) {
    context().store(place(word), value, false);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    context().store(place(word), value, true);
  }
  static std::uint64_t fetch_add(std::uint64_t* word, std::uint64_t value) {
    return context().modify(place(word), false, false,
                            [&](std::uint64_t old) { return old + value; });
  }
  static std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    return context().modify(place(word), true, false, [&](std::uint64_t) { return value; });
  }
  static bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t expected,
                                       std::uint64_t desired) {
    return context().modify(place(word), true, false, [&](std::uint64_t old) {
      return old == expected ? desired : old;
    }) == expected;
  }
  static void fetch_max_release(std::uint64_t* word, std::uint64_t value) {
    context().modify(place(word), false, true,
                     [&](std::uint64_t old) { return old < value ? value : old; });
  }

  static void wqes_written() { context().fence(); }
  static std::uint64_t load_turn(const std::uint64_t* word) { return load(word); }
  static void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    fetch_add(word, to - from);
  }
  static std::uint64_t load_completion(const std::uint64_t* word) { return load_acquire(word); }
  static void store_plain(std::uint64_t* word, std::uint64_t value) { store(word, value); }
  static void store_record(std::uint64_t* word, std::uint64_t value) {
    context().fence();
    store(word, value);
  }
  static void store_doorbell(std::uint64_t* word, std::uint64_t value, std::uint32_t) {
    store_release(word, value);
  }

  inline static thread_local unsigned thread = 0;
  inline static thread_local bool is_device = false;
};

} // namespace shmemctl::test
