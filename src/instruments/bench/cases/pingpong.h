// Ping-pong cases: two PEs that send each other messages in turn.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>

#include "src/instruments/bench/cases/host_case.h"
#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

/// One side of a ping-pong. Addresses are on this PE.
struct PingPongEnd {
  Rma& rma;
  int peer;
  std::byte *source, *slot;
  std::uint64_t* flag;
  std::uint64_t* peers_flag; ///< the peer's flag, mapped here; nullptr if it is not mapped
  std::size_t size_bytes;
  bool payload_is_flag;
  std::uint64_t flag_mask; ///< which bits of the message number the flag contains
};

/// How messages are sent and awaited. Kinds have send(end, number) and await(end, number); numbers
/// start from 0.
struct PingPongKind {
  static constexpr bool direct = false; ///< needs the peer's memory mapped here
  /// Whether the payload is the message number itself. It is then in the flag's word, and its
  /// receiver waits for it.
  static bool payload_is_flag(std::size_t size_bytes) {
    static_cast<void>(size_bytes);
    return false;
  }
  static bool has_payload(std::size_t size_bytes) { return size_bytes > 0; }
  static std::byte* source_of(const PingPongEnd& end, std::uint64_t number) {
    return end.source + number % variants * variant_step_bytes;
  }
};

template <class Kind>
class PingPong final : public HostCase {
public:
  using HostCase::HostCase;

  std::size_t bytes_for(int) const override { return flag_offset_bytes() + 64; }
  bool measures() const override { return role_ == Role::asks; }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  int latency_divisor() const override { return 2; }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (role_ == Role::none)
      return;
    const PingPongEnd end = this->end();
    for (std::uint64_t number = first; number < first + count; ++number) {
      if (role_ == Role::asks) {
        Kind::send(end, number);
        Kind::await(end, number);
      } else {
        Kind::await(end, number);
        Kind::send(end, number);
      }
    }
    end.rma.quiet();
  }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (role_ == Role::none)
      return std::nullopt;
    const std::size_t size = point().size_bytes;
    if (auto wrong = verify_flag(iterations))
      return wrong;
    if (!Kind::has_payload(size) || Kind::payload_is_flag(size) || iterations == 0)
      return std::nullopt;
    const std::uint64_t last = iterations - 1;
    const std::byte* slot = context().memory + slot_offset_bytes();
    auto difference =
        compare_pattern(slot, size, context().seed, peer_, last % variants * variant_step_bytes);
    if (!difference) {
      difference = compare_zero(slot + size, flag_offset_bytes() - slot_offset_bytes() - size);
      if (difference)
        difference->offset_bytes += size;
    }
    if (!difference)
      return std::nullopt;
    return WrongByte{context().pe, slot_offset_bytes() + difference->offset_bytes,
                     difference->expected, difference->found,
                     "payload of iteration " + std::to_string(last) + " from PE " +
                         std::to_string(peer_)};
  }

  std::string cannot_run(Runtime& runtime) const override {
    return Kind::direct ? unmapped_peer(runtime) : "";
  }

private:
  enum class Role { none, asks, answers };

  Routes routes(int pe, int n_pes) const {
    Point one_way = point();
    one_way.direction = Direction::uni;
    return routes_of(one_way, pe, n_pes);
  }
  std::size_t slot_offset_bytes() const { return source_bytes(point().size_bytes); }
  std::size_t flag_offset_bytes() const {
    return slot_offset_bytes() + (point().size_bytes + 63) / 64 * 64;
  }

  PingPongEnd end() const {
    std::byte* const memory = context().memory;
    auto* flag = reinterpret_cast<std::uint64_t*>(memory + flag_offset_bytes());
    return {context().rma,
            peer_,
            memory,
            memory + slot_offset_bytes(),
            flag,
            static_cast<std::uint64_t*>(context().rma.direct(flag, peer_)),
            point().size_bytes,
            Kind::payload_is_flag(point().size_bytes),
            flag_mask()};
  }
  std::uint64_t flag_mask() const {
    static_assert(std::endian::native == std::endian::little);
    const bool cut = Kind::payload_is_flag(point().size_bytes) && point().size_bytes < 8;
    return cut ? (std::uint64_t{1} << 8 * point().size_bytes) - 1 : ~std::uint64_t{0};
  }

  void set_up() override {
    const Routes own_routes = routes(context().pe, context().n_pes);
    role_ = !own_routes.to.empty()     ? Role::asks
            : !own_routes.from.empty() ? Role::answers
                                       : Role::none;
    if (role_ != Role::none)
      peer_ = role_ == Role::asks ? own_routes.to[0] : own_routes.from[0];
    fill_pattern(context().memory, source_bytes(point().size_bytes), context().seed, context().pe);
  }

  /// The flag contains the number of messages that arrived; only its low bits if the payload is the
  /// flag.
  std::optional<WrongByte> verify_flag(std::uint64_t iterations) const {
    const std::uint64_t expected = iterations & flag_mask();
    std::uint64_t found = 0;
    std::memcpy(&found, context().memory + flag_offset_bytes(), sizeof found);
    if (found == expected)
      return std::nullopt;
    return WrongByte{context().pe, flag_offset_bytes(), expected, found,
                     "messages from PE " + std::to_string(peer_)};
  }

  Role role_ = Role::none;
  int peer_ = -1;
};

} // namespace shmemctl::bench
