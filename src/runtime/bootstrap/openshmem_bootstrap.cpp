#include "src/runtime/bootstrap/openshmem_bootstrap.h"

#include <algorithm>
#include <atomic>

#include "src/base/log.h"
#include "src/base/round_up.h"
#include "src/base/wait.h"
#include "src/runtime/bootstrap/chunks.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr std::size_t sets = 2;
constexpr std::size_t cache_line_bytes = 64;
constexpr std::size_t smallest_slot_bytes = 256;
/// How long the thread polls before it returns for a check of the deadline and the job's health.
constexpr std::chrono::milliseconds polling_span{20};
constexpr std::chrono::seconds abort_span{2};

std::uint64_t load_flag(std::uint64_t& flag) {
  return std::atomic_ref(flag).load(std::memory_order_acquire);
}

} // namespace

/// The library and the symmetric memory. Slots and flags have the same offsets on every PE.
struct OpenshmemBootstrap::Shared {
  OpenshmemLibrary shmem;
  int me = 0, n_pes = 1;
  std::byte* memory = nullptr;
  std::size_t slot_bytes = 0;
  std::size_t flags_bytes = 0;

  std::uint64_t& flag(std::uint64_t round, int from) const {
    const std::size_t set = round % sets;
    return reinterpret_cast<std::uint64_t*>(
        memory)[set * static_cast<std::size_t>(n_pes) + static_cast<std::size_t>(from)];
  }
  std::byte* slot(std::uint64_t round, int from) const {
    const std::size_t set = round % sets;
    return memory + flags_bytes +
           (set * static_cast<std::size_t>(n_pes) + static_cast<std::size_t>(from)) * slot_bytes;
  }
};

OpenshmemBootstrap::OpenshmemBootstrap(const Arguments& arguments, const Deadline& deadline)
    : Bootstrap(0, 1), shared_(new Shared{.shmem = open_openshmem_library(arguments.library)}) {
  own_initialisation_ = !*shared_->shmem.initialized;
  const auto result = std::make_shared<int>(OpenshmemLibrary::success);
  blocking_.run(
      "shmem_init",
      [shared = shared_, result, initialise = own_initialisation_] {
        if (initialise)
          *result = shared->shmem.initialise();
        if (*result != OpenshmemLibrary::success)
          return;
        shared->me = shared->shmem.my_pe();
        shared->n_pes = shared->shmem.n_pes();
      },
      deadline, health());
  if (*result != OpenshmemLibrary::success)
    throw Error(ExitCode::unavailable, "OpenSHMEM", "initialize",
                "shmem_init_thread returned " + std::to_string(*result),
                "check its messages on stderr, or choose another SHMEMCTL_BOOTSTRAP");
  set_ranks(shared_->me, shared_->n_pes);
  set_up(arguments.staging_bytes, deadline);
}

OpenshmemBootstrap::~OpenshmemBootstrap() {
  if (!finished_ && own_initialisation_)
    abandon_openshmem();
}

void OpenshmemBootstrap::set_up(std::size_t staging_bytes, const Deadline& deadline) {
  shared_->slot_bytes =
      round_up(std::max(staging_bytes / (sets * ranks()), smallest_slot_bytes), cache_line_bytes);
  shared_->flags_bytes = round_up(sets * ranks() * sizeof(std::uint64_t), cache_line_bytes);
  const std::size_t size_bytes = shared_->flags_bytes + sets * ranks() * shared_->slot_bytes;
  const auto set_up_memory = [shared = shared_, size_bytes] {
    shared->memory = static_cast<std::byte*>(shared->shmem.malloc(size_bytes));
    if (shared->memory == nullptr)
      return;
    std::fill_n(shared->memory, shared->flags_bytes, std::byte{0});
    shared->shmem.barrier_all(); // no PE may put before all flags are zero
  };
  blocking_.run("shmem_malloc", set_up_memory, deadline, health());
  if (shared_->memory == nullptr)
    throw Error(ExitCode::unavailable, "OpenSHMEM symmetric heap",
                "allocate " + std::to_string(size_bytes) + " bytes", "shmem_malloc failed",
                "set SHMEM_SYMMETRIC_HEAP_SIZE (Open MPI) or SHMEM_SYMMETRIC_SIZE to twice that");
}

