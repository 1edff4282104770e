// The table of bench cases, each with its initiators. Used by `bench`, its --list and --help,
// its errors about what a case does not support, the generated reference, and the sweep.
#include "src/instruments/bench/case_table.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

/// Message sizes of a case.
struct Sizes {
  bool sized = true;
  std::size_t min_bytes = 1, max_bytes = 4 << 20, element_bytes = 1;
  std::vector<std::size_t> only_bytes = {};
};
Sizes up_to(std::size_t max_bytes) {
  return {true, 1, max_bytes, 1, {}};
}
/// Sizes from 8 bytes, or from one element if that is larger.
Sizes elements(std::size_t element_bytes, std::size_t max_bytes) {
  return {true, std::max<std::size_t>(element_bytes, 8), max_bytes, element_bytes, {}};
}
Sizes only(const std::vector<std::size_t>& sizes) {
  return {true, sizes.front(), sizes.back(), sizes.front(), sizes};
}

/// Which PEs send to which.
struct Peers {
  std::vector<Traffic> traffics;
  bool bidirectional = false;
  int min_pes = 2;
  bool uneven = false;
};

/// A case for one initiator.
struct Variant {
  Initiator initiator;
  MakeCase make;
  Peers peers;
  Sizes sizes;
  std::string loop; ///< what the timed loop does, in sentences
  LaunchRules launch = {};
  std::vector<MemoryKind> memories = {};
  std::string also_verified = {}; ///< added to CaseRow::verified
};

struct CaseRow {
  const char* name;
  const char* group;
  Metric metric;
  const char* measures; ///< what the number means, as one clause
  std::string verified; ///< the text after "Verified: ", without a full stop
  std::vector<Variant> variants;
};

/// One thread, warp or block makes all calls.
LaunchRules one_caller() {
  LaunchRules rules;
  rules.scopes = {CallScope::thread, CallScope::warp, CallScope::block};
  return rules;
}
LaunchRules one_thread() {
  LaunchRules rules;
  rules.scopes = {CallScope::thread};
  return rules;
}
/// All callers of a grid make calls; the grid is large enough to saturate a link.
LaunchRules grid_of(std::vector<CallScope> scopes) {
  LaunchRules rules;
  rules.scopes = std::move(scopes);
  rules.one_caller = false;
  rules.ctas = 32;
  rules.threads = 1024;
  return rules;
}
/// The launch of collectives: one block by default, or a grid.
LaunchRules one_block() {
  LaunchRules rules;
  rules.scopes = {CallScope::block};
  rules.one_caller = false;
  rules.ctas = 1;
  rules.threads = 512;
  return rules;
}

constexpr std::size_t KiB = std::size_t{1} << 10, MiB = std::size_t{1} << 20;

} // namespace

// Names a case's maker: a function that SHMEMCTL_CASE(name, ...) defines next to the case's class,
// and which is declared only here, in the case's row.
#define MAKER(name)                                                                                \
  [](const Point& point) {                                                                         \
    std::unique_ptr<Case> name(const Point&);                                                      \
    return name(point);                                                                            \
  }

