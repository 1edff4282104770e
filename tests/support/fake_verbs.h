// An RDMA network in this process: devices whose queue pairs carry out what is posted on them, by a
// thread of their own, in an order that only their rules limit. Everything that libibverbs promises
// is kept or refused: access, limits of queues, states, flushing. Faults are put in by the test.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/placement.h"
#include "transports/verbs/functions.h"
#include "transports/verbs/gid.h"

namespace shmemctl::test {

struct FakePort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  bool ethernet = true;
  std::uint16_t lid = 0;
  ibv_mtu active_mtu = IBV_MTU_4096;
  std::uint32_t max_message_bytes = 8 << 20;
  std::vector<verbs::GidEntry> gids;
};

struct FakeDevice {
  std::string name = "fake0";
  ibv_transport_type transport_type = IBV_TRANSPORT_IB;
  ibv_atomic_cap atomic_cap = IBV_ATOMIC_HCA;
  int max_cqe = 4096;
  std::uint32_t max_inline_bytes = 256;
  int max_reads = 16;
  int max_srq = 16, max_srq_wr = 32768;
  /// Soft-RoCE's; others promise no order of WRITEs.
  std::uint32_t vendor_id = any_placement() ? 0x2c9 : 0xffffff;
  /// Requests of a queue pair are carried out in any order that the specification allows.
  bool any_order = any_placement();
  int open_error = 0; ///< errno of ibv_open_device
  std::vector<FakePort> ports = {FakePort{}};
};

/// What the engine is about to carry out, for tests that inject faults.
struct FakeRequest {
  std::string device; ///< device of the sender
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  std::size_t size_bytes = 0;
  std::uint64_t count = 0; ///< how many requests came before it, over all queue pairs
};

