// The kernels of litmus.h. Included by one source file for each variant, which defines
// SHMEMCTL_LITMUS_VARIANT; for a mutant its copies of headers come first in the include path.
#pragma once

#include "tests/gpu/litmus_reductions.cuh"

namespace shmemctl::test {

namespace {

template <class Scope>
__device__ void send(const DeviceJob& job, const Litmus& litmus, const Agent& agent, std::byte* in,
                     std::byte* out, std::uint64_t round, int peer) {
  switch (litmus.program) {
  case LitmusProgram::put_signal_add:
    device::put_signal<Scope>(job, in, out, litmus.size_bytes, agent.signal, 1, peer,
                              device::SignalOp::add);
    return;
  case LitmusProgram::put_signal_nbi:
    Scope::sync(); // `out` was written by all
    second_warp_stays<Scope>(round);
    device::put_signal_nbi<Scope>(job, in, out, litmus.size_bytes, agent.signal, round, peer);
    return;
  case LitmusProgram::fence:
  case LitmusProgram::quiet:
    Scope::sync();
    second_warp_stays<Scope>(round);
    device::put_nbi<Scope>(job, in, out, litmus.size_bytes, peer);
    if (litmus.program == LitmusProgram::fence)
      device::fence<Scope>(job);
    else
      device::quiet<Scope>(job);
    // Not the first thread: what it waited for has to cover the others' stores.
    if (Scope::rank() == Scope::size() - 1) {
      // A fence orders signals and plain puts alike. Over a network a signal may be an atomic,
      // which the HCA itself keeps behind WRITEs: only a plain put shows a fence that does nothing.
      if (litmus.program == LitmusProgram::fence && round % 2 == 0)
        device::signal_set(job, agent.signal, round, peer);
      else
        device::put_value(job, agent.signal, round, peer);
    }
    return;
  default:
    device::put_signal<Scope>(job, in, out, litmus.size_bytes, agent.signal, round, peer);
  }
}

/// PE 0 and PE 1 send each other messages in turn.
template <class Scope>
__global__ void __launch_bounds__(256)
    messages(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  if (is_outside<Scope>())
    return;
  const Agent agent(base, blockIdx.x);
  const int peer = 1 - job.pe;
  std::byte* const in = litmus.program == LitmusProgram::beside
                            ? reinterpret_cast<std::byte*>(agent.signal + 1)
                            : agent.in;
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round)
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == job.pe) {
        if (litmus.program == LitmusProgram::put_signal)
          second_warp_stays<Scope>(round); // the second warp fills its part later than the others
        fill<Scope>(agent.out, litmus.size_bytes, round, job.pe);
        send<Scope>(job, litmus, agent, in, agent.out, round, peer);
      } else {
        if (!device::signal_wait_until<Scope>(job, agent.signal, device::Compare::greater_equal,
                                              round, peer)) {
          if (Scope::rank() == 0)
            agent.gave_up();
          return;
        }
        agent.found(wrong_in<Scope>(in, litmus.size_bytes, round, peer));
        Scope::sync(); // all have looked before the next message is asked for
      }
    }
  if (Scope::rank() == 0)
    agent.checked(litmus.rounds);
}

/// Each block has a team, since a team's barriers are by one scope of a PE.
template <class Scope>
__global__ void __launch_bounds__(256)
    barriers_behind_puts(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  if (is_outside<Scope>())
    return;
  const Agent agent(base, blockIdx.x);
  const int peer = 1 - job.pe;
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    fill<Scope>(agent.out, litmus.size_bytes, round, job.pe);
    Scope::sync();
    second_warp_stays<Scope>(round);
    // In two places by turns: a PE that is a barrier ahead does not overwrite what the other one
    // checks.
    device::put_nbi<Scope>(job, agent.in_of(round), agent.out, litmus.size_bytes, peer);
    if (!device::barrier<Scope>(job, static_cast<int>(blockIdx.x))) {
      if (Scope::rank() == 0)
        agent.gave_up();
      return;
    }
    agent.found(wrong_in<Scope>(agent.in_of(round), litmus.size_bytes, round, peer));
  }
  if (Scope::rank() == 0)
    agent.checked(litmus.rounds);
}

/// PE 0 puts into PE 2's memory, waits until that is complete, and tells PE 1, which tells PE 2:
/// data and the word that says so come by different links. PE 2 asks for the next round.
template <class Scope>
__global__ void __launch_bounds__(256)
    relayed(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  if (is_outside<Scope>())
    return;
  const Agent agent(base, blockIdx.x);
  const int before = (job.pe + 2) % 3, next = (job.pe + 1) % 3, last = 2;
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    // PE 0 begins; it overwrites what PE 2 has checked.
    const std::uint64_t awaited = job.pe == 0 ? round - 1 : round;
    if (!device::signal_wait_until<Scope>(job, agent.signal, device::Compare::greater_equal,
                                          awaited, before)) {
      if (Scope::rank() == 0)
        agent.gave_up();
      return;
    }
    if (job.pe == 0) {
      fill<Scope>(agent.out, litmus.size_bytes, round, 0);
      Scope::sync();
      second_warp_stays<Scope>(round);
      device::put_nbi<Scope>(job, agent.in, agent.out, litmus.size_bytes, last);
      device::quiet<Scope>(job);
    } else if (job.pe == last) {
      agent.found(wrong_in<Scope>(agent.in, litmus.size_bytes, round, 0));
      Scope::sync(); // all have looked
    }
    if (Scope::rank() == Scope::size() - 1) {
      if (round % 2 == 0)
        device::signal_set(job, agent.signal, round, next);
      else
        device::put_value(job, agent.signal, round, next);
    }
  }
  if (Scope::rank() == 0)
    agent.checked(litmus.rounds);
}