const char* OpenshmemBootstrap::to_string(Kind kind) {
  switch (kind) {
  case Kind::allgather:
    return "allgather";
  case Kind::alltoall:
    return "alltoall";
  case Kind::barrier:
    return "barrier";
  case Kind::broadcast:
    return "broadcast";
  }
  return "an unknown call";
}

std::byte* OpenshmemBootstrap::slot(int from) const {
  return shared_->slot(round_, from);
}

std::size_t OpenshmemBootstrap::payload_limit_bytes() const {
  return shared_->slot_bytes - sizeof(Header);
}

void OpenshmemBootstrap::run_round(const Round& round, const Deadline& deadline) {
  ++round_;
  const char* step = to_string(static_cast<Kind>(round.header.kind));
  put_frames(round, step, deadline);
  wait_for_frames(step, deadline);
  check_headers(round.header);
}

void OpenshmemBootstrap::put_frames(const Round& round, const char* step,
                                    const Deadline& deadline) {
  // The frames are copied, because a put that hangs outlives the caller's buffers.
  const std::size_t frame_bytes = sizeof(Header) + round.payload_bytes;
  const std::size_t frames = round.stride_bytes > 0 ? ranks() : 1;
  auto bytes = std::make_shared<std::vector<std::byte>>(frame_bytes * frames);
  for (std::size_t frame = 0; frame < frames; ++frame) {
    std::byte* at = bytes->data() + frame * frame_bytes;
    copy_bytes(at, &round.header, sizeof(Header));
    copy_bytes(at + sizeof(Header), round.payload + frame * round.stride_bytes,
               round.payload_bytes);
  }
  const auto put = [shared = shared_, bytes, frame_bytes, frames, number = round_] {
    const auto frame_for = [&](int pe) {
      return bytes->data() + (frames > 1 ? static_cast<std::size_t>(pe) * frame_bytes : 0);
    };
    std::byte* slot = shared->slot(number, shared->me);
    std::copy_n(frame_for(shared->me), frame_bytes, slot);
    // Each PE begins with its successor, so that they do not all put to the same one.
    for (int next = 1; next < shared->n_pes; ++next) {
      const int pe = (shared->me + next) % shared->n_pes;
      shared->shmem.putmem(slot, frame_for(pe), frame_bytes, pe);
    }
    shared->shmem.fence();
    std::uint64_t& flag = shared->flag(number, shared->me);
    std::atomic_ref(flag).store(number, std::memory_order_release);
    for (int next = 1; next < shared->n_pes; ++next)
      shared->shmem.uint64_p(&flag, number, (shared->me + next) % shared->n_pes);
    shared->shmem.quiet();
  };
  blocking_.run(step, put, deadline, health(), [this] { return first_missing(); });
}

void OpenshmemBootstrap::wait_for_frames(const char* step, const Deadline& deadline) {
  const auto poll = [shared = shared_, number = round_] {
    const Deadline end = Deadline::after(polling_span);
    Backoff backoff(library_backoff);
    for (int from = 0; from < shared->n_pes && !end.passed();) {
      if (load_flag(shared->flag(number, from)) == number) {
        ++from;
        continue;
      }
      shared->shmem.progress(); // with some transports a put needs progress at its target
      backoff.pause();
    }
  };
  for (int missing = first_missing(); missing >= 0; missing = first_missing()) {
    health().waiting_for(missing);
    if (deadline.passed())
      health().give_up(step, missing);
    blocking_.run(step, poll, Deadline::after(abort_span + polling_span), health());
  }
  health().waiting_for(-1);
}

int OpenshmemBootstrap::first_missing() const {
  for (int from = 0; from < size(); ++from)
    if (load_flag(shared_->flag(round_, from)) != round_)
      return from;
  return -1;
}

void OpenshmemBootstrap::check_headers(const Header& local) const {
  const auto words = [](const Header& header) {
    return std::string(to_string(static_cast<Kind>(header.kind))) + " of " +
           std::to_string(header.bytes) + " bytes" +
           (static_cast<Kind>(header.kind) == Kind::broadcast
                ? " from PE " + std::to_string(header.root)
                : "");
  };
  for (int from = 0; from < size(); ++from) {
    Header remote;
    copy_bytes(&remote, slot(from), sizeof remote);
    if (remote.kind != local.kind || remote.bytes != local.bytes || remote.root != local.root)
      throw Error(ExitCode::unavailable, "bootstrap openshmem", "continue",
                  "PE " + std::to_string(from) + " is out of step: it calls " + words(remote) +
                      ", and this PE calls " + words(local),
                  "run the same program and version on all PEs");
  }
}

