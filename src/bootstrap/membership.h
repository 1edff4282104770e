// Who has joined a job: the rendezvous' decisions, without its sockets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/bootstrap/frame.h"

namespace shmemctl {

class Membership {
public:
  static constexpr int max_pes = 1 << 20;

  enum class Verdict {
    welcome,
    again,   ///< a second connection of a PE that is there already
    contrary ///< what it says cannot be true together with what is known: the job has failed
  };
  struct Answer {
    Verdict verdict = Verdict::welcome;
    FailureReport problem; ///< of `contrary`: names both
  };
  /// The secret has been checked.
  Answer add(const Join& join);

  /// Number of PEs of the job; 0 before the first has joined.
  int size() const { return size_; }
  int joined() const { return static_cast<int>(members_.size()); }
  bool complete() const { return size_ > 0 && joined() == size_; }
  /// "PE 3 (host a, process 12)"
  std::string name(int rank) const;
  /// "2 of 8 PEs have not joined: 3, 5"; at most eight are listed.
  std::string missing() const;
  /// Once complete.
  Neighbours neighbours_of(int rank) const;

private:
  Answer contrary(const std::string& text, const std::string& fix) const;

  int size_ = 0;
  std::map<int, Join> members_;
};

/// "3, 5, 7 and 4 more"; at most eight are listed.
std::string list_ranks(const std::vector<int>& ranks, std::size_t total);

} // namespace shmemctl