/// "10.0.0.<last>" as a GID
inline verbs::GidEntry ipv4_gid(int index, std::uint8_t last,
                                verbs::GidType type = verbs::GidType::roce_v2) {
  return {index, type, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}};
}
/// "fe80::<last>"
inline verbs::GidEntry link_local_gid(int index, std::uint8_t last,
                                      verbs::GidType type = verbs::GidType::roce_v2) {
  return {index, type, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

class FakeVerbs {
public:
  /// What `completion` says instead of success; nothing lets the request through.
  using Fault = std::function<std::optional<ibv_wc_status>(const FakeRequest&)>;

  explicit FakeVerbs(std::vector<FakeDevice> devices);
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  /// The table of functions. They work on the FakeVerbs that was made last and still lives.
  std::shared_ptr<const verbs::Functions> functions() const;

  // Faults; to be set while no PE communicates, unless said otherwise.
  Fault fault;
  /// Requests are never answered while it is true. Any time.
  std::atomic<bool> silent{false};
  std::function<int(const verbs::RawGid& to)> no_path; ///< errno of "ready to receive"
  /// errno of ibv_create_ah, by what it is asked for
  std::function<int(const ibv_ah_attr& to)> no_address_handle;
  int register_error = 0, queue_pair_error = 0;
  /// Result of ibv_poll_cq if it is not 0. Any time.
  std::atomic<int> poll_error{0};
  std::function<ibv_mr*(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                        int file)>
      register_dma_buf;
  /// Changes a port and notifies the threads that wait for events. May be called at any time.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  /// Notifies the threads that wait for events. May be called at any time.
  void tell(const std::string& device, ibv_event_type type, int port);

  // What was done.
  std::atomic<std::uint64_t> doorbells{0}, requests{0}, completions{0}, open_objects{0};
  /// Messages, and how often one found no receive and had to be sent again.
  std::atomic<std::uint64_t> messages{0}, not_ready{0};
  std::uint64_t requests_on(const std::string& device);
  /// What broke the rules, first thing first; "" if nothing did.
  std::string misuse();

private:
  struct Context;
  struct CompletionQueue;
  struct Channel;
  struct SharedReceives;
  struct QueuePair;
  struct Posted {
    ibv_send_wr request{};
    ibv_sge element{};
    std::vector<std::byte> inline_data;
    std::uint64_t position = 0;
    bool done = false; ///< executed, and not complete, because requests before it are not

    bool is_fenced() const { return (request.send_flags & IBV_SEND_FENCE) != 0; }
    bool is_atomic() const {
      return request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
             request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    }
  };
  struct Region {
    std::uintptr_t begin = 0, end = 0;
    std::uint32_t key = 0;
    ibv_pd* domain = nullptr;
    int access = 0;
  };

  static std::atomic<FakeVerbs*>& current();
  // What is in the table and in the devices' own tables.
  static ibv_device** get_device_list(int* count);
  static void free_device_list(ibv_device** list);
  static ibv_context* open_device(ibv_device* device);
  static int close_device(ibv_context* context);
  static int query_device(ibv_context* context, ibv_device_attr* attributes);
  static int query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out);
  static ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                                 std::uint32_t flags, std::size_t entry_size);
  static ibv_pd* alloc_pd(ibv_context* context);
  static int dealloc_pd(ibv_pd* domain);
  static ibv_ah* create_ah(ibv_pd* domain, ibv_ah_attr* attributes);
  static int destroy_ah(ibv_ah* handle);
  static ibv_mr* reg_mr(ibv_pd* domain, void* address, std::size_t length, int access);
  static ibv_mr* reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                               std::uint64_t iova, int file, int access);
  static int dereg_mr(ibv_mr* region);
  static ibv_cq* create_cq(ibv_context* context, int count, void*, ibv_comp_channel* channel, int);
  static int destroy_cq(ibv_cq* queue);
  static ibv_comp_channel* create_comp_channel(ibv_context* context);
  static int destroy_comp_channel(ibv_comp_channel* channel);
  static int get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context);
  static void ack_cq_events(ibv_cq* queue, unsigned count);
  static int req_notify_cq(ibv_cq* queue, int solicited_only);
  static ibv_srq* create_srq(ibv_pd* domain, ibv_srq_init_attr* attributes);
  static int destroy_srq(ibv_srq* queue);
  static int post_srq_recv(ibv_srq* queue, ibv_recv_wr* receive, ibv_recv_wr** refused);
  static ibv_qp* create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes);
  static int modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask);
  static int destroy_qp(ibv_qp* queue_pair);
  static int get_async_event(ibv_context* context, ibv_async_event* event);
  static void ack_async_event(ibv_async_event*) {}
  static int post_send(ibv_qp* queue_pair, ibv_send_wr* request, ibv_send_wr** refused);
  static int poll_cq(ibv_cq* queue, int most, ibv_wc* completions);

  // The engine.
  void run();
  QueuePair* pick();
  void execute(QueuePair& from);
  std::size_t next_of(const QueuePair& from);
  std::optional<ibv_wc_status> carry_out(QueuePair& from, const Posted& posted);
  /// Nothing: the peer has no receive, and the message is sent again later.
  std::optional<ibv_wc_status> deliver(QueuePair& from, QueuePair& to, const Posted& posted,
                                       const std::byte* data);
  ibv_wc_status transfer(QueuePair& from, QueuePair& to, const Posted& posted, std::byte* local);
  const Region* region_at(std::uint64_t address, std::size_t size_bytes, std::uint32_t key,
                          const ibv_pd* domain) const;
  void complete(QueuePair& from, const Posted& posted, ibv_wc_status status);
  void add_completion(CompletionQueue& queue, const ibv_wc& completion, QueuePair* from,
                      std::uint64_t position);
  void enter_error(QueuePair& from);
  const FakeDevice& device_of(const ibv_qp& queue_pair) const;
  void break_rule(const std::string& rule);

  std::vector<FakeDevice> devices_;
  std::vector<std::unique_ptr<ibv_device>> handles_;
  pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable work_;
  bool stop_ = false;
  std::map<std::uint32_t, QueuePair*> queue_pairs_; ///< by number
  std::map<std::uint32_t, Region> regions_;         ///< by key
  std::vector<Context*> contexts_;
  std::map<std::string, std::uint64_t> requests_on_;
  std::uint32_t next_number_ = 17;
  std::uint64_t carried_out_ = 0;
  std::string misuse_;
  std::mt19937 random_{20240517};
  std::thread engine_;
};

} // namespace shmemctl::test

#include "tests/support/fake_verbs_engine.h"
#include "tests/support/fake_verbs_queues.h"
#include "tests/support/fake_verbs_table.h"
