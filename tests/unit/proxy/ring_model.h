// The ring as a machine for the model checker: producers with scripts, the drain, and a stop.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "src/runtime/proxy/proxy_drain.h"
#include "tests/unit/proxy/model_context.h"

namespace shmemctl::test {

struct ModelRequest {
  enum Kind : std::uint8_t { none, put, value, fetch, quiet };
  Kind kind = none;
  std::uint8_t producer = 0, index = 0;
  std::uint32_t result = ~0u;
  std::uint8_t result_tag = 0;
};

/// Every word of a request says whose it is, so that a mixture of two is noticed.
template <unsigned SequenceBits, unsigned Words = 2>
struct ModelTraits {
  using Request = ModelRequest;
  using Sequence = ProxySequence<SequenceBits, 1>;
  static constexpr unsigned counter_bits = SequenceBits + 1;
  static constexpr unsigned words = Words;
  static constexpr unsigned result_words = 2;
  static constexpr unsigned result_tag_bits = 1;
  static constexpr unsigned largest_batch = 2;

  static void encode(const Request& request, std::uint64_t (&payload)[words]) {
    for (std::uint64_t& word : payload)
      word = request.producer << 3 | request.index << 5;
    payload[0] |= request.kind;
    payload[1] |= ((request.result + 1) & 3) | request.result_tag << 2;
  }
  static Request decode(const std::uint64_t (&payload)[words]) {
    for (const std::uint64_t word : payload)
      if (word >> 3 != payload[0] >> 3)
        throw Violation("a request is a mixture of two");
    return {static_cast<ModelRequest::Kind>(payload[0] & 7),
            static_cast<std::uint8_t>(payload[0] >> 3 & 3),
            static_cast<std::uint8_t>(payload[0] >> 5),
            static_cast<std::uint32_t>(payload[1] & 3) - 1,
            static_cast<std::uint8_t>(payload[1] >> 2 & 1)};
  }
  static bool orders_memory(const Request& request) { return request.kind == ModelRequest::put; }
  static bool is_quiet(const Request& request) { return request.kind == ModelRequest::quiet; }
};

/// Scripts: p put, v put of a value in the request, b two puts reserved at once, f fetch (waits for
/// its value), q quiet.
struct ModelSetting {
  std::vector<std::string> scripts;
  unsigned capacity_log2 = 1;
  std::uint64_t first = 0;
  bool stop_at_any_time = false; ///< else when all producers are done
  bool keeps_completed = false;  ///< producers keep their copy of `completed` between requests
  int sink_fails_at = -1;        ///< at which delivery
  ProxyDrainLimits limits = {2, 2};
};

template <class Traits>
struct RightParts {
  using Shape = Traits;
  using Atomics = ModelAtomics<Traits::counter_bits>;
  using Producer = RingProducer<Traits, Atomics>;
  using Consumer = RingConsumer<Traits, Atomics>;
};

template <class Parts>
class RingMachine {
public:
  using State = ModelState;
  using Traits = typename Parts::Shape;
  using Atomics = typename Parts::Atomics;
  using Producer = typename Parts::Producer;

  explicit RingMachine(ModelSetting setting)
      : setting_(std::move(setting)), producers_(static_cast<unsigned>(setting_.scripts.size())) {
    std::uint64_t* at = model_addresses.data();
    const auto take = [&](std::size_t count) {
      std::uint64_t* from = at;
      at += count;
      return from;
    };
    ring_.issued = take(1);
    ring_.completed = take(1);
    stop_ = take(1);
    ring_.slots = take(Traits::words << setting_.capacity_log2);
    ring_.results = take(producers_ * Traits::result_words);
    data_ = take(producers_ * posts);
    ring_.capacity_log2 = setting_.capacity_log2;
    ring_.n_results = producers_;
    if (at > model_addresses.data() + most_words)
      throw std::logic_error("the model's memory is too small");
  }
  RingMachine(const RingMachine&) = delete;

  State start() const {
    State state{};
    state.memory[Atomics::place(ring_.issued)] = static_cast<std::uint32_t>(2 * setting_.first);
    state.memory[Atomics::place(ring_.completed)] = static_cast<std::uint32_t>(setting_.first);
    for (std::uint64_t slot = 0; slot < 1u << setting_.capacity_log2; ++slot)
      for (unsigned word = 0; word < Traits::words; ++word)
        state.memory[Atomics::place(ring_.slots + slot * Traits::words + word)] =
            static_cast<std::uint32_t>(
                Traits::Sequence::tag_before(setting_.first, slot, setting_.capacity_log2));
    for (unsigned p = 0; p < producers_; ++p)
      state.threads[p].known_completed = static_cast<std::uint32_t>(setting_.first);
    new (state.drain) Drain(ring_, setting_.first, setting_.limits, sink_);
    return state;
  }

