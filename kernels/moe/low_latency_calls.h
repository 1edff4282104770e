// The order in which low-latency calls may be launched. Host only; no CUDA header.
#pragma once

#include <cstdint>
#include <string>

namespace shmemctl::moe {

/// Which phase of a call a launch carries out.
enum class Phases : std::int32_t { both, send, receive };

/// Keeps track of what a rank has launched last, so that the launchers can refuse orders that the
/// buffers do not support. One object per rank and its buffers, used by one thread at a time.
///
/// Each dispatch is followed by its combine before the next dispatch is launched. Two micro-batches
/// in flight (dispatch A, dispatch B, combine A, combine B) are not supported: received rows are
/// double buffered, but the outputs, their flags and the buffers that they are returned to exist
/// once, and a combine uses those of the last dispatch.
///
///   dispatch (or its send, then its receive half), combine (or its send, then its receive half)
///
/// A dispatch that will not be followed by a combine on any rank is abandoned with drop(). A masked
/// rank does not change the order: it is only left out. A launch that failed does not count.
///
/// In a captured graph the order is that of the capture. Replays are not seen here, so a graph has
/// to hold whole pairs, or the caller keeps the replays in order.
class LowLatencyCalls {
public:
  enum class Step {
    none,     ///< nothing is in flight
    sent,     ///< the send phase of a dispatch
    received, ///< a whole dispatch
    offered   ///< the send phase of that dispatch's combine
  };
  explicit LowLatencyCalls(Step step = Step::none) : step_(step) {}

  Step step() const { return step_; }
  /// Abandons a received dispatch that has no combine yet; called on all ranks.
  void drop() {
    if (step_ == Step::received)
      step_ = Step::none;
  }

  /// "", or why the call may not be launched now.
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
