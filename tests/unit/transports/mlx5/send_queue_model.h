// The send queue as a machine for the model checker (tests/unit/runtime/proxy/explorer.h):
// producers with scripts, and a device that reads what is in memory when it looks. Stores arrive as
// late and in any order that their memory order allows (tests/unit/runtime/proxy/model_context.h).
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/unit/transports/mlx5/send_queue_model_memory.h"

namespace shmemctl::test {

/// Scripts: p put, l put with a deferred doorbell, P put of two WQEBBs, b two puts reserved at
/// once, s put with a completion, r read (waits, and checks the result), f flush, q quiet.
struct QueueModelSetting {
  std::vector<std::string> scripts;
  unsigned wqebbs_log2 = 1, signal_log2 = 0, ring_log2 = 10;
  CqMode mode = CqMode::ring;
};

template <unsigned Bits = 3, unsigned Words = 1, class Kind = QueueModelMemory>
struct RightQueue {
  using Shape = QueueModelShape<Bits, Words>;
  using Memory = Kind;
  using Queue = mlx5::SendQueue<Shape, Memory>;
};

template <class Parts>
class QueueMachine {
public:
  using Shape = typename Parts::Shape;
  using Memory = typename Parts::Memory;
  using Context = typename Memory::Context;
  using State = typename Context::State;
  using Queue = typename Parts::Queue;

  explicit QueueMachine(QueueModelSetting setting)
      : setting_(std::move(setting)), producers_(static_cast<unsigned>(setting_.scripts.size())),
        view_(make_view()), queue_(view_) {}
  QueueMachine(const QueueMachine&) = delete;

  State start() const {
    State state{};
    Context::begin(state);
    for (unsigned i = 0; i < cqe_count(); ++i)
      Context::set(state, Memory::place(view_.completions + i),
                   static_cast<std::uint32_t>(Shape::encode(0, 15, 1)));
    return state;
  }

  unsigned choices(const State&) const { return (producers_ + 1) * moves_each; }

  bool move(State& state, unsigned choice) {
    const unsigned thread = choice / moves_each, which = choice % moves_each;
    if (!Context::is_operation(which))
      return Context::arrive(state, thread, which - 1);
    if (state.threads[thread].done)
      return false;
    Memory::thread = thread;
    Memory::is_device = thread == producers_;
    Context context(state, thread, which);
    Locals locals = locals_of(state);
    try {
      if (thread < producers_)
        produce(context, state.threads[thread], locals, static_cast<std::uint8_t>(thread));
      else
        serve(context, locals.device);
      context.end_operation();
      std::memcpy(state.drain, &locals, sizeof locals);
    } catch (const StepEnd&) {
    }
    return context.possible();
  }

  std::string name(const State& state, unsigned choice) const {
    const unsigned thread = choice / moves_each, which = choice % moves_each;
    const std::string who =
        thread < producers_ ? "producer " + std::to_string(thread) : std::string("device");
    if (!Context::is_operation(which))
      return who + Context::text(state, thread, which);
    const auto& me = state.threads[thread];
    return who + ": operation " + std::to_string(me.script_at) + ", step " +
           std::to_string(me.log_size) + Context::text(state, thread, which);
  }

  bool terminal(const State& state) const {
    for (unsigned thread = 0; thread <= producers_; ++thread)
      if (!Context::settled(state, thread) || (thread < producers_ && !state.threads[thread].done))
        return false;
    const Locals locals = locals_of(state);
    for (unsigned p = 0; p < producers_; ++p)
      if (state.delivered[p] < locals.producers[p].due)
        return false;
    return true;
  }

private:
  static constexpr unsigned moves_each = Context::moves_each;
  using Thread = std::remove_reference_t<decltype(std::declval<State&>().threads[0])>;
  static constexpr unsigned posts = 6; ///< posts of one producer at most

  enum Phase : std::uint8_t { begin, room, fill, written, publish, ring, wait, target, flush };
  struct Producer {
    std::uint32_t first, goal, known;
    std::uint8_t phase, is_nop;
    std::uint8_t due; ///< this many of its WQEs must be executed without any more calls
    std::uint8_t padding;
    std::uint32_t published_before; ///< number of WQEBBs that a quiet waits for
  };
  struct Device {
    std::uint32_t seen, position, told, completions;
  };
  struct Locals {
    Producer producers[max_producers];
    Device device;
  };
  static_assert(sizeof(Locals) <= sizeof(State::drain));

  static Locals locals_of(const State& state) {
    Locals locals;
    std::memcpy(&locals, state.drain, sizeof locals);
    return locals;
  }
  unsigned cqe_count() const {
    return setting_.mode == CqMode::ring ? 1u << setting_.wqebbs_log2 : 1;
  }