// Not in an unnamed namespace, in which MAKER() would declare functions of this file.
static std::vector<CaseRow> make_table() {
  constexpr Metric latency = Metric::latency, bandwidth = Metric::bandwidth, rate = Metric::rate;
  constexpr const char *p2p = "point to point", *reference = "reference", *host_link = "host link",
                       *atomic = "atomic", *synchronisation = "synchronisation",
                       *collective = "collective";
  const Peers any{{Traffic::pair, Traffic::pairs, Traffic::all_to_all}, true};
  const Peers pairwise{{Traffic::pair, Traffic::pairs}, true};
  const Peers pingpong{{Traffic::pair, Traffic::pairs}, false};
  const Peers everyone{{Traffic::collective}, false};
  const Peers everyone_or_one{{Traffic::collective}, false, 1};
  // A root sends more than others, of an odd number of PEs the even ones send more blocks that are
  // large, and a message from PE to PE leaves a node only at its last PE.
  const Peers everyone_unevenly{{Traffic::collective}, false, 2, true};
  const Peers own_gpu{{Traffic::local}, true, 1};
  const Sizes unsized{false};
  const Sizes to_4K = up_to(4 * KiB), to_4M = up_to(4 * MiB), to_64M = up_to(64 * MiB);
  const Sizes one_element = only({1, 2, 4, 8}), one_word = only({4, 8});
  const Sizes requests = only({8, 64, 512, 4096}), eight_bytes = only({8});
  const LaunchRules caller = one_caller(), thread = one_thread(), block = one_block();
  const LaunchRules grid = grid_of({CallScope::block, CallScope::thread, CallScope::warp});
  const LaunchRules grid_threads_first =
      grid_of({CallScope::thread, CallScope::warp, CallScope::block});
  const LaunchRules grid_blocks = grid_of({CallScope::block});
  const LaunchRules grid_threads = grid_of({CallScope::thread});
  const std::vector<MemoryKind> heap_only{MemoryKind::host};
  const std::vector<MemoryKind> any_memory{MemoryKind::host, MemoryKind::gpu,
                                           MemoryKind::registered};

  const auto host = [&](MakeCase make, const Peers& peers, const Sizes& sizes, std::string loop,
                        std::string also = "") {
    return Variant{Initiator::host, make, peers,     sizes,
                   std::move(loop), {},   heap_only, std::move(also)};
  };
  const auto on_any_memory = [&](Variant variant) {
    variant.memories = any_memory;
    variant.loop += " With --memory registered an operation is complete when the call returns.";
    return variant;
  };
  const auto stream = [](MakeCase make, const Peers& peers, const Sizes& sizes, std::string loop,
                         std::string also = "") {
    return Variant{Initiator::stream, make,           peers, sizes, std::move(loop), {},
                   {MemoryKind::gpu}, std::move(also)};
  };
  const auto kernel = [](MakeCase make, const Peers& peers, const Sizes& sizes,
                         const LaunchRules& launch, std::string loop, std::string also = "") {
    return Variant{Initiator::gpu,    make,           peers, sizes, std::move(loop), launch,
                   {MemoryKind::gpu}, std::move(also)};
  };

  // Sentences that several timed loops share.
  const std::string window =
      "A window of operations (--window) is in flight at once, each to a slot of its own; one "
      "quiet completes the window. All slots together take at most 8 MiB, so the window of large "
      "messages is smaller, but at least 2.";
  const std::string each_quiet = "Each operation is followed by a quiet.";
  const std::string if_mapped = " Only if the peer's memory is mapped.";
  const std::string to_all =
      " With --traffic all-to-all each message goes to every other PE at once.";
  const std::string split = "Each caller of the grid (--scope) transfers a piece of every message, "
                            "without waiting between messages; one quiet ends the launch." +
                            to_all;
  const std::string split_complete =
      "Each caller of the grid (--scope) transfers a piece of every message; a quiet and a grid "
      "barrier complete it before the next one begins." +
      to_all;
  const std::string caller_quiet =
      "One caller (--scope) issues one operation at a time, each followed by a quiet.";
  const std::string enqueued =
      "Operations are enqueued back to back, with one quiet at the end. Copies between mapped GPUs "
      "are made by a copy engine, those of a heap in host memory by a kernel." +
      to_all;
  const std::string enqueued_quiet =
      "Operations are enqueued back to back, each followed by a quiet.";
  const std::string copied =
      "Copies between page-locked memory of the host and the PE's GPU (cuMemcpyAsync, a copy "
      "engine) are enqueued back to back, by all PEs at once. Each PE's thread allocates its host "
      "memory where it is pinned, so on its NUMA node. With --bidir copies in the other direction "
      "run at the same time in a second stream, and both count.";
  const std::string polls_payload = "The receiver polls the payload itself if it is 1, 2, 4 or 8 "
                                    "bytes, otherwise a ";
  const std::string pingpong_signal = "Each PE sets the peer's signal and waits for its own.";
  const std::string one_word_each =
      "One operation at a time on one 32- or 64-bit word. Each PE has words of its own at its "
      "target.";
  const std::string last_fetched = "and the last value fetched";
  const std::string thread_fetches =
      "One thread issues one operation at a time on one 32- or 64-bit word.";
  const std::string thread_posts = "One thread issues one operation at a time on one word of 4 or "
                                   "8 bytes, each followed by a quiet.";
  const std::string all_fetched = "and every value fetched";
  const std::string late_pe = "the number of calls on every PE; then, in up to 64 further rounds "
                              "with one late PE each, that no PE leaves before all have entered";
  const std::string rounds_kernel =
      "in 200 further rounds, that no PE leaves before all have entered";
  const std::string rounds_stream = "in 20 further rounds, that puts enqueued before the call have "
                                    "arrived when another PE's stream has left the barrier";
  const std::string rounds_stream_sync =
      "in 20 further rounds, that puts which a quiet before the sync has completed are seen when "
      "another PE's stream has left the sync";
  const std::string on_host = "Back-to-back calls on all PEs.";
  const std::string in_stream = "Back-to-back calls in the stream of each PE.";
  const std::string in_kernel =
      "Back-to-back calls in one kernel, by one block of each PE or, with "
      "--ctas, by the whole grid.";
  const std::string of_message = " The size is that of the message.";
  const std::string of_contribution = " The size is that of one PE's contribution.";
  const std::string of_block = " The size is that of the block from one PE to another.";
  const std::string of_larger =
      " The size is that of the larger blocks, which go between PEs whose numbers are both even or "
      "both odd; all other blocks are half as large.";
  const std::string of_array = " The size is that of the array.";
  const std::string of_part = " The size is that of one PE's part of the result.";
  const std::string no_16_bit = " For bf16 and fp16, only kernels and streams have such cases.";
  const std::string rounded = " The sum is computed in 32-bit floating point, rounded once.";
  const std::string request = "One request at a time goes into the proxy's FIFO, followed by a "
                              "quiet of the proxy.";
  const std::string requests_window = "A window of requests (--window) goes into the proxy's FIFO, "
                                      "followed by one quiet of the proxy.";
  const std::string without_proxy = " Before each sample the same call is timed without the proxy, "
                                    "on the same transport, for comparison.";

  const std::string posted_by_verbs =
      "ibv_post_send posts RDMA writes of registered host memory to RC queue pairs that the case "
      "creates: one for each pair of ports that the transport uses, in turn.";
  const std::string if_over_verbs = " Only if ibrc, ibdevx or ibgda carries puts to the peer.";

  // What is verified.
  const std::string slots = "each slot holds the data of its last operation (data that depends on "
                            "the iteration and on the PE it comes from), and nothing else was "
                            "written";
  const std::string slots_and_signal = "the last signal; " + slots;
  const std::string payload = "the last payload and the number of messages";
  const std::string messages = "the number of messages";
  const std::string words = "the target words, computed from the number of operations";
  const std::string result = "the complete result of the last call (the data differ from call to "
                             "call, so the previous result would fail)";
  const std::string last_copy = "every byte of the last copy, the source, and that nothing was "
                                "written behind the end of the copy";
  const std::string requested = "the data, signals and sums at the target";

  // One row for each case: name, group, metric, what it measures, what is verified; then, for each
  // initiator: its maker, the PEs and sizes that it supports, its launch, and its timed loop.
  // clang-format off
  return {
      {"put", p2p, bandwidth, "bandwidth of non-blocking puts", slots,
       {on_any_memory(host(MAKER(put_by_host), any, to_4M, window)),
        stream(MAKER(put_by_gpu), any, to_64M, enqueued),
        kernel(MAKER(put_by_gpu), any, to_64M, grid, split)}},
      {"put-message", p2p, bandwidth, "bandwidth of puts, each message complete before the next", slots,
       {kernel(MAKER(put_message_by_gpu), any, to_64M, grid, split_complete)}},
      {"put-latency", p2p, latency, "latency of a put until it is complete at the target", slots,
       {on_any_memory(host(MAKER(put_latency_by_host), any, to_4M, each_quiet)),
        stream(MAKER(put_latency_by_gpu), pairwise, to_4M, enqueued_quiet),
        kernel(MAKER(put_latency_by_gpu), pairwise, to_4M, caller, caller_quiet)}},
      {"get", p2p, bandwidth, "bandwidth of non-blocking gets", slots,
       {on_any_memory(host(MAKER(get_by_host), any, to_4M, window)),
        stream(MAKER(get_by_gpu), any, to_64M, enqueued),
        kernel(MAKER(get_by_gpu), any, to_64M, grid, split)}},
      {"get-message", p2p, bandwidth, "bandwidth of gets, each message complete before the next", slots,
       {kernel(MAKER(get_message_by_gpu), any, to_64M, grid, split_complete)}},
      {"get-latency", p2p, latency, "latency of a get until the data has arrived", slots,
       {on_any_memory(host(MAKER(get_latency_by_host), any, to_4M, each_quiet)),
        stream(MAKER(get_latency_by_gpu), pairwise, to_4M, enqueued_quiet),
        kernel(MAKER(get_latency_by_gpu), pairwise, to_4M, caller, caller_quiet)}},
      {"p", p2p, latency, "latency of a put of one element until it is complete at the target", slots,
       {host(MAKER(put_element_by_host), any, one_element, "A put of one element from a variable, followed by a quiet."),
        kernel(MAKER(put_element_by_gpu), pairwise, one_element, thread, "One thread puts one element from a register, followed by a quiet.")}},
      {"g", p2p, latency, "latency of a get of one element", slots,
       {host(MAKER(get_element_by_host), any, one_element, "A blocking get of one element."),
        kernel(MAKER(get_element_by_gpu), pairwise, one_element, thread, "One thread gets one element and stores it.")}},
      {"put-signal", p2p, latency, "latency of a put with signal until both are complete at the target", slots_and_signal,
       {host(MAKER(put_signal_by_host), any, to_4M, each_quiet),
        stream(MAKER(put_signal_by_gpu), pairwise, to_4M, enqueued_quiet),
        kernel(MAKER(put_signal_by_gpu), pairwise, to_4M, caller, caller_quiet)}},
      {"iput", p2p, latency, "latency of a strided put until it is complete at the target", slots,
       {host(MAKER(strided_put_by_host), any, elements(8, 64 * KiB), "Contiguous elements of 8 bytes go to every second element of the target, followed by a quiet. The size is that of the payload.")}},
      {"message-rate", p2p, rate, "small puts per second", slots,
       {host(MAKER(put_by_host), any, to_4K, window),
        kernel(MAKER(message_rate_by_gpu), pairwise, up_to(KiB), grid_threads_first, "Each caller of the grid (--scope) puts messages of its own without waiting; one quiet ends the launch. Messages of neighbouring callers are adjacent in memory.")}},
      {"put-pingpong", p2p, latency, "half the round-trip time of a put", payload,
       {host(MAKER(put_pingpong_by_host), pingpong, to_4M, polls_payload + "flag that is put after a fence."),
        kernel(MAKER(put_pingpong_by_gpu), pingpong, to_4M, caller, polls_payload + "signal that is set after a fence.")}},
      {"put-signal-pingpong", p2p, latency, "half the round-trip time of a put with signal", payload,
       {host(MAKER(put_signal_pingpong_by_host), pingpong, to_4M, "The receiver waits for the signal."),
        stream(MAKER(put_signal_pingpong_by_gpu), pingpong, to_4M, "The stream of the receiver waits for the signal."),
        kernel(MAKER(put_signal_pingpong_by_gpu), pingpong, to_4M, caller, "The receiver waits for the signal. The signal of an 8-byte payload lies right after it, so that both are one store.")}},
      {"signal-pingpong", p2p, latency, "half the round-trip time of a signal", messages,
       {host(MAKER(signal_pingpong_by_host), pingpong, unsized, pingpong_signal),
        stream(MAKER(signal_pingpong_by_gpu), pingpong, unsized, pingpong_signal),
        kernel(MAKER(signal_pingpong_by_gpu), pingpong, unsized, thread, pingpong_signal)}},
      {"wait-forward", p2p, latency, "time per hop of a message that travels through all PEs", payload,
       {kernel(MAKER(wait_forward_by_gpu), everyone_unevenly, to_4M, caller, "PE 0 puts with a signal to PE 1; each PE waits for the signal and forwards the data to the next. The time of a round divided by the number of PEs is reported.", "on every PE")}},

      {"memcpy", reference, bandwidth, "bandwidth of memcpy into the peer's mapped memory: the reference for put", slots,
       {host(MAKER(memcpy_reference_by_host), any, to_4M, "Uses the slots and windows of put, without the runtime." + if_mapped)}},
      {"transport-put", reference, bandwidth, "bandwidth of puts by the transport alone: the reference for put where memory is not mapped", slots,
       {host(MAKER(transport_put_by_host), any, to_4M, "Uses the slots and windows of put, but calls the transport itself, without the runtime, which looks up addresses and paths. Between PEs of a node the transport is shm, unless --transport lists others.")}},
      {"cacheline-pingpong", reference, latency, "half the round-trip time of a cache line: the reference for ping-pongs", messages,
       {host(MAKER(cacheline_pingpong_by_host), pingpong, unsized, "Each PE stores to the peer's mapped memory and polls its own memory, without the runtime." + if_mapped)}},
      {"bare-atomic", reference, latency, "latency of a fetch-add instruction on mapped memory: the reference for atomic-fetch-add", words,
       {host(MAKER(bare_atomic_by_host), any, one_word, one_word_each + if_mapped, last_fetched)}},
      {"st", reference, bandwidth, "bandwidth of plain stores to mapped memory: the reference for put", slots,
       {kernel(MAKER(store_by_gpu), any, to_64M, grid_blocks, "A loop of 16-byte stores instead of the API. " + split)}},
      {"st-latency", reference, latency, "latency of plain stores until they are complete: the reference for put-latency", slots,
       {kernel(MAKER(store_latency_by_gpu), pairwise, to_4M, thread, "One thread stores, followed by a fence.")}},
      {"store-pingpong", reference, latency, "half the round-trip time of a plain store: the reference for ping-pongs", messages,
       {kernel(MAKER(store_pingpong_by_gpu), pingpong, unsized, thread, "One thread of each PE stores to the peer's mapped memory and polls its own memory with acquire loads, without the API.")}},

      {"verbs-write", verbs_group, bandwidth, "bandwidth of RDMA writes by libibverbs alone: the reference for put over ibrc, ibdevx and ibgda", slots,
       {host(MAKER(verbs_write_by_host), pairwise, to_4M, posted_by_verbs + " The slots and windows are those of put, and the CQ is polled until a window is complete." + if_over_verbs)}},
      {"verbs-write-latency", verbs_group, latency, "latency of an RDMA write by libibverbs alone until its completion: the reference for put-latency over ibrc, ibdevx and ibgda", slots,
       {host(MAKER(verbs_write_latency_by_host), pairwise, to_4M, posted_by_verbs + " The CQ is polled for the completion of each before the next one." + if_over_verbs)}},

      {"host-to-device", host_link, bandwidth, "bandwidth of copies from page-locked host memory to the GPU", last_copy,
       {stream(MAKER(host_to_device_by_gpu), own_gpu, to_64M, copied)}},
      {"device-to-host", host_link, bandwidth, "bandwidth of copies from the GPU to page-locked host memory", last_copy,
       {stream(MAKER(device_to_host_by_gpu), own_gpu, to_64M, copied)}},

      {"atomic-fetch", atomic, latency, "latency of an atomic fetch", words,
       {host(MAKER(atomic_fetch_by_host), any, one_word, one_word_each, last_fetched),
        kernel(MAKER(atomic_fetch_by_gpu), pairwise, one_word, thread, thread_fetches, all_fetched)}},
      {"atomic-set", atomic, latency, "latency of an atomic set until it is complete at the target", words,
       {host(MAKER(atomic_set_by_host), any, one_word, one_word_each),
        kernel(MAKER(atomic_set_by_gpu), pairwise, one_word, thread, thread_posts)}},
      {"atomic-swap", atomic, latency, "latency of an atomic swap", words,
       {host(MAKER(atomic_swap_by_host), any, one_word, one_word_each, last_fetched),
        kernel(MAKER(atomic_swap_by_gpu), pairwise, one_word, thread, thread_fetches, all_fetched)}},
      {"atomic-compare-swap", atomic, latency, "latency of an atomic compare-and-swap whose comparison always succeeds", words,
       {host(MAKER(atomic_compare_swap_by_host), any, one_word, one_word_each, last_fetched),
        kernel(MAKER(atomic_compare_swap_by_gpu), pairwise, one_word, thread, thread_fetches, all_fetched)}},
      {"atomic-fetch-add", atomic, latency, "latency of an atomic fetch-and-add", words,
       {host(MAKER(atomic_fetch_add_by_host), any, one_word, one_word_each, last_fetched),
        kernel(MAKER(atomic_fetch_add_by_gpu), pairwise, one_word, thread, thread_fetches, all_fetched)}},
      {"atomic-add", atomic, latency, "latency of an atomic add until it is complete at the target", words,
       {kernel(MAKER(atomic_add_by_gpu), pairwise, one_word, thread, thread_posts)}},
      {"atomic-fetch-inc", atomic, latency, "latency of an atomic fetch-and-increment", words,
       {host(MAKER(atomic_fetch_inc_by_host), any, one_word, one_word_each, last_fetched)}},
      {"atomic-fetch-and", atomic, latency, "latency of an atomic fetch-and-AND", words,
       {host(MAKER(atomic_fetch_and_by_host), any, one_word, one_word_each, last_fetched)}},
      {"atomic-fetch-or", atomic, latency, "latency of an atomic fetch-and-OR", words,
       {host(MAKER(atomic_fetch_or_by_host), any, one_word, one_word_each, last_fetched)}},
      {"atomic-fetch-xor", atomic, latency, "latency of an atomic fetch-and-XOR", words,
       {host(MAKER(atomic_fetch_xor_by_host), any, one_word, one_word_each, last_fetched)}},
      {"atomic-rate", atomic, rate, "atomic adds per second", words,
       {host(MAKER(atomic_rate_by_host), any, one_word, "Adds to the words of a window (--window) in turn, with a quiet after each window."),
        kernel(MAKER(atomic_rate_by_gpu), pairwise, one_word, grid_threads, "Each thread of the grid adds to a word of its own at the target; one quiet ends the launch. The words are adjacent in memory.")}},
      {"atomic-bandwidth", atomic, bandwidth, "bandwidth of atomic adds to an array", words,
       {kernel(MAKER(atomic_bandwidth_by_gpu), pairwise, elements(8, 4 * MiB), grid_threads, "The threads of the grid add to every 8-byte word of an array at the target, adjacent threads to adjacent words, in repeated passes; one quiet ends the kernel. The size is that of the array.")}},

      {"barrier", synchronisation, latency, "latency of a barrier over all PEs", "",
       {host(MAKER(barrier_by_host), everyone, unsized, "Back-to-back barriers, each with a quiet.", late_pe),
        stream(MAKER(barrier_by_gpu), everyone_or_one, unsized, in_stream, rounds_stream),
        kernel(MAKER(barrier_by_gpu), everyone_or_one, unsized, caller, "Back-to-back barriers by one caller (--scope) of each PE.", rounds_kernel)}},
      {"sync", synchronisation, latency, "latency of a sync over all PEs, which completes no puts", "",
       {host(MAKER(sync_by_host), everyone, unsized, on_host, late_pe),
        stream(MAKER(sync_by_gpu), everyone_or_one, unsized, in_stream, rounds_stream_sync),
        kernel(MAKER(sync_by_gpu), everyone_or_one, unsized, caller, "Back-to-back syncs by one caller (--scope) of each PE.", rounds_kernel)}},

      {"broadcast", collective, latency, "latency of a broadcast from PE 0", result,
       {host(MAKER(broadcast_by_host), everyone_unevenly, elements(1, MiB), on_host + of_message),
        stream(MAKER(broadcast_by_gpu), everyone_unevenly, elements(1, 8 * MiB), in_stream + of_message),
        kernel(MAKER(broadcast_by_gpu), everyone_unevenly, elements(1, 8 * MiB), block, in_kernel + of_message)}},
      {"fcollect", collective, latency, "latency of an fcollect: an all-gather of equal contributions", result,
       {host(MAKER(fcollect_by_host), everyone, elements(1, MiB), on_host + of_contribution),
        stream(MAKER(fcollect_by_gpu), everyone, elements(1, 8 * MiB), in_stream + of_contribution),
        kernel(MAKER(fcollect_by_gpu), everyone, elements(1, 8 * MiB), block, in_kernel + of_contribution)}},
      {"collect", collective, latency, "latency of a collect: an all-gather of contributions of any size", result,
       {host(MAKER(collect_by_host), everyone, elements(1, MiB), on_host + of_contribution + " All contributions are equal, but the call does not know that.")}},
      {"alltoall", collective, latency, "latency of an all-to-all exchange", result,
       {host(MAKER(alltoall_by_host), everyone, elements(1, MiB), on_host + of_block),
        stream(MAKER(alltoall_by_gpu), everyone, elements(1, 8 * MiB), in_stream + of_block),
        kernel(MAKER(alltoall_by_gpu), everyone, elements(1, 8 * MiB), block, in_kernel + of_block)}},
      {"alltoallv", collective, latency, "latency of an all-to-all exchange of blocks of different sizes", result,
       {stream(MAKER(alltoallv_by_gpu), everyone_unevenly, elements(1, 8 * MiB), in_stream + of_larger),
        kernel(MAKER(alltoallv_by_gpu), everyone_unevenly, elements(1, 8 * MiB), block, in_kernel + of_larger)}},
      {"reduce", collective, latency, "latency of a sum all-reduce of 64-bit integers", result,
       {host(MAKER(reduce_by_host), everyone, elements(8, MiB), on_host + of_array + no_16_bit),
        stream(MAKER(reduce_by_gpu), everyone, elements(8, 8 * MiB), in_stream + of_array),
        kernel(MAKER(reduce_by_gpu), everyone, elements(8, 8 * MiB), block, in_kernel + of_array)}},
      {"reducescatter", collective, latency, "latency of a sum reduce-scatter of 64-bit integers", result,
       {host(MAKER(reducescatter_by_host), everyone, elements(8, MiB), on_host + of_part + no_16_bit),
        stream(MAKER(reducescatter_by_gpu), everyone, elements(8, 8 * MiB), in_stream + of_part),
        kernel(MAKER(reducescatter_by_gpu), everyone, elements(8, 8 * MiB), block, in_kernel + of_part)}},
      {"reduce-float", collective, latency, "latency of a sum all-reduce of 32-bit floating-point numbers", result,
       {host(MAKER(reduce_float_by_host), everyone, elements(4, MiB), on_host + of_array + no_16_bit),
        stream(MAKER(reduce_float_by_gpu), everyone, elements(4, 8 * MiB), in_stream + of_array),
        kernel(MAKER(reduce_float_by_gpu), everyone, elements(4, 8 * MiB), block, in_kernel + of_array)}},
      {"reducescatter-float", collective, latency, "latency of a sum reduce-scatter of 32-bit floating-point numbers", result,
       {host(MAKER(reducescatter_float_by_host), everyone, elements(4, MiB), on_host + of_part + no_16_bit),
        stream(MAKER(reducescatter_float_by_gpu), everyone, elements(4, 8 * MiB), in_stream + of_part),
        kernel(MAKER(reducescatter_float_by_gpu), everyone, elements(4, 8 * MiB), block, in_kernel + of_part)}},
      {"reduce-bf16", collective, latency, "latency of a sum all-reduce of bf16 numbers", result,
       {stream(MAKER(reduce_bf16_by_gpu), everyone, elements(2, 8 * MiB), in_stream + rounded + of_array),
        kernel(MAKER(reduce_bf16_by_gpu), everyone, elements(2, 8 * MiB), block, in_kernel + rounded + of_array)}},
      {"reducescatter-bf16", collective, latency, "latency of a sum reduce-scatter of bf16 numbers", result,
       {stream(MAKER(reducescatter_bf16_by_gpu), everyone, elements(2, 8 * MiB), in_stream + rounded + of_part),
        kernel(MAKER(reducescatter_bf16_by_gpu), everyone, elements(2, 8 * MiB), block, in_kernel + rounded + of_part)}},
      {"reduce-fp16", collective, latency, "latency of a sum all-reduce of fp16 numbers", result,
       {stream(MAKER(reduce_fp16_by_gpu), everyone, elements(2, 8 * MiB), in_stream + rounded + of_array),
        kernel(MAKER(reduce_fp16_by_gpu), everyone, elements(2, 8 * MiB), block, in_kernel + rounded + of_array)}},
      {"reducescatter-fp16", collective, latency, "latency of a sum reduce-scatter of fp16 numbers", result,
       {stream(MAKER(reducescatter_fp16_by_gpu), everyone, elements(2, 8 * MiB), in_stream + rounded + of_part),
        kernel(MAKER(reducescatter_fp16_by_gpu), everyone, elements(2, 8 * MiB), block, in_kernel + rounded + of_part)}},

      {"proxy-put", proxy_group, latency, "latency of a put through the proxy until it is complete", requested,
       {host(MAKER(proxy_put_by_host), any, requests, request + without_proxy)}},
      {"proxy-put-rate", proxy_group, rate, "puts through the proxy per second", requested,
       {host(MAKER(proxy_put_rate_by_host), any, requests, requests_window + without_proxy)}},
      {"proxy-put-signal", proxy_group, latency, "latency of a put with signal through the proxy until both are complete", requested,
       {host(MAKER(proxy_put_signal_by_host), any, requests, request + without_proxy)}},
      {"proxy-atomic-fetch-add", proxy_group, latency, "latency of a fetch-and-add through the proxy", requested,
       {host(MAKER(proxy_atomic_fetch_add_by_host), any, eight_bytes, "One request at a time goes into the proxy's FIFO and waits for its result." + without_proxy)}},
      {"proxy-atomic-rate", proxy_group, rate, "atomic adds through the proxy per second", requested,
       {host(MAKER(proxy_atomic_rate_by_host), any, eight_bytes, requests_window + without_proxy)}},
  };
  // clang-format on
}
#undef MAKER

