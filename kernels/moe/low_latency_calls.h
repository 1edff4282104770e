// The order in which low-latency calls may be launched. Host only; no CUDA header.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::moe {

/// Which half of a call a launch does.
enum class Phases : std::int32_t { both, send, receive };

/// What a rank has launched last, by which the launchers refuse what the memory of these calls
/// cannot serve. One for each rank and its memory; used by one thread at a time.
///
/// A dispatch is answered by its combine before the next one is launched. Two micro-batches under
/// way at a time (dispatch A, dispatch B, combine A, combine B) are not supported: received rows
/// have two halves, but outputs, the words that say that they are there and the memory in which
/// they come back are there once, and a combine takes those of the last dispatch.
///
///   dispatch (or its send, then its receive half), combine (or its send, then its receive half)
///
/// A dispatch that gets no combine on any rank is given up with drop(). A masked rank changes
/// nothing of this: it is left out of the same calls. A launch that failed counts as not made.
///
/// In a captured graph the order is that of the capture: replays are not seen here, so a graph
/// holds whole pairs, or its replays keep to the order by themselves.
class LowLatencyCalls {
public:
  enum class Step {
    none,     ///< nothing is under way
    sent,     ///< a dispatch's send half
    received, ///< a dispatch
    offered   ///< and its combine's send half
  };
  explicit LowLatencyCalls(Step step = Step::none) : step_(step) {}

  Step step() const { return step_; }
  /// Nobody will combine the dispatch that was received last: on all ranks.
  void drop() {
    if (step_ == Step::received)
      step_ = Step::none;
  }

  /// "" or why it is not launched now.
  std::string refuse_dispatch(Phases phases) const {
    if (phases == Phases::receive)
      return step_ == Step::sent ? ""
                                 : "no dispatch has been sent that this could receive: launch its "
                                   "send half first";
    switch (step_) {
    case Step::none:
      return "";
    case Step::sent:
      return "the dispatch before has not been received: launch its receive half first";
    case Step::received:
      return "the dispatch before has no combine yet, and two micro-batches under way are not "
             "supported: launch that combine first, or give the dispatch up with drop()";
    case Step::offered:
      return "the combine before is not received, and two micro-batches under way are not "
             "supported: launch its receive half first";
    }
    return "";
  }
  std::string refuse_combine(Phases phases) const {
    if (phases == Phases::receive)
      return step_ == Step::offered
                 ? ""
                 : "no combine has been sent that this could receive: launch its send half first";
    switch (step_) {
    case Step::received:
      return "";
    case Step::offered:
      return "the combine before is not received: launch its receive half first";
    case Step::sent:
      return "the dispatch has not been received: launch its receive half first";
    case Step::none:
      return "there is no dispatch that this combine could answer: each combine has one of its "
             "own, launched before it";
    }
    return "";
  }

  void dispatched(Phases phases) { step_ = phases == Phases::send ? Step::sent : Step::received; }
  void combined(Phases phases) { step_ = phases == Phases::send ? Step::offered : Step::none; }

private:
  Step step_;
};

} // namespace shmemctl::moe