  unsigned choices(const State&) const { return (producers_ + 2) * moves_each; }

  bool move(State& state, unsigned choice) {
    const unsigned thread = choice / moves_each, which = choice % moves_each;
    if (which > 0)
      return ModelContext::arrive(state, thread, which - 1);
    if (state.threads[thread].done)
      return false;
    ModelContext context(state, thread);
    try {
      if (thread < producers_)
        produce(context, state.threads[thread], static_cast<std::uint8_t>(thread));
      else if (thread == producers_)
        drain(context, state.threads[thread]);
      else
        stop(context, state.threads[thread]);
      context.end_operation();
    } catch (const StepEnd&) {
    }
    return true;
  }

  std::string name(const State& state, unsigned choice) const {
    const unsigned thread = choice / moves_each, which = choice % moves_each;
    const std::string who = thread < producers_    ? "producer " + std::to_string(thread)
                            : thread == producers_ ? std::string("proxy")
                                                   : std::string("stop");
    const ModelThread& me = state.threads[thread];
    if (which > 0)
      return who + ": store to word " + std::to_string(me.late[which - 1].place) +
             " arrives: " + std::to_string(me.late[which - 1].value);
    return who + ": operation " + std::to_string(me.script_at) + ", step " +
           std::to_string(me.log_size);
  }

  bool terminal(const State& state) const {
    for (unsigned thread = 0; thread < producers_ + 2; ++thread)
      if (!state.threads[thread].done || state.threads[thread].late_size > 0)
        return false;
    for (unsigned p = 0; p < producers_; ++p) {
      if (state.delivered[p] != state.threads[p].accepted)
        throw Violation("the stop left a request of producer " + std::to_string(p));
      if (!state.sink_failed && state.complete[p] != state.delivered[p])
        throw Violation("the stop left a request that is not complete");
    }
    return true;
  }

private:
  static constexpr unsigned moves_each = 1 + most_late;
  static constexpr unsigned posts = 7; ///< of one producer at most

  /// Where requests go: counts them, and looks at the data that came with them.
  struct Sink {
    const RingMachine* machine;

    ProxyOutcome execute(const ModelRequest& request) {
      ModelContext& context = ModelContext::current();
      const std::uint32_t ok = context.visible([&] { return machine->deliver(context, request); });
      return {request.index + 1u, ok != 0};
    }
    bool quiet() {
      ModelContext& context = ModelContext::current();
      return context.visible([&] {
        State& state = context.state();
        std::memcpy(state.complete, state.delivered, sizeof state.complete);
        return std::uint32_t{!state.sink_failed};
      }) != 0;
    }
  };
  using Drain = RingDrain<Traits, Atomics, Sink, typename Parts::Consumer>;
  static_assert(sizeof(Drain) <= sizeof(State::drain) && std::is_trivially_copyable_v<Drain>);

  std::uint32_t deliver(ModelContext& context, const ModelRequest& request) const {
    State& state = context.state();
    if (request.producer >= producers_ || request.kind == ModelRequest::none)
      throw Violation("a request that nobody made");
    std::uint8_t& count = state.delivered[request.producer];
    if (request.index != count)
      throw Violation("request " + std::to_string(count) + " of producer " +
                      std::to_string(request.producer) + " was due, and " +
                      std::to_string(request.index) + " came: lost, repeated or out of order");
    const unsigned place = Atomics::place(data_ + request.producer * posts + request.index);
    if (request.kind == ModelRequest::put && state.memory[place] != request.index + 1u)
      throw Violation("a request came before its data");
    const int total = state.delivered[0] + state.delivered[1] + state.delivered[2];
    if (total == setting_.sink_fails_at)
      state.sink_failed = 1;
    ++count;
    return !state.sink_failed;
  }

  // A producer's operations.

  void produce(ModelContext& context, ModelThread& me, std::uint8_t number) {
    const std::string& script = setting_.scripts[number];
    const char what = script[me.script_at];
    if (context.fresh()) {
      me.failed_before = context.state().sink_failed;
      for (unsigned p = 0; p < producers_; ++p)
        me.accepted_before[p] = context.state().threads[p].accepted;
    }
    Producer producer(ring_, me.known_completed);
    const bool accepted = what == 'q'   ? wait_quiet(context, producer, me, number)
                          : what == 'f' ? fetch(producer, me, number)
                          : what == 'v' ? post(producer, me, number, 1, ModelRequest::value)
                          : what == 'b' ? post(producer, me, number, 2, ModelRequest::put)
                                        : post(producer, me, number, 1, ModelRequest::put);
    if (setting_.keeps_completed)
      me.known_completed = static_cast<std::uint32_t>(producer.known_completed());
    std::memset(me.accepted_before, 0, sizeof me.accepted_before);
    me.failed_before = 0;
    ++me.script_at;
    if (!accepted)
      me.refused = 1;
    if (me.refused || me.script_at == script.size())
      me.done = 1;
  }

