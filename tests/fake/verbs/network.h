// The part of the fake libibverbs that moves bytes: this process's side of a network of
// processes. Everything posted on a queue pair is done in its order, at the target by a thread of
// the target.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "tests/fake/verbs/wire.h"

namespace fake_verbs {

/// Memory that was registered. A device's is reached through the fake CUDA driver only.
struct Region {
  std::uint64_t begin = 0, end = 0; ///< as work requests name it
  bool of_device = false;
  int access = 0;
};

struct QueuePair : ibv_qp {
  std::int32_t peer = 0; ///< process
  std::uint32_t peer_pair = 0;
  ibv_qp_state now = IBV_QPS_RESET;
  std::uint32_t depth = 0;
  struct Work {
    std::uint64_t position, id, address;
    std::uint32_t size_bytes, key;
    bool is_signaled, is_read;
  };
  std::deque<Work> under_way; ///< until their completion is taken, the unsignaled with it
  std::uint64_t next_position = 0, answered = 0, freed = 0;
  std::mutex sending; ///< one post at a time: datagrams go in the order of positions
};

struct CompletionQueue : ibv_cq {
  struct Entry {
    ibv_wc completion;
    QueuePair* pair;
    std::uint64_t position;
  };
  std::deque<Entry> entries;
};

class Network {
public:
  /// That of this process; begins with its first user and ends with its last.
  static Network& get();
  void enter();
  void leave();

  std::mutex mutex; ///< of all that follows
  std::map<std::uint32_t, Region> regions;
  std::map<std::uint32_t, QueuePair*> pairs;
  std::uint32_t next_number = 17;

  /// What ibv_post_send does with one request; an errno value.
  int post(QueuePair& pair, const ibv_send_wr& request);
  /// Takes completions as ibv_poll_cq does.
  int poll(CompletionQueue& queue, int most, ibv_wc* completions);

private:
  void serve_requests();
  void take_replies();
  /// At the target. Returns an ibv_wc_status.
  std::uint32_t carry_out(Datagram& datagram);
  const Region* region_at(std::uint32_t key, std::uint64_t address, std::uint64_t size_bytes) const;
  /// Under the mutex.
  void complete(QueuePair& pair, std::uint32_t status);

  int users_ = 0;
  int requests_ = -1, responses_ = -1;
  std::thread requests_thread_, replies_thread_;
};

} // namespace fake_verbs