#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK

/// PE 1 gets PE 0's words until they are new.
__global__ void __launch_bounds__(256)
    polled(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  const Agent agent(base, blockIdx.x);
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    bool ok = true;
    if (job.pe == 0) {
      fill<Block>(agent.out, litmus.size_bytes, round, 0);
      device::fence<Block>(job);
      ok = device::signal_wait_until<Block>(job, agent.signal, device::Compare::greater_equal,
                                            round, 1);
    } else {
      const std::uint64_t begin_ns = device::global_time_ns();
      bool here = false;
      while (ok && !here) {
        device::get<Block>(job, agent.in, agent.out, litmus.size_bytes, 0);
        here = Block::all(wrong_in<Block>(agent.in, litmus.size_bytes, round, 0) == 0);
        ok = here || Block::all(device::global_time_ns() - begin_ns <= job.timeout_ns);
      }
      if (threadIdx.x == 0)
        device::signal_set(job, agent.signal, round, 0);
    }
    if (!ok) {
      if (threadIdx.x == 0)
        agent.gave_up();
      return;
    }
  }
  if (threadIdx.x == 0)
    agent.checked(litmus.rounds);
}

/// A load that leaves its line in the multiprocessor's own cache.
__device__ std::uint64_t load_cached(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

/// Each thread writes a word, checks it, meets the other blocks, and checks another thread's word.
/// Words of many blocks lie in each line.
__global__ void __launch_bounds__(256)
    grid_meets(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  const Agent agent(base, blockIdx.x);
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    auto* const words = reinterpret_cast<std::uint64_t*>(base + LitmusPlaces::meeting) +
                        round % 2 * gridDim.x * blockDim.x + threadIdx.x * gridDim.x;
    second_warp_stays<Block>(round);
    words[blockIdx.x] = word_of(round, 0, threadIdx.x);
    agent.found(load_cached(words + blockIdx.x) != word_of(round, 0, threadIdx.x));
    if (!device::grid_sync(job, 0)) {
      if (threadIdx.x == 0)
        agent.gave_up();
      return;
    }
    const unsigned other = (blockIdx.x + 1 + static_cast<unsigned>(round) % 7) % gridDim.x;
    agent.found(load_cached(words + other) != word_of(round, 0, threadIdx.x));
  }
  if (threadIdx.x == 0)
    agent.checked(litmus.rounds);
}

/// Every other block puts; after the barrier of both grids every block checks what a block of the
/// other PE has put.
__global__ void __launch_bounds__(256)
    grid_barriers(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  const Agent agent(base, blockIdx.x);
  const int peer = 1 - job.pe;
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    const bool puts = blockIdx.x % 2 == 1 && blockIdx.x != gridDim.x - 1;
    if (puts) {
      fill<Block>(agent.out, litmus.size_bytes, round, job.pe);
      Block::sync();
    }
    last_block_stays(round);
    if (puts)
      device::put_nbi<Block>(job, agent.in_of(round), agent.out, litmus.size_bytes, peer);
    if (!device::grid_barrier(job, 0)) {
      if (threadIdx.x == 0)
        agent.gave_up();
      return;
    }
    const unsigned other =
        (blockIdx.x + static_cast<unsigned>(round) * 2) % (gridDim.x - 2) / 2 * 2 + 1;
    agent.found(wrong_in<Block>(Agent(base, other).in_of(round), litmus.size_bytes, round, peer));
  }
  if (threadIdx.x == 0)
    agent.checked(litmus.rounds);
}

template <class Scope>
__global__ void __launch_bounds__(256)
    gathers(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  if (is_outside<Scope>())
    return;
  const Agent agent(base, blockIdx.x);
  for (std::uint64_t round = 1; round <= litmus.rounds; ++round) {
    fill<Scope>(agent.out, litmus.size_bytes, round, job.pe);
    if (!device::fcollect<Scope>(job, static_cast<int>(blockIdx.x), agent.in, agent.out,
                                 litmus.size_bytes)) {
      if (Scope::rank() == 0)
        agent.gave_up();
      return;
    }
    for (int pe = 0; pe < 2; ++pe)
      agent.found(wrong_in<Scope>(agent.in + pe * litmus.size_bytes, litmus.size_bytes, round, pe));
    Scope::sync();
  }
  if (Scope::rank() == 0)
    agent.checked(litmus.rounds);
}