  /// With `completed` read anew for each request, unless the setting says otherwise.
  void fill(Producer& producer, std::uint64_t sequence, const ModelRequest& request) {
    if (!setting_.keeps_completed)
      producer = Producer(ring_, Traits::Sequence::plus(sequence, -(1ull << ring_.capacity_log2)));
    ModelWait wait;
    producer.wait_for_room(sequence, wait);
    producer.write(sequence, request);
  }

  bool post(Producer& producer, ModelThread& me, std::uint8_t number, std::uint8_t count,
            ModelRequest::Kind kind) {
    for (unsigned i = 0; i < count && kind == ModelRequest::put; ++i)
      write_data(me, number, i);
    std::uint64_t first = 0;
    if (!producer.reserve(count, first))
      return false;
    for (std::uint8_t i = 0; i < count; ++i)
      fill(producer, Traits::Sequence::plus(first, i),
           {kind, number, static_cast<std::uint8_t>(me.posted + i)});
    me.posted = static_cast<std::uint8_t>(me.posted + count);
    me.accepted = me.posted;
    return true;
  }

  bool fetch(Producer& producer, ModelThread& me, std::uint8_t number) {
    typename Producer::Answer answer{};
    if (!ask(producer, me, {ModelRequest::fetch, number, me.posted, number}, answer))
      return false;
    if (answer.ok && answer.value != me.posted + 1u)
      throw Violation("a producer got the answer to another request");
    if (!answer.ok && !ModelContext::current().state().sink_failed)
      throw Violation("a request that was carried out is said to have failed");
    me.accepted = ++me.posted;
    return true;
  }

  bool wait_quiet(ModelContext& context, Producer& producer, ModelThread& me, std::uint8_t number) {
    typename Producer::Answer answer{};
    if (!ask(producer, me, {ModelRequest::quiet, number, 0, number}, answer))
      return false;
    if (answer.ok && me.failed_before)
      throw Violation("quiet hides a failure");
    if (!answer.ok && !context.state().sink_failed)
      throw Violation("quiet says that something failed, and nothing has");
    for (unsigned p = 0; p < producers_ && answer.ok; ++p)
      if (context.state().complete[p] < me.accepted_before[p])
        throw Violation("quiet returned before a request of producer " + std::to_string(p) +
                        " that was issued before it was complete");
    return true;
  }

  bool ask(Producer& producer, ModelThread& me, ModelRequest request,
           typename Producer::Answer& answer) {
    std::uint64_t sequence = 0;
    if (!producer.reserve(1, sequence))
      return false;
    request.result_tag = producer.next_tag(me.result_tag);
    fill(producer, sequence, request);
    ModelWait wait;
    answer = producer.wait_for_result(request.result, request.result_tag, wait);
    me.result_tag = request.result_tag;
    return true;
  }

  void write_data(const ModelThread& me, std::uint8_t number, unsigned ahead) {
    const unsigned index = me.posted + ahead;
    if (index >= posts)
      throw std::logic_error("a script that is too long for the model");
    Atomics::store_relaxed(data_ + number * posts + index, index + 1);
  }

  // The proxy thread and its stop.

  void drain(ModelContext& context, ModelThread& me) {
    alignas(Drain) unsigned char bytes[sizeof(Drain)];
    std::memcpy(bytes, context.state().drain, sizeof bytes);
    Drain& mine = *std::launder(reinterpret_cast<Drain*>(bytes));
    if (mine.finished()) {
      sink_.quiet();
      me.done = 1;
    } else if (me.script_at == 0) {
      mine.poll();
      me.script_at = 1;
    } else {
      if (!mine.closed() && Atomics::load_acquire(stop_) != 0)
        mine.close();
      me.script_at = 0;
    }
    std::memcpy(context.state().drain, bytes, sizeof bytes);
  }

  void stop(ModelContext& context, ModelThread& me) {
    const bool now = context.visible([&] {
      for (unsigned p = 0; p < producers_; ++p)
        if (!context.state().threads[p].done && !setting_.stop_at_any_time)
          return 0u;
      return 1u;
    }) != 0;
    if (!now)
      return;
    Atomics::store_release(stop_, 1);
    me.done = 1;
  }

  ModelSetting setting_;
  unsigned producers_;
  ProxyRingView ring_{};
  std::uint64_t* stop_ = nullptr;
  std::uint64_t* data_ = nullptr;
  mutable Sink sink_{this};
};

} // namespace shmemctl::test
