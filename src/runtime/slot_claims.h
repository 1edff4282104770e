// Arbitration of team slots on this PE: several threads may create teams at once, but only one
// creation at a time may take slots.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace shmemctl {

/// The members of a creation exchange their free slots; until they have decided, no other thread of
/// a member may take a slot. If a member cannot hold its slots now, it reports "busy", and all
/// members release the slots that they hold and retry. A creation may hold the slots of a PE only
/// if it has the lowest key there, and only after all its members have arrived, so no attempt waits
/// for another creation. Of all creations whose members have arrived, the one with the lowest key
/// holds the slots of all its PEs after a few attempts (no other creation can take them once it is
/// queued there). It completes, and by induction so do all creations.
class SlotClaims {
public:
  /// Splits have the key (0, parent's slot), and precede creations from a unique id, (1, id).
  using Key = std::pair<int, std::uint64_t>;

  /// One creation, from the arrival of all its members to its end.
  class Claim {
  public:
    Claim(SlotClaims& claims, Key key) : claims_(claims), key_(key) {
      const std::lock_guard lock(claims_.mutex_);
      claims_.waiting_.insert(key_);
    }
    ~Claim() {
      const std::lock_guard lock(claims_.mutex_);
      if (claims_.holder_ == key_)
        claims_.holder_.reset();
      claims_.waiting_.erase(key_);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    /// True if this creation now holds the slots of this PE.
    bool try_hold() {
      const std::lock_guard lock(claims_.mutex_);
      if (!claims_.holder_ && *claims_.waiting_.begin() == key_)
        claims_.holder_ = key_;
      return claims_.holder_ == key_;
    }
    /// Releases the slots after an attempt that ended with "busy".
    void let_go() {
      const std::lock_guard lock(claims_.mutex_);
      if (claims_.holder_ == key_)
        claims_.holder_.reset();
    }

  private:
    SlotClaims& claims_;
    Key key_;
  };

private:
  std::mutex mutex_;
  std::set<Key> waiting_;
  std::optional<Key> holder_;
};

} // namespace shmemctl
