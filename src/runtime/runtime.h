// The runtime of one PE: everything that init sets up, in one object.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/bootstrap/select.h"
#include "src/memory/symmetric_heap.h"
#include "src/runtime/collectives.h"
#include "src/runtime/identity.h"
#include "src/runtime/lifeline.h"
#include "src/runtime/phases.h"
#include "src/runtime/rma.h"
#include "src/runtime/state.h"
#include "src/runtime/survivors.h"
#include "src/runtime/teams.h"
#include "src/topo/mapping/mapping.h"
#include "src/topo/node.h"

namespace shmemctl {

class Buffers;
class PeGpu;
struct RemoteChoice;
class WordAtomics;

/// Whether a job uses GPUs: not, where all its PEs have one, or it is an Error where they have not.
/// The same on all PEs.
enum class GpuUse { none, if_there, required };

struct RuntimeRequest {
  const Options* options = nullptr; ///< must outlive the runtime
  Environment environment;
  BootstrapRequest bootstrap;     ///< its options and environment are filled in from the above
  bool share_static_data = false; ///< OpenSHMEM programs: globals are symmetric
  /// A pair that no transport reaches fails the bring-up; otherwise it is only in reach().
  bool require_reach = true;
  GpuUse gpu = GpuUse::none;
  int gpu_device = -1; ///< CUDA's number of this PE's device; -1: as GPUS says, or by turns
  /// For tests, whose GPUs run no kernels; nullptr is the kernel.
  std::shared_ptr<WordAtomics> word_atomics = nullptr;
  /// For tests; empty is the function of that name.
  std::function<std::unique_ptr<Transport>(const std::string& name, const TransportSetup& setup)>
      make_transport;
  /// Before each phase (for a watchdog or a progress line).
  std::function<void(const std::string&)> announce;
  /// When the lifeline stands, and with nullptr before it goes: for who has to tell the others why
  /// this process ends, whatever it is doing. On the thread that owns the runtime.
  std::function<void(Lifeline*)> lifeline_changed;
  /// Once it is known where all PEs are, before anything is set up between them.
  std::function<void(const Placement&)> hosts_known;
};

/// One transport and its reach from this PE to every PE.
struct TransportEntry {
  std::unique_ptr<Transport> transport;
  std::vector<Reach> reach;      ///< by PE
  std::vector<std::string> info; ///< by PE: what its local_info() gave
};

class Proxy;

class Runtime {
public:
  /// Collective: goes through the phases. Throws Error after undoing all; the message names the PE,
  /// host and phase that failed first, wherever that was.
  explicit Runtime(RuntimeRequest request);
  /// Without finish(): leaves at once, without waiting for anybody (others see a lost PE unless
  /// fail() was called).
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Collective: barrier, goodbye, undo of all phases in reverse. Throws Error.
  void finish();
  /// Tells the others that this PE fails; the caller then lets the runtime go.
  void fail(const Error& error) noexcept;
  /// Tells the launcher, if it wants to be told, that this process ends by its own will without
  /// finish(); then it has to end. At most 2 s. Thread safe.
  void leave() noexcept;

  int pe() const;
  int n_pes() const;
  const Placement& placement() const;
  const Bootstrap& bootstrap() const;
  const std::string& launcher() const; ///< "run", "mpirun", "srun", "none", ...
  const std::vector<PhaseTime>& phase_times() const;
  const std::vector<TransportEntry>& transports() const;
  /// By PE: index into transports() of the one in use; -1 is none.
  const std::vector<int>& way_to() const;
  /// How the transport beyond the node was found.
  const RemoteChoice& remote_choice() const;
  const State& state() const; ///< the published mirror
  Lifeline& lifeline();

  Rma& rma();
  Teams& teams();
  Collectives& collectives();
  SymmetricHeap& heap();
  /// The thread that carries out requests of others (docs/explanation/proxy.md); started by the
  /// first call, which throws Error if that fails. finish() drains and stops it. Thread safe.
  Proxy& proxy();
  /// This PE's GPU; nullptr if the job has none: see no_gpu_reason().
  PeGpu* gpu();
  /// One clause; "" if there is a GPU.
  const std::string& no_gpu_reason() const;
  /// Memory that the heap does not own.
  Buffers& buffers();
  /// heap().allocate()/free() with the barrier that OpenSHMEM asks for.
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 64);
  void free(void* address);

  /// The team of PEs with my local rank, one of each node (INIT_MODE=low-latency); invalid_team
  /// otherwise.
  TeamId rail_team() const;
  /// Which NICs this PE was given, by the rules that `topo` shows; empty on a node without.
  const Mapping& nics() const;
  const Node& node() const;

  /// Gathers one text of each PE at every PE (reports).
  std::vector<std::string> gather_text(const std::string& text);
  /// INIT_MODE=per-local-rank: this world is one of several of the job that was launched, whose
  /// bootstrap is bootstrap(). Its PE 0 speaks for all of them.
  bool is_part_of_job() const;
  /// As gather_text(), of all PEs of that job, by their rank in it.
  std::vector<std::string> gather_text_of_job(const std::string& text);

  /// Collective, once: from now on the job goes on without PEs that die, that are stopped or that
  /// do not come, but for PE 0 (src/runtime/survivors.h). What still goes, and leaves them out:
  /// meet(), gather_text(), allocate(), free(), finish(); no other collective does. Throws Error
  /// (usage) for more than Survivors::most_pes PEs.
  void allow_loss();
  /// Collective: a barrier of all PEs that are left, with all that was put complete.
  void meet();
  /// Whom the job has lost, on PE 0; nobody without allow_loss().
  std::vector<LostPe> lost() const;
  /// Whether it has lost that one, or anybody; the same on all PEs behind a meeting.
  bool is_lost(int pe) const;
  bool anybody_lost() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