/// One message of litmus.size_bytes for each block's part.
__global__ void __launch_bounds__(256)
    gathers_of_grid(const __grid_constant__ DeviceJob job, std::byte* base, Litmus litmus) {
  const Agent agent(base, 0);
  const std::size_t all_bytes = litmus.size_bytes * gridDim.x;
  std::byte* const out = base + LitmusPlaces::out;
  std::byte* const in = base + LitmusPlaces::in;
  bool ok = true;
  for (std::uint64_t round = 1; ok && round <= litmus.rounds; ++round) {
    fill<Block>(out + blockIdx.x * litmus.size_bytes, litmus.size_bytes, round, job.pe);
    ok = device::grid_sync(job, 1);
    last_block_stays(round);
    ok = ok && device::fcollect_grid(job, 0, in, out, all_bytes) && device::grid_sync(job, 1);
    const unsigned other = (blockIdx.x + 1 + static_cast<unsigned>(round) % 5) % gridDim.x;
    for (int pe = 0; ok && pe < 2; ++pe)
      agent.found(wrong_in<Block>(in + pe * all_bytes + other * litmus.size_bytes,
                                  litmus.size_bytes, round, pe));
    ok = ok && device::grid_sync(job, 1); // all have looked
  }
  if (threadIdx.x == 0) {
    if (ok)
      agent.checked(litmus.rounds);
    else
      agent.gave_up();
  }
}

#endif

void launch(cudaStream_t stream, const DeviceJob& job, std::byte* base, const Litmus& litmus) {
  const auto blocks = static_cast<unsigned>(litmus.blocks);
  const auto threads = static_cast<unsigned>(litmus.threads);
  switch (litmus.program) {
  case LitmusProgram::barrier:
    for_scope(litmus.who, [&](auto scope) {
      barriers_behind_puts<decltype(scope)><<<blocks, threads, 0, stream>>>(job, base, litmus);
    });
    return;
  case LitmusProgram::relay:
    for_scope(litmus.who, [&](auto scope) {
      relayed<decltype(scope)><<<blocks, threads, 0, stream>>>(job, base, litmus);
    });
    return;
  case LitmusProgram::reduce:
    for_scope(litmus.who, [&](auto scope) {
      reductions<decltype(scope)><<<blocks, threads, 0, stream>>>(job, base, litmus);
    });
    return;
#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK
  case LitmusProgram::reduce_of_grid:
    for_scope(litmus.who,
              [&](auto) { reductions_of_grid<<<blocks, threads, 0, stream>>>(job, base, litmus); });
    return;
  case LitmusProgram::poll:
    for_scope(litmus.who, [&](auto) { polled<<<blocks, threads, 0, stream>>>(job, base, litmus); });
    return;
  case LitmusProgram::grid_barrier:
    for_scope(litmus.who,
              [&](auto) { grid_barriers<<<blocks, threads, 0, stream>>>(job, base, litmus); });
    return;
  case LitmusProgram::grid_sync:
    for_scope(litmus.who,
              [&](auto) { grid_meets<<<blocks, threads, 0, stream>>>(job, base, litmus); });
    return;
  case LitmusProgram::gather:
    for_scope(litmus.who, [&](auto scope) {
      gathers<decltype(scope)><<<blocks, threads, 0, stream>>>(job, base, litmus);
    });
    return;
  case LitmusProgram::gather_of_grid:
    for_scope(litmus.who,
              [&](auto) { gathers_of_grid<<<blocks, threads, 0, stream>>>(job, base, litmus); });
    return;
#else
  case LitmusProgram::poll:
  case LitmusProgram::grid_barrier:
  case LitmusProgram::grid_sync:
  case LitmusProgram::gather:
  case LitmusProgram::gather_of_grid:
  case LitmusProgram::reduce_of_grid:
    throw std::runtime_error("this program is compiled without networks only");
#endif
  default:
    for_scope(litmus.who, [&](auto scope) {
      messages<decltype(scope)><<<blocks, threads, 0, stream>>>(job, base, litmus);
    });
  }
}

} // namespace

#define SHMEMCTL_LITMUS_TEXT(name) #name
#define SHMEMCTL_LITMUS_QUOTED(name) SHMEMCTL_LITMUS_TEXT(name)
#define SHMEMCTL_LITMUS_JOINED(left, right) left##right
#define SHMEMCTL_LITMUS_FUNCTION(name) SHMEMCTL_LITMUS_JOINED(litmus_variant_, name)

LitmusVariant SHMEMCTL_LITMUS_FUNCTION(SHMEMCTL_LITMUS_VARIANT)() {
#ifdef SHMEMCTL_DEVICE_WITHOUT_NETWORK
  constexpr bool has_network = false;
#else
  constexpr bool has_network = true;
#endif
  return {SHMEMCTL_LITMUS_QUOTED(SHMEMCTL_LITMUS_VARIANT), launch, has_network};
}

} // namespace shmemctl::test
