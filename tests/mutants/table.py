"""The mutants: one memory order, or one wait, removed from the device code each.

A mutant is a list of edits. The old text of an edit occurs exactly once in its file; mutate.py writes
copies of the files with the new text, and tests/style/test_mutants.py checks that every edit still
applies. Old texts hold code only, no comments, so that rewording a comment breaks none.

Where a mutant is tried:
  HOST    tests/support/device_mutants.sh: threads of the host under ThreadSanitizer
  LITMUS  tests/gpu: a variant of gpu_litmus_mutants
  MOE     tests/gpu: test_gpu_moe_without_NAME, where NAME lacks the leading MOE_
  KERNEL  tests/gpu: another program named after the mutant
docs/explanation/device_api.md says which of them find it.
"""

import typing

HOST, LITMUS, MOE, KERNEL = "host", "litmus", "moe", "kernel"

# Files that the tests on host threads use in place of those at the same path of the product.
HOST_FILES = "tests/support/device_on_host/"
HOST_MEMORY_ORDER = HOST_FILES + "kernels/device/memory_order.cuh"


class Edit(typing.NamedTuple):
    """In `file`, a path from the root of the repository, `old` becomes `new`."""

    file: str
    old: str
    new: str


class Mutant(typing.NamedTuple):
    """`drops`: what is missing in it. `kernels`: of a MOE mutant, the sources of kernels/moe to compile (all
    if empty; kernels of other sources then come from the library)."""

    name: str
    drops: str
    tried: tuple
    edits: list
    kernels: tuple = ()


# Time for a reader to see a signal that comes too early.
DELAY = """for (const std::uint64_t begin_ns = device::global_time_ns();
           device::global_time_ns() - begin_ns < 200000;) {
      }
      """

SIGNAL = "kernels/device/signal.cuh"
SYNC = "kernels/device/sync.cuh"
GPU_MEMORY = "kernels/device/gpu_memory.cuh"
MEMORY_ORDER = "kernels/device/memory_order.cuh"
ADDRESS = "kernels/device/symmetric_address.cuh"
SMALL = "kernels/device/collectives_small.cuh"
LARGE = "kernels/device/collectives_large.cuh"
QP = "kernels/device/ibgda_qp.h"