  QueueModelView make_view() {
    std::uint64_t* at = model_addresses.data();
    const auto take = [&](std::size_t count) {
      std::uint64_t* from = at;
      at += count;
      return from;
    };
    QueueModelView view{};
    view.words = reinterpret_cast<QueueModelWords*>(take(sizeof(QueueModelWords) / 8));
    view.send_record = take(1);
    view.completions_record = take(1);
    view.doorbell = take(1);
    view.wqes = take(Shape::words_of_wqebb << setting_.wqebbs_log2);
    view.completions = take(cqe_count());
    data_ = take(producers_ * posts);
    results_ = take(producers_);
    view.wqebbs_log2 = setting_.wqebbs_log2;
    view.signal_log2 = setting_.signal_log2;
    view.ring_log2 = setting_.ring_log2;
    view.mode = setting_.mode;
    if (at > model_addresses.data() + Memory::words)
      throw std::logic_error("the model's memory is too small");
    return view;
  }

  // Producers. Each phase is an operation of its own; one that must wait is restarted.

  struct What {
    unsigned wqes = 1, wqebbs = 1;
    bool completes = false, has_data = true;
    DoorbellMode doorbell = DoorbellMode::now;
  };
  static What what_of(char code, bool is_nop) {
    if (is_nop)
      return {1, 1, true, false, DoorbellMode::now};
    switch (code) {
    case 'l':
      return {1, 1, false, true, DoorbellMode::later};
    case 'P':
      return {1, 2, false, true, DoorbellMode::now};
    case 'b':
      return {2, 1, false, true, DoorbellMode::now};
    case 's':
    case 'r':
      return {1, 1, true, true, DoorbellMode::now};
    default:
      return {};
    }
  }

  void produce(Context& context, Thread& me, Locals& locals, std::uint8_t number) {
    const char code = setting_.scripts[number][me.script_at];
    Producer& mine = locals.producers[number];
    const What what = what_of(code, mine.is_nop != 0);
    const std::uint32_t wqebbs = what.wqes * what.wqebbs;
    switch (mine.phase) {
    case begin:
      return begin_operation(context, me, mine, code, what, number);
    case room: {
      std::uint64_t known = mine.known;
      const std::uint64_t end = mine.first + wqebbs;
      if (queue_.has_room(end, known) || queue_.poll_for_room(end, known))
        mine.phase = fill;
      mine.known = static_cast<std::uint32_t>(known);
      return;
    }
    case fill:
      for (unsigned i = 0; i < what.wqes; ++i)
        write_entry(mine.first + i * what.wqebbs, what, code, number, me.posted[0] + i);
      mine.phase = written;
      return;
    case written:
      queue_.written();
      mine.phase = publish;
      return;
    case publish:
      switch (
          queue_.try_publish(mine.first, wqebbs, signalled_of(mine.first, what), what.doorbell)) {
      case PublishResult::not_my_turn:
        return;
      case PublishResult::done:
        return after_publish(me, mine, code, what, number);
      case PublishResult::ring:
        mine.phase = ring;
        return;
      }
      return;
    case ring:
      if (queue_.try_ring(mine.first + wqebbs))
        after_publish(me, mine, code, what, number);
      return;
    case target: {
      const auto found = queue_.target();
      mine.goal = static_cast<std::uint32_t>(found.complete);
      mine.is_nop = found.needs_nop;
      mine.phase = found.needs_nop ? begin : flush;
      return;
    }
    case flush:
      if (queue_.try_flush())
        mine.phase = wait;
      return;
    case wait:
      if (queue_.completed() >= mine.goal)
        return after_wait(me, mine, code, locals.device.position, number);
      queue_.poll();
      return;
    }
  }

  void begin_operation(Context& context, Thread& me, Producer& mine, char code, const What& what,
                       std::uint8_t number) {
    if (code == 'f') {
      if (!queue_.try_flush())
        return;
      mine.due = me.accepted[0];
      return end_operation(me, mine, number);
    }
    if (code == 'q' && mine.is_nop == 0) {
      // What others have published as far as this thread knows, and all that it has itself.
      mine.published_before =
          Context::known(context.state(), number, Memory::place(&view_.words->ready)) >> 1;
      mine.phase = target;
      return;
    }
    for (unsigned i = 0; i < what.wqes && what.has_data; ++i)
      Memory::store(data_ + number * posts + me.posted[0] + i, me.posted[0] + i + 1);
    mine.first = static_cast<std::uint32_t>(queue_.reserve(what.wqes * what.wqebbs));
    mine.phase = room;
  }

  bool completes(std::uint64_t start, const What& what) const {
    return what.completes || queue_.completes(start, what.wqebbs);
  }
  Signalled signalled_of(std::uint64_t first, const What& what) const {
    Signalled signalled{0, 0};
    for (unsigned i = 0; i < what.wqes; ++i) {
      const std::uint64_t start = first + i * what.wqebbs;
      if (completes(start, what))
        signalled = {start + 1, start + what.wqebbs};
    }
    return signalled;
  }

