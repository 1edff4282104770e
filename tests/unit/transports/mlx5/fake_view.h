// Memory for the send queue's own code in which loads and stores have no order except what they
// request: the release and acquire of C++ and PTX, as messages and views. A store is a message; a
// relaxed load may read any message of its word that is not older than one that the thread knows.
// What a thread knows is its view: the newest known message of each word. A release puts the view
// into the message, an acquire takes it out. So a word that arrives late exposes both a missing
// release and a missing acquire.
//
// Of each word only the newest few messages are kept: older values are not tried.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "tests/unit/runtime/proxy/model_context.h"

namespace shmemctl::test {

inline constexpr unsigned view_words = 32, view_threads = 3, kept_messages = 3;
using View = std::array<std::uint8_t, view_words>; ///< by word: index of its message

struct ViewWord {
  std::uint32_t values[kept_messages]; ///< the oldest first
  std::uint32_t count;
  View views[kept_messages];
};

struct ViewThread {
  std::uint8_t script_at, log_size, stores_made, done;
  std::uint8_t posted[1], accepted[1], padding[2];
  View view;     ///< what the thread knows
  View released; ///< what the thread knew at its last fence
  View loaded;   ///< what relaxed loads brought: known after the next fence
  std::uint32_t log[max_logged];
};

struct ViewState {
  ViewWord memory[view_words];
  ViewThread threads[view_threads];
  std::uint8_t delivered[max_pairs], padding[4];
  std::uint64_t drain[max_rings][16];
};

/// As ModelContext, which see. Moves of a thread are the ages of what its step's load takes.
class ViewContext {
public:
  using State = ViewState;
  static constexpr unsigned moves_each = kept_messages;

  ViewContext(State& state, unsigned thread, unsigned age)
      : state_(state), me_(state.threads[thread]), age_(age) {
    current_ = this;
  }
  ~ViewContext() { current_ = nullptr; }
  ViewContext(const ViewContext&) = delete;
  ViewContext& operator=(const ViewContext&) = delete;
  static ViewContext& current() { return *current_; }

  static bool is_operation(unsigned) { return true; }
  static bool arrive(State&, unsigned, unsigned) { return false; }
  static bool settled(const State&, unsigned) { return true; }
  static void set(State& state, unsigned place, std::uint32_t value) {
    state.memory[place].values[0] = value;
  }
  static void begin(State& state) {
    for (ViewWord& word : state.memory)
      word.count = 1;
  }
  /// What the thread has seen of a word, or done.
  static std::uint32_t known(const State& state, unsigned thread, unsigned place) {
    return state.memory[place].values[state.threads[thread].view[place]];
  }
  static std::string text(const State&, unsigned, unsigned age) {
    return age == 0 ? "" : ", " + std::to_string(age) + " older";
  }

  State& state() { return state_; }
  /// False if the step has no load of that age.
  bool possible() const { return age_ == 0 || aged_; }

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

  std::uint32_t load(unsigned place, bool acquire) {
    return visible([&]() -> std::uint32_t {
      const ViewWord& word = state_.memory[place];
      const unsigned newest = word.count - 1;
      if (age_ > newest - me_.view[place])
        throw StepEnd{};
      aged_ = true;
      const unsigned taken = newest - age_;
      take(word.views[taken], acquire);
      me_.view[place] = std::max(me_.view[place], static_cast<std::uint8_t>(taken));
      return word.values[taken];
    });
  }
  void store(unsigned place, std::uint64_t value, bool release) {
    once([&] { put(place, value, release ? me_.view : me_.released); });
  }
  /// Reads the newest message, and continues its view.
  template <class Change>
  std::uint32_t modify(unsigned place, bool acquire, bool release, Change&& change) {
    return visible([&]() -> std::uint32_t {
      if (age_ > 0)
        throw StepEnd{};
      const ViewWord& word = state_.memory[place];
      const std::uint32_t old = word.values[word.count - 1];
      View view = word.views[word.count - 1];
      take(view, acquire);
      join(view, release ? me_.view : me_.released);
      put(place, change(old), view);
      return old;
    });
  }
  /// Release and acquire.
  void fence() {
    once([&] {
      join(me_.view, me_.loaded);
      me_.released = me_.view;
    });
  }

  void end_operation() {
    std::fill(me_.log, me_.log + me_.log_size, 0);
    me_.log_size = me_.stores_made = 0;
  }

private:
  static void join(View& view, const View& more) {
    for (unsigned i = 0; i < view_words; ++i)
      view[i] = std::max(view[i], more[i]);
  }
  void take(const View& view, bool acquire) { join(acquire ? me_.view : me_.loaded, view); }

  /// A store that no other thread must see at once needs no step of its own: a reader may take an
  /// older message.
  template <class Act>
  void once(Act&& act) {
    if (stores_replayed_++ < me_.stores_made)
      return;
    ++me_.stores_made;
    moved_ = true;
    act();
  }

  void put(unsigned place, std::uint64_t value, View view) {
    if (value > UINT32_MAX)
      throw std::logic_error("a store that the model has no room for");
    ViewWord& word = state_.memory[place];
    if (word.count == kept_messages)
      forget_oldest(place, view);
    word.values[word.count] = static_cast<std::uint32_t>(value);
    view[place] = me_.view[place] = static_cast<std::uint8_t>(word.count);
    word.views[word.count++] = view;
  }
  void forget_oldest(unsigned place, View& held) {
    ViewWord& word = state_.memory[place];
    std::copy(word.values + 1, word.values + kept_messages, word.values);
    std::copy(word.views + 1, word.views + kept_messages, word.views);
    word.values[--word.count] = 0;
    word.views[word.count] = {};
    const auto older = [&](View& view) { view[place] = view[place] > 0 ? view[place] - 1 : 0; };
    older(held);
    for (ViewWord& other : state_.memory)
      for (View& view : other.views)
        older(view);
    for (ViewThread& thread : state_.threads)
      for (View* view : {&thread.view, &thread.released, &thread.loaded})
        older(*view);
  }

  inline static thread_local ViewContext* current_ = nullptr;
  State& state_;
  ViewThread& me_;
  unsigned age_, replayed_ = 0, stores_replayed_ = 0;
  bool moved_ = false, aged_ = false;
};

} // namespace shmemctl::test
