// The rings as a machine for the model checker: producers with scripts, a drain for each ring, and
// a stop.
#pragma once

#include <array>
#include <cctype>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/unit/runtime/proxy/model_request.h"

namespace shmemctl::test {

template <class Parts>
class RingMachine {
public:
  using State = ModelState;
  using Traits = typename Parts::Shape;
  using Atomics = typename Parts::Atomics;
  using Producer = typename Parts::Producer;

  explicit RingMachine(ModelSetting setting)
      : setting_(std::move(setting)), producers_(static_cast<unsigned>(setting_.scripts.size())),
        stopper_(producers_ + setting_.rings) {
    std::uint64_t* at = model_addresses.data();
    const auto take = [&](std::size_t count) {
      std::uint64_t* from = at;
      at += count;
      return from;
    };
    stop_ = take(1);
    data_ = take(producers_ * setting_.rings * posts());
    for (unsigned r = 0; r < setting_.rings; ++r) {
      rings_[r].issued = take(1);
      rings_[r].completed = take(1);
      rings_[r].quieted = take(1);
      rings_[r].slots = take(Traits::words << setting_.capacity_log2);
      rings_[r].results = take(producers_ * Traits::result_words);
      rings_[r].capacity_log2 = setting_.capacity_log2;
      rings_[r].n_results = producers_;
    }
    if (at > model_addresses.data() + max_words || stopper_ >= max_threads ||
        producers_ * setting_.rings > max_pairs)
      throw std::logic_error("the model is too small");
  }
  RingMachine(const RingMachine&) = delete;

  State start() const {
    State state{};
    const auto first = static_cast<std::uint32_t>(setting_.first);
    for (unsigned r = 0; r < setting_.rings; ++r) {
      const ProxyFifoView& ring = rings_[r];
      state.memory[Atomics::place(ring.issued)] = 2 * first;
      state.memory[Atomics::place(ring.completed)] = first;
      state.memory[Atomics::place(ring.quieted)] = first;
      for (std::uint64_t slot = 0; slot < 1u << setting_.capacity_log2; ++slot)
        for (unsigned word = 0; word < Traits::words; ++word)
          state.memory[Atomics::place(ring.slots + slot * Traits::words + word)] =
              static_cast<std::uint32_t>(
                  Traits::Sequence::tag_before(first, slot, setting_.capacity_log2));
      for (unsigned p = 0; p < producers_; ++p)
        state.threads[p].known_completed[r] = first;
      new (state.drain[r]) Drain(ring, first, setting_.limits, sinks_[r]);
    }
    return state;
  }

  unsigned choices(const State&) const { return (stopper_ + 1) * moves_each; }

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
      else if (thread < stopper_)
        drain(context, state.threads[thread], thread - producers_);
      else
        stop(context, state.threads[thread]);
      context.end_operation();
    } catch (const StepEnd&) {
    }
    return true;
  }

  std::string name(const State& state, unsigned choice) const {
    const unsigned thread = choice / moves_each, which = choice % moves_each;
    const std::string who = thread < producers_ ? "producer " + std::to_string(thread)
                            : thread < stopper_ ? "proxy " + std::to_string(thread - producers_)
                                                : std::string("stop");
    const ModelThread& me = state.threads[thread];
    if (which > 0)
      return who + ": store to word " + std::to_string(me.late[which - 1].place) +
             " arrives: " + std::to_string(me.late[which - 1].value);
    return who + ": operation " + std::to_string(me.script_at) + ", step " +
           std::to_string(me.log_size);
  }

  bool terminal(const State& state) const {
    for (unsigned thread = 0; thread <= stopper_; ++thread)
      if (!state.threads[thread].done || state.threads[thread].late_size > 0)
        return false;
    for (unsigned p = 0; p < producers_; ++p)
      for (unsigned r = 0; r < setting_.rings; ++r) {
        const unsigned pair = pair_of(p, r);
        if (state.delivered[pair] != state.threads[p].accepted[r])
          throw Violation("the stop left a request of producer " + std::to_string(p));
        if (!failed(state) && state.complete[pair] != state.delivered[pair])
          throw Violation("the stop left a request that is not complete");
      }
    return true;
  }