  /// Every word encodes its producer, its position, and its operation.
  static std::uint64_t word_of(std::uint64_t start, const What& what, bool completes, char code,
                               unsigned producer, unsigned index) {
    return start << 16 | what.wqebbs << 12 | static_cast<std::uint64_t>(completes) << 11 |
           static_cast<std::uint64_t>(code == 'r') << 10 |
           static_cast<std::uint64_t>(what.has_data) << 9 | producer << 6 | index;
  }
  void write_entry(std::uint64_t start, const What& what, char code, unsigned producer,
                   unsigned index) const {
    for (unsigned word = 0; word < what.wqebbs * Shape::words_of_wqebb; ++word)
      queue_.set(start, word, word_of(start, what, completes(start, what), code, producer, index));
  }

  void after_publish(Thread& me, Producer& mine, char code, const What& what, unsigned number) {
    if (what.has_data) {
      me.posted[0] = static_cast<std::uint8_t>(me.posted[0] + what.wqes);
      me.accepted[0] = me.posted[0];
    }
    if (what.doorbell == DoorbellMode::now)
      mine.due = me.accepted[0];
    if (code == 'r' || mine.is_nop != 0) {
      mine.goal = mine.first + 1;
      mine.phase = wait;
    } else {
      end_operation(me, mine, number);
    }
  }

  void after_wait(Thread& me, Producer& mine, char code, std::uint32_t executed,
                  std::uint8_t number) {
    if (code == 'r' && Memory::load(results_ + number) != me.posted[0])
      throw Violation("what a READ brought is not there after its completion");
    if (code == 'q' && executed < mine.published_before)
      throw Violation("quiet returned before block " + std::to_string(mine.published_before - 1) +
                      " was complete");
    end_operation(me, mine, number);
  }

  void end_operation(Thread& me, Producer& mine, unsigned number) const {
    Producer next{};
    next.known = mine.known;
    next.due = mine.due;
    mine = next;
    if (++me.script_at == setting_.scripts[number].size())
      me.done = 1;
  }

  // The device.

  void serve(Context& context, Device& device) {
    if (device.position == device.told)
      return look(device);
    const std::uint64_t size = std::uint64_t{1} << setting_.wqebbs_log2;
    const auto word_at = [&](std::uint64_t number) {
      return Memory::load(view_.wqes + number % (size * Shape::words_of_wqebb));
    };
    const std::uint64_t word = word_at(device.position * Shape::words_of_wqebb);
    const std::uint64_t wqebbs = word >> 12 & 15;
    if (word >> 16 != device.position || wqebbs == 0)
      throw Violation("the device read something else than the next entry");
    for (unsigned i = 1; i < wqebbs * Shape::words_of_wqebb; ++i)
      if (word_at(device.position * Shape::words_of_wqebb + i) != word)
        throw Violation("an entry is a mixture of two");
    const bool is_put = (word >> 9 & 1) != 0, is_read = (word >> 10 & 1) != 0;
    const auto producer = static_cast<unsigned>(word >> 6 & 7), index = unsigned(word & 63);
    if (is_put)
      deliver(context, producer, index);
    if (is_read)
      Memory::store(results_ + producer, index + 1);
    if ((word >> 11 & 1) != 0)
      complete(device);
    device.position += static_cast<std::uint32_t>(wqebbs);
  }

  void look(Device& device) const {
    const std::uint64_t doorbell = Memory::load(view_.doorbell);
    if (doorbell == device.seen)
      return;
    const std::uint64_t ahead = (Memory::load(view_.send_record) - device.position) & Shape::mask;
    if (ahead > 1u << setting_.wqebbs_log2)
      throw Violation("the record is further ahead than the queue is long");
    device.seen = static_cast<std::uint32_t>(doorbell);
    device.told = static_cast<std::uint32_t>(device.position + ahead);
  }

  void deliver(Context& context, unsigned producer, unsigned index) const {
    // Its data, as it is in memory now.
    if (Memory::load(data_ + producer * posts + index) != index + 1)
      throw Violation("an entry came before its data");
    State& state = context.state();
    context.visible([&] {
      if (index != state.delivered[producer])
        throw Violation("an entry is lost, repeated or out of order");
      ++state.delivered[producer];
      return 0u;
    });
  }

  void complete(Device& device) const {
    const bool is_ring = setting_.mode == CqMode::ring;
    const std::uint64_t size = cqe_count();
    if (is_ring &&
        ((device.completions - Memory::load(view_.completions_record)) & Shape::mask) >= size)
      throw Violation("the completion queue overran");
    Memory::store_release(
        view_.completions + device.completions % size,
        Shape::encode(device.position, 0, is_ring ? device.completions / size & 1 : 0));
    ++device.completions;
  }

  QueueModelSetting setting_;
  unsigned producers_;
  std::uint64_t* data_ = nullptr;
  std::uint64_t* results_ = nullptr;
  QueueModelView view_;
  Queue queue_;
};

} // namespace shmemctl::test