void OpenshmemBootstrap::allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                                   const Deadline& deadline) {
  for_each_chunk(bytes_per_rank, payload_limit_bytes(), [&](std::size_t offset, std::size_t bytes) {
    run_round(
        {.header = {.kind = static_cast<std::uint64_t>(Kind::allgather), .bytes = bytes_per_rank},
         .payload = static_cast<const std::byte*>(send) + offset,
         .payload_bytes = bytes},
        deadline);
    for (int from = 0; from < size(); ++from)
      copy_bytes(static_cast<std::byte*>(receive) +
                     static_cast<std::size_t>(from) * bytes_per_rank + offset,
                 payload_from(from), bytes);
  });
}

void OpenshmemBootstrap::alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                                  const Deadline& deadline) {
  for_each_chunk(bytes_per_rank, payload_limit_bytes(), [&](std::size_t offset, std::size_t bytes) {
    run_round(
        {.header = {.kind = static_cast<std::uint64_t>(Kind::alltoall), .bytes = bytes_per_rank},
         .payload = static_cast<const std::byte*>(send) + offset,
         .payload_bytes = bytes,
         .stride_bytes = bytes_per_rank},
        deadline);
    for (int from = 0; from < size(); ++from)
      copy_bytes(static_cast<std::byte*>(receive) +
                     static_cast<std::size_t>(from) * bytes_per_rank + offset,
                 payload_from(from), bytes);
  });
}

void OpenshmemBootstrap::barrier(const Deadline& deadline) {
  run_round({.header = {.kind = static_cast<std::uint64_t>(Kind::barrier)}}, deadline);
}

void OpenshmemBootstrap::broadcast(void* data, std::size_t size_bytes, int root,
                                   const Deadline& deadline) {
  for_each_chunk(size_bytes, payload_limit_bytes(), [&](std::size_t offset, std::size_t bytes) {
    std::byte* chunk = static_cast<std::byte*>(data) + offset;
    run_round({.header = {.kind = static_cast<std::uint64_t>(Kind::broadcast),
                          .bytes = size_bytes,
                          .root = static_cast<std::uint64_t>(root)},
               .payload = chunk,
               .payload_bytes = rank() == root ? bytes : 0},
              deadline);
    if (rank() != root)
      copy_bytes(chunk, payload_from(root), bytes);
  });
}

void OpenshmemBootstrap::abort(ExitCode code, const std::string& message) noexcept {
  if (blocking_.abandoned())
    return; // the thread hangs in a call: OpenSHMEM cannot be asked
  log(LogLevel::info, "bootstrap", "shmem_global_exit: " + message);
  abandon_openshmem();
  try {
    blocking_.run(
        "shmem_global_exit",
        [shared = shared_, code] { shared->shmem.global_exit(static_cast<int>(code)); },
        Deadline::after(abort_span), health());
  } catch (const std::exception&) {
    return; // the job's first failure is known already; the caller ends this process
  }
}

void OpenshmemBootstrap::finish(const Deadline& deadline) {
  barrier(deadline);
  const auto leave = [shared = shared_, finalise = own_initialisation_] {
    shared->shmem.free(shared->memory);
    if (finalise)
      shared->shmem.finalize();
  };
  blocking_.run("shmem_finalize", leave, deadline, health());
  finished_ = true;
}

std::unique_ptr<Bootstrap> open_openshmem(BootstrapRequest& request, const Deadline& deadline) {
  OpenshmemBootstrap::Arguments arguments;
  arguments.library = request.options->text("OPENSHMEM_LIBRARY");
  auto bootstrap = std::make_unique<OpenshmemBootstrap>(arguments, deadline);
  const long long launched = launched_size(request.environment);
  if (bootstrap->size() == 1 && launched > 1)
    throw Error(ExitCode::unavailable, "OpenSHMEM", "use",
                launcher_text(request.environment) + " started " + std::to_string(launched) +
                    " processes, but OpenSHMEM sees one: it does not support that launcher",
                "start the job with oshrun, or set SHMEMCTL_BOOTSTRAP=auto");
  return bootstrap;
}

} // namespace shmemctl