namespace {

const std::vector<CaseRow>& case_table() {
  static const std::vector<CaseRow> table = make_table();
  return table;
}

/// "the target words, computed from ..., and the last value fetched".
std::string verified_text(const CaseRow& row, const Variant& variant) {
  if (row.verified.empty() || variant.also_verified.empty())
    return row.verified + variant.also_verified;
  const bool joined = starts_with(variant.also_verified, "and ");
  return row.verified + (joined ? ", " : " ") + variant.also_verified;
}

BenchCase case_of(const CaseRow& row, const Variant& variant) {
  CaseInfo info;
  info.name = row.name;
  info.group = row.group;
  info.measures = row.measures;
  info.how = variant.loop + " Verified: " + verified_text(row, variant) + ".";
  info.metric = row.metric;
  info.sized = variant.sizes.sized;
  info.element_bytes = variant.sizes.element_bytes;
  info.min_bytes = variant.sizes.min_bytes;
  info.max_bytes = variant.sizes.max_bytes;
  info.only_bytes = variant.sizes.only_bytes;
  info.traffics = variant.peers.traffics;
  info.bidirectional = variant.peers.bidirectional;
  info.min_pes = variant.peers.min_pes;
  info.uneven = variant.peers.uneven;
  info.initiator = variant.initiator;
  info.launch = variant.launch;
  info.memories = variant.memories;
  info.memory = variant.memories.front();
  return {std::move(info), variant.make};
}

std::vector<BenchCase> cases_of(Initiator initiator) {
  std::vector<BenchCase> cases;
  for (const CaseRow& row : case_table())
    for (const Variant& variant : row.variants)
      if (variant.initiator == initiator)
        cases.push_back(case_of(row, variant));
  return cases;
}

bool any_matches(const std::vector<BenchCase>& cases, const std::string& pattern) {
  return std::any_of(cases.begin(), cases.end(), [&](const BenchCase& bench_case) {
    return matches_pattern(bench_case.info.name, pattern);
  });
}

/// The error for a pattern that matches only cases for other flags; names these flags.
std::optional<Error> case_of_other_flags(const std::vector<BenchCase>& cases,
                                         const std::string& pattern) {
  const Initiator own = cases.empty() ? Initiator::host : cases.front().info.initiator;
  std::string given = std::string("--initiator ") + to_string(own);
  std::vector<std::string> flags;
  for (const Initiator initiator : all_initiators) {
    if (!any_matches(cases_of(initiator), pattern))
      continue;
    if (initiator == own) { // the chosen memory excluded it
      given += std::string(" --memory ") + to_string(cases.front().info.memory);
      flags.emplace_back("--memory host");
    } else {
      flags.push_back(std::string("--initiator ") + to_string(initiator));
    }
  }
  if (flags.empty())
    return std::nullopt;
  return Error(ExitCode::usage, "bench", "", "no case of " + given + " matches \"" + pattern + "\"",
               "pass " + join(flags, " or ") + "; shmemctl bench --list shows all cases")
      .on_all_pes();
}

Error no_such_case(const std::vector<BenchCase>& cases, const std::string& pattern) {
  if (const auto elsewhere = case_of_other_flags(cases, pattern))
    return *elsewhere;
  std::vector<std::string> names, near;
  for (const BenchCase& bench_case : cases)
    names.push_back(bench_case.info.name);
  if (const auto nearest = nearest_spelling(pattern, names))
    near.push_back(*nearest);
  for (const std::string& name : names)
    if (near.size() < 4 && pattern.size() >= 3 && name.find(pattern) != std::string::npos &&
        std::find(near.begin(), near.end(), name) == near.end())
      near.push_back(name);
  return Error(ExitCode::usage, "bench", "", "unknown case \"" + pattern + "\"",
               near.empty() ? "pass a name that shmemctl bench --list shows; * matches any text, ? "
                              "any one character"
                            : "did you mean " + join(near, " or ") +
                                  "? shmemctl bench --list shows all cases")
      .on_all_pes();
}

} // namespace