DEVICE = [
    # Puts and their signals.
    Mutant("PUT_SIGNAL_BEGIN", "sync of the scope at the beginning of a blocking put_signal", (HOST, LITMUS), [
        Edit(SIGNAL, """bool blocking) {
  if (blocking)
    Scope::sync();
""", """bool blocking) {
"""),
    ]),
    Mutant("PUT_SIGNAL_SYNC", "sync of the scope before the release of put_signal", (HOST, LITMUS), [
        Edit(SIGNAL, """    Scope::sync();
    if (Scope::rank() == 0) {
      std::uint64_t* const word""", """    if (Scope::rank() == 0) {
      std::uint64_t* const word"""),
    ]),
    Mutant("PUT_SIGNAL_RELEASE", "release of put_signal", (HOST, LITMUS), [
        Edit(SIGNAL, "store_release(word, value);", "store_relaxed(word, value);"),
        Edit(SIGNAL, "add_release(word, value);", "add_relaxed(word, value);"),
    ]),
    Mutant("ONE_ACCESS", "data and signal in one access", (HOST, LITMUS), [
        Edit(MEMORY_ORDER, '''  asm volatile("{\\n\\t.reg .b128 both;\\n\\t"
               "mov.b128 both, {%1, %2};\\n\\t"
               "st.relaxed.sys.global.b128 [%0], both;\\n\\t}" ::"l"(at),
               "l"(pair.first), "l"(pair.second)
               : "memory");
''', """  store_relaxed(at, pair.first);
  store_relaxed(at + 1, pair.second);
"""),
        # No earlier fence of the thread makes up for it.
        Edit(HOST_MEMORY_ORDER, """  at[0] = pair.first;
  store_release(at + 1, pair.second);
""", """  __atomic_store_n(at, pair.first, __ATOMIC_RELAXED);
  __atomic_store_n(at + 1, pair.second, __ATOMIC_RELAXED);
"""),
    ]),
    Mutant("SIGNAL_BEHIND", "fence of a signal after earlier operations of a stream", (HOST, KERNEL), [
        Edit(SIGNAL, "SignalOp op, int pe) {\n  fence_system();", "SignalOp op, int pe) {\n"),
    ]),
    Mutant("WORD_ATOMIC", "fence of an atomic that the host asks for", (HOST, KERNEL), [
        Edit("kernels/device/word_atomic.cuh", "fence_system();", ""),
    ]),
    Mutant("WAIT_ACQUIRE", "acquire of a wait's polls", (HOST, LITMUS), [
        Edit("kernels/device/wait.cuh", "from_bits<T>(load_acquire(", "from_bits<T>(load_relaxed("),
    ]),
    Mutant("GET_FRESH", "gets bypass this SM's L1 cache", (LITMUS,), [
        Edit(MEMORY_ORDER, '''  int4 value;
  asm volatile("ld.relaxed.sys.global.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at)
               : "memory");
  return value;
''', """  return *at;
"""),
    ]),
    # Fence, quiet and barriers.
    Mutant("FENCE", "fence of a thread", (HOST, LITMUS), [
        Edit(SYNC, "void fence() {\n  fence_system();", "void fence() {"),
    ]),
    Mutant("FENCE_SYNC", "sync of the scope before its fence", (HOST, LITMUS), [
        Edit(SYNC, "  Scope::sync();\n  fence();", "  fence();"),
    ]),
    Mutant("QUIET", "quiet of a thread", (HOST, LITMUS), [
        Edit(SYNC, "void quiet() {\n  fence_system();", "void quiet() {"),
    ]),
    Mutant("QUIET_SYNC", "sync of the scope before its quiet", (HOST, LITMUS), [
        Edit(SYNC, "  Scope::sync();\n  quiet();", "  quiet();"),
    ]),
    Mutant("BARRIER_SYNC", "sync of the scope at the beginning of a barrier", (HOST, LITMUS), [
        Edit(SYNC, "  Scope::sync();\n  const TeamView team", "  const TeamView team"),
    ]),
    Mutant("BARRIER_RELEASE", "release of a barrier's arrival", (HOST, LITMUS), [
        Edit(SYNC, "release.mapped.add(there, 1);", "add_relaxed(there, 1);"),
    ]),
    Mutant("BARRIER_ALONE", "quiet of a barrier with one member", (HOST,), [
        Edit(SYNC, "  if (completes && team.n == 1)\n    quiet();\n", ""),
    ]),
    Mutant("SYNC_TURNS", "the two words that alternate for the number of a barrier", (HOST,), [
        Edit("kernels/device_plan.h", "return number % 2;", "return 0;"),
    ]),
    Mutant("GRID_SYNC", "sync of a block that arrives at a grid barrier", (HOST, LITMUS), [
        Edit(SYNC, "  Block::sync();\n  if (Block::rank() == 0) {\n    std::uint64_t* const counters",
             "  if (Block::rank() == 0) {\n    std::uint64_t* const counters"),
    ]),
    Mutant("GRID_ARRIVE", "acquire and release of a block's arrival at a grid barrier", (HOST, LITMUS), [
        Edit(SYNC, "atomic_word_add_ordered(arrived, arrival)", "atomic_word_add(arrived, arrival)"),
    ]),
    Mutant("GRID_RELEASE", "release of the end of a grid barrier", (HOST, LITMUS), [
        Edit(SYNC, "store_release_device(generation, after);", "store_relaxed(generation, after);"),
    ]),
    Mutant("FLAG_RELEASE", "release of the flags of barriers and collectives", (HOST, LITMUS), [
        Edit(ADDRESS, "    release.mapped.store(there, value);", "    store_relaxed(there, value);"),
    ]),
    Mutant("NETWORK_FLAG_FENCE", "fence before the flags of barriers and collectives that go over the network", (HOST,), [
        Edit(ADDRESS, "  if (!release.over_network)\n    network_release();\n", ""),
    ]),
    # Collectives.
    Mutant("MUST_WAIT", "wait until all have left the collective whose buffer is used again", (HOST,), [
        Edit(SMALL, """    for (int i = Scope::rank(); i < team_.n; i += Scope::size()) {
      bool in_time = true;
      if (i != team_.me)
        wait_at_least(job_, &team_.cells->entered[i], epoch_ - 1, team_.pe(i), in_time);
      ok = ok && in_time;
    }
""", ""),
    ]),
    Mutant("TWO_HALVES", "the two buffers of small collectives that alternate", (HOST,), [
        Edit(SMALL, "messages[plan::half_of(epoch_)]", "messages[0]"),
    ]),
    Mutant("REDUCE_SYNC", "of a reduction in place: all of the scope have sent before one stores a sum", (HOST,), [
        Edit(SMALL, "    return false;\n  Scope::sync();", "    return false;\n"),
    ]),
    Mutant("REDUCE_WAIT", "a reduction waits until all have begun before it loads", (HOST, LITMUS), [
        Edit(LARGE, "return Scope::all(wait_my_share() && ok);", "return Scope::all(ok);"),
    ]),
    Mutant("GATHER_WAIT", "a gather to all members together waits until they have begun before it stores", (HOST,), [
        Edit(LARGE, "  load();\n  if (!collective.wait_flags())\n    return false;\n", "  load();\n"),
    ]),
    Mutant("COLLECTIVE_SYNC", "sync of the scope before it counts its part as done", (HOST, LITMUS), [
        Edit(LARGE, "    ok = wait_my_share() && ok;\n    Scope::sync();", "    ok = wait_my_share() && ok;\n"),
    ]),
    Mutant("COLLECTIVE_RELEASE", "release of a collective's end", (HOST, LITMUS), [
        Edit(LARGE, "release.mapped.add(there, count);", "add_relaxed(there, count);"),
    ]),
    Mutant("COLLECTIVE_BLOCK_FENCE", "acquire and release of the count of a collective's parts, with a network",
           (HOST, LITMUS), [
        Edit(LARGE, "atomic_word_add_ordered(counter, 1)", "atomic_word_add(counter, std::uint64_t{1})"),
    ]),
    Mutant("NETWORK_GET_QUIET", "quiet between the gets of a reduction over the network and its sums", (HOST, LITMUS), [
        Edit("kernels/device/collectives_network.cuh", "    ok = ok && network_quiet(job);\n", ""),
    ]),
    # The network of kernels.
    Mutant("NETWORK_ACQUIRE", "acquires of completions, and of what others know of them", (LITMUS,), [
        Edit(GPU_MEMORY, "return load_acquire_device(word);", "return load(word);"),
        Edit(GPU_MEMORY, """load_completion(const std::uint64_t* word) {
    return device::load_acquire(word);""", """load_completion(const std::uint64_t* word) {
    return load_relaxed(word);"""),
    ]),
    Mutant("NETWORK_RELEASE", "fence of WQEs before their turn, releases of requests and of completions",
           (LITMUS, KERNEL), [
        Edit(GPU_MEMORY, "store_release_device(word, value);", "store(word, value);"),
        Edit(GPU_MEMORY, "fence_device();", ""),
    ]),
    Mutant("NETWORK_DOORBELL", "fence before the doorbell record, release before the doorbell", (LITMUS,), [
        Edit(GPU_MEMORY, "    fence_system();", "    "),
        Edit(GPU_MEMORY, "device::store_release(doorbell, value);", "store_relaxed(doorbell, value);"),
    ]),
    Mutant("QUEUE_SIGNAL", "signals by atomics over an HCA that does not order WRITEs", (LITMUS,), [
        Edit(QP, "return queue_.abilities.signals;", "return mlx5::SignalMethod::write;"),
    ]),
    Mutant("QUEUE_FENCE", "fences that wait for completions over an HCA that does not order WRITEs", (LITMUS,), [
        Edit(QP, """    if (!queue_.abilities.orders_writes())
      return !used() || quiet();
""", ""),
    ]),
]

