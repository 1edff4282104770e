// The runtime of one PE: everything that initialisation sets up, in one object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/abi/device_state.h"
#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/collectives.h"
#include "src/runtime/degraded_job.h"
#include "src/runtime/failure_detector.h"
#include "src/runtime/identity.h"
#include "src/runtime/memory/symmetric_heap.h"
#include "src/runtime/phases.h"
#include "src/runtime/rma.h"
#include "src/runtime/teams.h"

namespace shmemctl {

class Buffers;
class PeGpu;
struct RemoteChoice;
class WordAtomics;

/// Whether a job uses GPUs: not, where all its PEs have one, or it is an Error where they have not.
/// The same on all PEs.
enum class GpuUse { none, if_available, required };

struct RuntimeRequest {
  const Options* options = nullptr; ///< must outlive the runtime
  Environment environment;
  BootstrapRequest bootstrap;     ///< its options and environment are filled in from the above
  bool share_static_data = false; ///< OpenSHMEM programs: globals are symmetric
  /// true: a pair of PEs that no transport reaches fails the bring-up; false: it is only reported
  /// in reach().
  bool require_reach = true;
  GpuUse gpu = GpuUse::none;
  /// Kernels of this binary will be launched: with GPUs whose driver runs none of them, the
  /// bring-up fails. The same on all PEs.
  bool kernels = false;
  int gpu_device = -1; ///< CUDA's number of this PE's device; -1: as GPUS says, or by turns
  /// The GPU's heap, if it is mapped in chunks, may grow beyond the default of SYMMETRIC_SIZE, and
  /// beyond NVSHMEM's variable of that name (programs that were written for NVSHMEM).
  bool gpu_heap_grows = false;
  /// For tests, whose GPUs run no kernels; nullptr is the kernel.
  std::shared_ptr<WordAtomics> word_atomics = nullptr;
  /// For tests; empty is the function of that name.
  std::function<std::unique_ptr<Transport>(const std::string& name, const TransportSetup& setup)>
      make_transport;
  /// Before each phase (for a watchdog or a progress line).
  std::function<void(const std::string&)> announce;
  /// Called with the failure detector once it runs, and with nullptr before it is destroyed: for
  /// code that must tell the other PEs why this process exits. Runs on the thread that owns the
  /// runtime.
  std::function<void(FailureDetector*)> failure_detector_changed;
  /// Called once it is known where all PEs are, before anything is set up between them.
  std::function<void(const Placement&)> hosts_known;
  /// The same on all PEs of a job whose outputs end up in one place: one PE prints what ends the
  /// job, by this function (on any thread), before the Error is thrown, which Error::printed() then
  /// tells. Empty: the caller prints, on every PE.
  std::function<void(const Error&)> print_error;
  /// This PE has failed before its bring-up: it only joins to notify the others, and throws this
  /// error. They wait for it no longer than it takes to start the failure detector.
  std::optional<Error> problem;
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
  /// Collective: runs the phases. Throws Error after undoing all; the message names the PE, host
  /// and phase of the job's first failure, wherever that happened.
  explicit Runtime(RuntimeRequest request);
  /// Without finish(): leaves at once, without waiting for other PEs (others see a lost PE unless
  /// fail() was called).
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Collective: barrier, goodbye, undo of all phases in reverse. Throws Error.
  void finish();
  /// Notifies the other PEs that this PE fails; the caller then destroys the runtime.
  /// @return whether a PE has printed the job's failure (RuntimeRequest::print_error), so that the
  ///         caller need not print `error`
  bool fail(const Error& error) noexcept;
  /// Tells the launcher, if it has an interface for it, that this process exits deliberately
  /// without finish(); the process must exit afterwards. Takes at most 2 s. Thread safe.
  void leave() noexcept;

  int pe() const;
  int n_pes() const;
  const Placement& placement() const;
  const Bootstrap& bootstrap() const;
  const std::string& launcher() const; ///< "run", "mpirun", "srun", "none", ...
  const std::vector<PhaseTime>& phase_times() const;
  const std::vector<TransportEntry>& transports() const;
  /// By PE: index into transports() of the one in use; -1: none.
  const std::vector<int>& transport_index_by_pe() const;
  /// How the transport beyond the node was found.
  const RemoteChoice& remote_choice() const;
  const State& state() const; ///< the published mirror
  /// What transports of this job are made with; its options and health live as long as the runtime.
  TransportSetup transport_setup();
  FailureDetector& failure_detector();

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
  /// The same on PE 0; nothing elsewhere. For texts that grow with the number of PEs.
  std::vector<std::string> gather_text_on_first(const std::string& text);
  /// The same of a value that an archive writes; not after allow_loss(), since a lost PE has none.
  /// Throws malformed_message().
  /// @param what it is, for that: "interference"
  template <class T>
  std::vector<T> gather_values(const T& own, const std::string& what) {
    const std::vector<std::string> messages = gather_text(to_bytes(own));
    std::vector<T> values;
    for (std::size_t pe = 0; pe < messages.size(); ++pe)
      values.push_back(value_of_pe<T>(messages[pe], pe, what));
    return values;
  }
  /// INIT_MODE=per-local-rank: this world is one of several of the job that was launched, whose
  /// bootstrap is bootstrap(). Its PE 0 speaks for all of them.
  bool is_part_of_job() const;
  /// As gather_text(), of all PEs of that job, by their rank in it.
  std::vector<std::string> gather_text_of_job(const std::string& text);

  /// Collective, once: from now on the job continues without PEs that die, are stopped or do not
  /// arrive, except PE 0 (src/runtime/degraded_job.h). Only barrier(), gather_text(),
  /// gather_text_on_first(), allocate(), free() and finish() still work, among the survivors; no
  /// other collective does. Throws Error (usage) for more than DegradedJob::max_pes PEs.
  void allow_loss();
  /// Collective: a barrier of all PEs that are left, with all that was put complete.
  void barrier();
  /// The PEs that the job has lost, on PE 0; empty without allow_loss().
  std::vector<LostPe> lost() const;
  /// Whether the job has lost that PE, or any; the same on all PEs after barrier().
  bool is_lost(int pe) const;
  bool any_pe_lost() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether a launcher started this process, so that the outputs of all PEs end up in one place. Of
/// a job that was started by hand each PE may have a terminal of its own, and prints by itself.
bool has_common_output(const Environment& environment);

/// For a process that fails before its bring-up, where the others may fail alike or wait for it:
/// joins the job, in steps of at most 10 s each, only to announce the error. At once false in a job
/// of one, and in one without has_common_output().
/// @param command_line as for Options; an invalid bootstrap is replaced by the automatic one
/// @param print_error as in RuntimeRequest
/// @return whether a PE has printed this error
bool share_problem(const Environment& environment, std::map<std::string, std::string> command_line,
                   const Error& problem, const ErrorPrinter& print_error);

/// Bytes that this PE's transports have moved so far, as they count them: one element for each port
/// that any of them uses, also if nothing went through it.
std::vector<NicTraffic> traffic_of(Runtime& runtime);

/// The difference since `before`.
std::vector<NicTraffic> traffic_since(const std::vector<NicTraffic>& before,
                                      std::vector<NicTraffic> now);

} // namespace shmemctl
