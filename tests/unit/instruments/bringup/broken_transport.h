// A transport with one defect, towards one PE.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "src/base/error.h"
#include "transports/forwarding_transport.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {

enum class Defect {
  none,
  corrupt,      ///< the middle byte of each put and get is wrong
  drop,         ///< puts, signals and atomics do nothing, gets bring nothing
  truncate,     ///< the last byte is not transferred
  overrun,      ///< one byte too many is written
  delay,        ///< puts are done one quiet() too late
  misdirect,    ///< everything goes to another PE
  early_signal, ///< the signal arrives before the payload
  lost_add,     ///< the add returns the old value, and adds nothing
  wrong_old,    ///< atomics return another value
  swaps_always, ///< compare-swap does not compare
  wrong_signal, ///< the signal's value is wrong
  refuse        ///< every operation throws
};

class BrokenTransport final : public ForwardingTransport {
public:
  BrokenTransport(Defect defect, int towards, int elsewhere, std::size_t from_bytes = 0)
      : ForwardingTransport(make_shm_transport()), defect_(defect), towards_(towards),
        elsewhere_(elsewhere), from_bytes_(from_bytes) {}

  const char* name() const override { return "broken"; }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    const Defect defect = defect_towards(target.pe, size_bytes);
    if (defect == Defect::drop)
      return;
    std::vector<std::byte> bytes(static_cast<const std::byte*>(source),
                                 static_cast<const std::byte*>(source) + size_bytes);
    if (defect == Defect::corrupt)
      bytes[size_bytes / 2] ^= std::byte{0x40};
    if (defect == Defect::truncate)
      bytes.pop_back();
    if (defect == Defect::overrun)
      bytes.push_back(std::byte{1});
    RemoteAddress to = target;
    if (defect == Defect::misdirect)
      to.pe = elsewhere_;
    if (defect == Defect::delay) {
      late_.push_back([this, context, to, bytes] {
        below().put(context, to, bytes.data(), bytes.size(), true);
      });
      return;
    }
    if (!bytes.empty())
      below().put(context, to, bytes.data(), bytes.size(), true);
    static_cast<void>(blocking);
  }

  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    const Defect defect = defect_towards(source.pe, size_bytes);
    RemoteAddress from = source;
    if (defect == Defect::drop)
      return;
    if (defect == Defect::misdirect)
      from.pe = elsewhere_;
    if (defect == Defect::truncate)
      --size_bytes;
    if (size_bytes > 0)
      below().get(context, target, from, size_bytes, blocking);
    if (defect == Defect::corrupt)
      static_cast<std::byte*>(target)[size_bytes / 2] ^= std::byte{0x40};
    if (defect == Defect::overrun)
      static_cast<std::byte*>(target)[size_bytes] = std::byte{1};
  }

  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    const Defect defect = defect_towards(target.pe, from_bytes_);
    AtomicRequest changed = request;
    RemoteAddress to = target;
    if (defect == Defect::drop)
      return 0;
    if (defect == Defect::misdirect)
      to.pe = elsewhere_;
    if (defect == Defect::lost_add && request.op == AtomicOp::add)
      changed.operand = 0;
    if (defect == Defect::swaps_always && request.op == AtomicOp::compare_swap)
      changed.op = AtomicOp::swap;
    const std::uint64_t old = below().atomic(context, to, changed);
    return defect == Defect::wrong_old ? old + 1 : old;
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    atomic(context, target, request);
  }

  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    const Defect defect = defect_towards(target.pe, size_bytes);
    RemoteAddress to = signal;
    if (defect == Defect::drop)
      return;
    if (defect == Defect::misdirect)
      to.pe = elsewhere_;
    const auto* bytes = static_cast<const std::byte*>(source);
    if (defect == Defect::early_signal) {
      below().put_signal(context, to, nullptr, 0, to, signal_value, op, true);
      std::vector<std::byte> kept(bytes, bytes + size_bytes);
      late_.push_back([this, context, target, kept] {
        below().put(context, target, kept.data(), kept.size(), true);
      });
      return;
    }
    put(context, target, source, size_bytes, blocking);
    below().put_signal(context, to, nullptr, 0, to,
                       defect == Defect::wrong_signal ? signal_value ^ 2 : signal_value, op, true);
  }

  void quiet(int context) override {
    below().quiet(context);
    for (const auto& operation : due_)
      operation();
    due_ = std::move(late_);
    late_.clear();
  }

private:
  Defect defect_towards(int pe, std::size_t size_bytes) const {
    if (pe != towards_ || size_bytes < from_bytes_)
      return Defect::none;
    if (defect_ == Defect::refuse)
      throw Error(ExitCode::unavailable, "broken device", "post", "it is broken", "replace it");
    return defect_;
  }

  Defect defect_;
  int towards_, elsewhere_;
  std::size_t from_bytes_;
  std::vector<std::function<void()>> late_, due_;
};

} // namespace shmemctl::test