CALL = "kernels/moe/call.cuh"
COUNTS = "kernels/moe/high_throughput_counts.cuh"
DISPATCH = "kernels/moe/high_throughput_dispatch.cuh"
REDUCE = "kernels/moe/combine_reduce.cuh"
LL_DISPATCH = "kernels/moe/low_latency_dispatch.cuh"
LL_COMBINE = "kernels/moe/low_latency_combine.cuh"
LL_COMMON = "kernels/moe/low_latency_common.cuh"
LL_INTERNODE_DISPATCH = "kernels/moe/low_latency_internode_dispatch.cuh"
RAILS = "kernels/moe/rails.cuh"
INTERNODE_DISPATCH = "kernels/moe/high_throughput_internode_dispatch.cuh"
INTERNODE_COMBINE = "kernels/moe/high_throughput_internode_combine.cuh"
INTERNODE_NOTIFY = "kernels/moe/high_throughput_internode_notify.cuh"

MOE_MUTANTS = [
    # How a call begins and ends.
    Mutant("MOE_ENTERED_NO_WAIT", "wait until all ranks have entered the call", (HOST, MOE), [
        Edit(CALL, "return device::Block::all(wait_for_flags(flags_->entered, flags_->wait_ns[0], blockIdx.x == 0));",
             "return true;"),
    ], ("high_throughput",)),
    Mutant("MOE_ENTERED_RELAXED", "release of the flag of a rank that has entered", (HOST,), [
        Edit(CALL, "    device::store_release(there, word);", """    if (words == flags_->entered)
      return device::store_relaxed(there, word);
    device::store_release(there, word);"""),
    ]),
    Mutant("MOE_FINISHED_NO_WAIT", "wait until all ranks have finished the call", (HOST, MOE), [
        Edit(CALL, "      all_ok = wait_for_flags(flags_->finished, flags_->wait_ns[1], true);\n", ""),
    ], ("high_throughput",)),
    Mutant("MOE_FAILURE_NOT_SENT", "a rank that timed out does not say that it has sent everything", (HOST, MOE), [
        Edit(CALL, "finish(bool ok) const {", "finish(bool ok) const {\n    ok = true;"),
    ], ("high_throughput",)),
    Mutant("MOE_CALL_ORDER", "acquire and release of the count of blocks at the end of a call", (MOE,), [
        Edit(CALL, "atomic_word_add_ordered(", "atomic_word_add("),
    ]),
    # How counts are exchanged.
    Mutant("MOE_PLAN_KEPT", "the plan is cleared if counts are missing", (HOST,), [
        Edit(COUNTS, "all_arrived ? base_of", "true ? base_of"),
        Edit(COUNTS, "    if (!all_arrived)\n      clear();\n", ""),
        Edit(INTERNODE_NOTIFY, "    if (!all_arrived)\n      clear_slots();\n", ""),
    ]),
    Mutant("MOE_NOTIFY_ONE_HALF", "the two buffers of counts that alternate", (HOST,), [
        Edit(COUNTS, "buffer_(buffer_of_epoch(epoch))", "buffer_(0)"),
        Edit(INTERNODE_NOTIFY, "buffer_(buffer_of_epoch(epoch_))", "buffer_(0)"),
    ]),
    Mutant("MOE_NOTIFY_ORDER", "fence of a block before it counts itself as done with the notify", (MOE,), [
        Edit(COUNTS, "    device::fence_system();\n", ""),
    ]),
    # High-throughput dispatch and combine within a node.
    Mutant("MOE_SIGNAL_FIRST", "rows are sent before the call is finished", (MOE,), [
        Edit(DISPATCH, """  if (all_arrived)
    sender.run();
  else
    sender.drop();
  call.finish(all_arrived);
""", """  call.finish(all_arrived);
  if (all_arrived)
    sender.run();
  else
    sender.drop();
"""),
    ]),
    Mutant("MOE_PLACE", "two rows keep their slots", (MOE,), [
        Edit(DISPATCH, "    if (now.row >= 0) {",
             """    const std::int32_t row = now.row == 10 ? 11 : now.row == 11 ? 10 : now.row;
    if (now.row >= 0) {"""),
        Edit(DISPATCH, "rows_ + static_cast<std::int64_t>(now.row) * value_bytes_",
             "rows_ + static_cast<std::int64_t>(row) * value_bytes_"),
        Edit(DISPATCH, "records_ + static_cast<std::int64_t>(now.row) * record_bytes",
             "records_ + static_cast<std::int64_t>(row) * record_bytes"),
    ]),
    Mutant("MOE_PIECE", "the end of a row is sent", (MOE,), [
        Edit(DISPATCH, """stage_row,
                           static_cast<std::uint32_t>(value_bytes_));""", """stage_row,
                           static_cast<std::uint32_t>(value_bytes_ - (token % 97 == 5 ? 16 : 0)));"""),
    ]),
    Mutant("MOE_STAGE_REUSED", "a stage is loaded again only when its row has been stored from there", (MOE,), [
        Edit(DISPATCH, "      device::bulk_wait_read<kept>();\n", ""),
    ], ("high_throughput",)),
    Mutant("MOE_STORES_UNDER_WAY", "wait for the stores of rows before the call is finished", (MOE,), [
        Edit(DISPATCH, "    device::bulk_wait_all();\n  }\n  /// Called instead", "  }\n  /// Called instead"),
    ]),
    Mutant("MOE_RECORD_FENCE", "fence between the writes of records and the copy engine's reads", (MOE,), [
        Edit(DISPATCH, "    device::fence_shared_for_bulk();\n    __syncwarp();\n    barrier.wait(parity);",
             "    __syncwarp();\n    barrier.wait(parity);"),
    ]),
    Mutant("MOE_OUTPUTS_UNCHECKED", "combine waits until all ranks have their outputs", (MOE,), [
        Edit("kernels/moe/high_throughput_combine.cuh", "const bool all_arrived = call.wait_for_all();",
             "const bool all_arrived = true;"),
    ]),
    Mutant("MOE_OUTPUTS_FENCE", "proxy fence before the bulk loads of outputs", (MOE,), [
        Edit(REDUCE, "    device::fence_global_for_bulk();\n", ""),
    ]),
    Mutant("MOE_GATHER_FENCE", "fence between reads of a stage and the copy engine's next write there", (MOE,), [
        Edit(REDUCE, "      device::fence_shared_for_bulk();\n", ""),
    ]),
    # Low-latency dispatch and combine within a node.
    Mutant("MOE_PARTS_FIRST", "rows are sent before the counts are published", (MOE,), [
        Edit(LL_DISPATCH, "      send(token);\n      __syncthreads();",
             "      publish();\n      " + DELAY + "send(token);\n      __syncthreads();"),
    ]),
    Mutant("MOE_WORD_RELAXED", "release of the counts: ordered after the rows", (MOE,), [
        Edit(LL_DISPATCH, "device::store_release(word_, word);", "device::store_relaxed(word_, word);"),
    ]),
    Mutant("MOE_FEW_OUTPUTS_UNCHECKED", "combine waits until all ranks have their outputs", (MOE,), [
        Edit(LL_COMBINE, """    if (rank < all.shape.n_ranks)
      arrived = wait_or_mask(flags, rank, all.rank_timeout_ns,
                             [&] { return device::load_acquire(&flags->ready[rank]) >= epoch; });
""", """    arrived = rank < all.shape.n_ranks;
"""),
    ]),
    Mutant("MOE_READY_RELAXED", "release of a rank's ready flag: ordered after the outputs", (MOE,), [
        Edit(LL_COMBINE, "device::store_release(word, epoch);", "device::store_relaxed(word, epoch);"),
    ]),
    Mutant("MOE_ONE_HALF", "the two buffers of a low-latency dispatch that alternate", (HOST,), [
        Edit(LL_COMMON, "return buffer_of_epoch(epoch);", "return 0;"),
    ]),
    Mutant("MOE_MASK_IGNORED", "nothing of a masked rank is used", (HOST,), [
        Edit(LL_COMMON, "is_masked = device::load_relaxed(&flags->masked[rank]) != 0;", ""),
    ]),
    # Across nodes.
    Mutant("MOE_RAIL_TURNS", "the two flags of a peer that alternate", (HOST,), [
        Edit("kernels/moe/high_throughput_internode.h", "return static_cast<std::int32_t>(number % 2);", "return 0;"),
    ]),
    Mutant("MOE_RAIL_RELEASE", "fence before the flags of a call that go over the network", (HOST,), [
        Edit(RAILS, "device::network_release();", ""),
    ]),
    Mutant("MOE_RAIL_UNCHECKED", "wait until all ranks of the rail have entered the call", (HOST,), [
        Edit(INTERNODE_DISPATCH, "  ok = rails.wait_for_all() && ok;", ""),
    ]),
    Mutant("MOE_CHUNK_FIRST", "rows are packed before their chunk is sent", (HOST, MOE), [
        Edit(INTERNODE_DISPATCH, "rows_of(crossing(job_.pe, node), chunk);\n",
             "rows_of(crossing(job_.pe, node), chunk);\n      send_chunk(peer, chunk, rows);\n      " + DELAY),
    ], ("high_throughput_internode",)),
    Mutant("MOE_CHUNK_UNCHECKED", "wait for the signal of a chunk before its rows are forwarded", (HOST, MOE), [
        Edit(INTERNODE_DISPATCH, """      if (device::Block::rank() == 0)
        arrived = rails_.wait(all_.memory.row_signals + shape_.chunk_word(peer, chunk), peer, 1,
                              blockIdx.x == 0);
""", ""),
    ], ("high_throughput_internode",)),
    Mutant("MOE_SUMS_FIRST", "sums are complete before their chunk is sent", (HOST, MOE), [
        Edit(INTERNODE_COMBINE, "      for (std::int32_t row = begin + warp_;",
             "      send_chunk(peer, chunk, begin, rows);\n      " + DELAY + "for (std::int32_t row = begin + warp_;"),
    ], ("high_throughput_internode",)),
    Mutant("MOE_SUMS_UNCHECKED", "wait for the signals of the chunks whose sums are added up", (HOST, MOE), [
        Edit(INTERNODE_COMBINE, """
          arrived = rails_.wait(all_.memory.sum_signals + shape_.chunk_word(peer, waited_chunk),
                                peer, 1, blockIdx.x == 0) &&
                    arrived;
""", "\n"),
    ], ("high_throughput_internode",)),
    Mutant("MOE_INTERNODE_ROW", "a row is copied to the send buffer before it is put", (HOST,), [
        Edit(LL_INTERNODE_DISPATCH, "      if (!packed)\n        copy_row(row_out(token), row.values);\n", ""),
    ]),
    Mutant("MOE_INTERNODE_ROWS_UNCHECKED", "wait for the signals of rows that came over the network", (HOST,), [
        Edit(LL_INTERNODE_DISPATCH, """      arrived = wait_or_mask(all_.memory.mapped.flags, source, all_.rank_timeout_ns,
                             [&] { return device::load_acquire(words + i) == epoch_; }) &&
                arrived;
""", ""),
    ]),
    Mutant("MOE_INTERNODE_BACK_UNCHECKED", "wait for the signals of outputs that came back over the network", (HOST,), [
        Edit("kernels/moe/low_latency_internode_combine.cuh", """    if (!wait(rank,
              [&] { return device::load_acquire(all_.memory.output_signals + at) == epoch_; }))
      return nullptr;
""", ""),
    ]),
]

MUTANTS = DEVICE + MOE_MUTANTS