std::vector<BenchCase> host_cases() {
  return cases_of(Initiator::host);
}

std::vector<BenchCase> gpu_cases() {
  return cases_of(Initiator::gpu);
}

std::vector<BenchCase> stream_cases() {
  return cases_of(Initiator::stream);
}

std::vector<BenchCase> cases_of(Initiator initiator, MemoryKind memory) {
  std::vector<BenchCase> cases;
  for (BenchCase& bench_case : cases_of(initiator)) {
    CaseInfo& info = bench_case.info;
    // Kernels and streams have only one kind of memory, whatever was requested.
    if (initiator == Initiator::host) {
      if (std::find(info.memories.begin(), info.memories.end(), memory) == info.memories.end())
        continue;
      info.memory = memory;
    }
    cases.push_back(std::move(bench_case));
  }
  return cases;
}

std::vector<BenchCase> choose_cases(const std::vector<BenchCase>& cases,
                                    const std::vector<std::string>& patterns) {
  std::vector<bool> chosen(cases.size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (pattern == "all" || matches_pattern(cases[i].info.name, pattern))
        any = chosen[i] = true;
    if (!any)
      throw no_such_case(cases, pattern);
  }
  std::vector<BenchCase> result;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (chosen[i])
      result.push_back(cases[i]);
  return result;
}

} // namespace shmemctl::bench