private:
  static constexpr unsigned moves_each = 1 + max_late;

  /// Of one producer in one ring at most.
  unsigned posts() const { return setting_.rings == 1 ? 7 : 4; }
  unsigned pair_of(unsigned producer, unsigned ring) const {
    return producer * setting_.rings + ring;
  }
  static bool failed(const State& state) {
    return (state.sink_failed[0] | state.sink_failed[1]) != 0;
  }

  /// The sink of requests: counts them, and checks the data that came with them.
  struct Sink {
    const RingMachine* machine;
    unsigned ring;

    ProxyOutcome execute(const ModelRequest& request) {
      return {request.index + 1u, deliver(request)};
    }
    void begin(const ModelRequest& request, unsigned number) {
      deliver(request);
      ModelContext::current().state().awaited[ring][number] =
          static_cast<std::uint8_t>(request.index + 1);
    }
    std::uint64_t fetched(unsigned number) const {
      return ModelContext::current().state().fetched[ring][number];
    }
    bool quiet() {
      ModelContext& context = ModelContext::current();
      return context.visible([&] {
        State& state = context.state();
        for (unsigned p = 0; p < machine->producers_; ++p)
          state.complete[machine->pair_of(p, ring)] = state.delivered[machine->pair_of(p, ring)];
        std::memcpy(state.fetched[ring], state.awaited[ring], sizeof state.fetched[ring]);
        return std::uint32_t{state.sink_failed[ring] == 0};
      }) != 0;
    }

  private:
    /// A failure is known to the ring's own thread first, to the other one a step later.
    bool deliver(const ModelRequest& request) {
      enum : std::uint32_t { fine, refused, fails_now };
      ModelContext& context = ModelContext::current();
      const std::uint32_t how = context.visible([&] {
        const bool first = machine->take(context, request, ring);
        if (first)
          context.state().sink_failed[ring] = 1;
        return first ? fails_now : context.state().sink_failed[ring] != 0 ? refused : fine;
      });
      if (how == fails_now && machine->setting_.rings > 1)
        context.visible([&] { return context.state().sink_failed[1 - ring] = 1u; });
      return how == fine;
    }
  };
  using Drain = RingDrain<Traits, Atomics, Sink, typename Parts::Consumer>;
  static_assert(sizeof(Drain) <= sizeof(State::drain[0]) && std::is_trivially_copyable_v<Drain>);

  /// Whether this delivery is the one that fails.
  bool take(ModelContext& context, const ModelRequest& request, unsigned ring) const {
    State& state = context.state();
    if (request.producer >= producers_ || request.kind == ModelRequest::none)
      throw Violation("a request that nobody made");
    const unsigned pair = pair_of(request.producer, ring);
    std::uint8_t& count = state.delivered[pair];
    if (request.index != count)
      throw Violation("request " + std::to_string(count) + " of producer " +
                      std::to_string(request.producer) + " was due, and " +
                      std::to_string(request.index) + " came: lost, repeated or out of order");
    const unsigned place = Atomics::place(data_ + pair * posts() + request.index);
    if (request.kind == ModelRequest::put && state.memory[place] != request.index + 1u)
      throw Violation("a request came before its data");
    int total = 0;
    for (const std::uint8_t each : state.delivered)
      total += each;
    ++count;
    return total == setting_.sink_fails_at;
  }

  // A producer's operations.

  void produce(ModelContext& context, ModelThread& me, std::uint8_t number) {
    const std::string& script = setting_.scripts[number];
    const auto letter = static_cast<unsigned char>(script[me.script_at]);
    const unsigned ring = std::isupper(letter) != 0 ? 1 : 0;
    const int what = std::tolower(letter);
    if (context.fresh()) {
      me.failed_before = failed(context.state());
      for (unsigned p = 0; p < producers_; ++p)
        for (unsigned r = 0; r < setting_.rings; ++r)
          me.accepted_before[pair_of(p, r)] = context.state().threads[p].accepted[r];
    }
    const bool accepted = what == 'q'   ? wait_quiet(context, me, number)
                          : what == 'f' ? fetch(me, number, ring, ModelRequest::fetch)
                          : what == 'g' ? fetch(me, number, ring, ModelRequest::get)
                          : what == 'v' ? post(me, number, ring, 1, ModelRequest::value)
                          : what == 'b' ? post(me, number, ring, 2, ModelRequest::put)
                                        : post(me, number, ring, 1, ModelRequest::put);
    std::memset(me.accepted_before, 0, sizeof me.accepted_before);
    me.failed_before = 0;
    ++me.script_at;
    if (!accepted)
      me.refused = 1;
    if (me.refused || me.script_at == script.size())
      me.done = 1;
  }

  Producer producer_of(const ModelThread& me, unsigned ring) const {
    return Producer(rings_[ring], me.known_completed[ring]);
  }

  /// With `completed` read again for each request, unless the setting says otherwise.
  void fill(Producer& producer, ModelThread& me, unsigned ring, std::uint64_t sequence,
            const ModelRequest& request) {
    if (!setting_.keeps_completed)
      producer = Producer(rings_[ring],
                          Traits::Sequence::plus(sequence, -(1ull << setting_.capacity_log2)));
    ModelWait wait;
    producer.wait_for_room(sequence, wait);
    producer.write(sequence, request);
    if (setting_.keeps_completed)
      known_[ring] = static_cast<std::uint32_t>(producer.known_completed());
    else
      known_[ring] = me.known_completed[ring];
  }

  bool post(ModelThread& me, std::uint8_t number, unsigned ring, std::uint8_t count,
            ModelRequest::Kind kind) {
    for (unsigned i = 0; i < count && kind == ModelRequest::put; ++i)
      write_data(me, number, ring, i);
    Producer producer = producer_of(me, ring);
    std::uint64_t first = 0;
    if (!producer.reserve(count, first))
      return false;
    for (std::uint8_t i = 0; i < count; ++i)
      fill(producer, me, ring, Traits::Sequence::plus(first, i),
           {kind, number, static_cast<std::uint8_t>(me.posted[ring] + i)});
    me.known_completed[ring] = known_[ring];
    me.posted[ring] = static_cast<std::uint8_t>(me.posted[ring] + count);
    me.accepted[ring] = me.posted[ring];
    return true;
  }

  bool fetch(ModelThread& me, std::uint8_t number, unsigned ring, ModelRequest::Kind kind) {
    Producer producer = producer_of(me, ring);
    if (!ask(producer, me, ring, {kind, number, me.posted[ring], number}))
      return false;
    const auto answer = await(producer, me, number, ring);
    if (answer.ok && answer.value != me.posted[ring] + 1u)
      throw Violation("a producer got the answer to another request");
    if (!answer.ok && !failed(ModelContext::current().state()))
      throw Violation("a request that was carried out is said to have failed");
    answered(me, ring);
    me.accepted[ring] = ++me.posted[ring];
    return true;
  }

  bool wait_quiet(ModelContext& context, ModelThread& me, std::uint8_t number) {
    std::array<bool, max_rings> asked{};
    bool refused = false;
    const auto post_one = [&](unsigned ring) {
      Producer producer = producer_of(me, ring);
      if (refused || (setting_.looks_at_quieted && producer.is_quiet()))
        return false;
      asked[ring] = ask(producer, me, ring, {ModelRequest::quiet, number, 0, number});
      refused = !asked[ring];
      return asked[ring];
    };
    const bool ok = quiet_fifos(setting_.rings, post_one, [&](unsigned ring) {
      return await(producer_of(me, ring), me, number, ring).ok;
    });
    for (unsigned ring = 0; ring < setting_.rings; ++ring)
      if (asked[ring])
        answered(me, ring);
    if (refused)
      return false;
    if (ok && me.failed_before)
      throw Violation("quiet hides a failure");
    if (!ok && !failed(context.state()))
      throw Violation("quiet says that something failed, and nothing has");
    for (unsigned pair = 0; pair < producers_ * setting_.rings && ok; ++pair)
      if (context.state().complete[pair] < me.accepted_before[pair])
        throw Violation("quiet returned before a request of producer " +
                        std::to_string(pair / setting_.rings) +
                        " that was issued before it was complete");
    return true;
  }

  /// False if the ring is closed.
  bool ask(Producer& producer, ModelThread& me, unsigned ring, ModelRequest request) {
    std::uint64_t sequence = 0;
    if (!producer.reserve(1, sequence))
      return false;
    request.result_tag = producer.next_tag(me.result_tag[ring]);
    fill(producer, me, ring, sequence, request);
    return true;
  }
  auto await(const Producer& producer, const ModelThread& me, std::uint8_t number, unsigned ring) {
    ModelWait wait;
    return producer.wait_for_result(number, producer.next_tag(me.result_tag[ring]), wait);
  }
  /// At the end of an operation: until then it is replayed.
  void answered(ModelThread& me, unsigned ring) {
    me.result_tag[ring] = Producer::next_tag(me.result_tag[ring]);
    me.known_completed[ring] = known_[ring];
  }

  void write_data(const ModelThread& me, std::uint8_t number, unsigned ring, unsigned ahead) {
    const unsigned index = me.posted[ring] + ahead;
    if (index >= posts())
      throw std::logic_error("a script that is too long for the model");
    Atomics::store_relaxed(data_ + pair_of(number, ring) * posts() + index, index + 1);
  }

  // The proxy threads and their stop.

  void drain(ModelContext& context, ModelThread& me, unsigned ring) {
    alignas(Drain) unsigned char bytes[sizeof(Drain)];
    std::memcpy(bytes, context.state().drain[ring], sizeof bytes);
    Drain& mine = *std::launder(reinterpret_cast<Drain*>(bytes));
    if (mine.finished()) {
      sinks_[ring].quiet();
      me.done = 1;
    } else if (me.script_at == 0) {
      mine.poll();
      me.script_at = 1;
    } else {
      if (!mine.closed() && Atomics::load_acquire(stop_) != 0)
        mine.close();
      me.script_at = 0;
    }
    std::memcpy(context.state().drain[ring], bytes, sizeof bytes);
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
  unsigned producers_, stopper_;
  std::array<ProxyFifoView, max_rings> rings_{};
  std::array<std::uint32_t, max_rings> known_{}; ///< copies of `completed` after this operation
  std::uint64_t* stop_ = nullptr;
  std::uint64_t* data_ = nullptr;
  mutable std::array<Sink, max_rings> sinks_{Sink{this, 0}, Sink{this, 1}};
};

} // namespace shmemctl::test
