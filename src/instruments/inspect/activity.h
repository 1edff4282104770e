// Determines which processes compute, compile or wait, and which rank the other ranks of a job wait
// for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/archive.h"
#include "src/base/finding.h"
#include "src/instruments/inspect/process.h"

namespace shmemctl::inspect {

enum class Doing {
  runs,     ///< it used at least 0.5 CPUs while watched; if not watched, a thread is runnable
  compiles, ///< a descendant of the process is a compiler
  waits,    ///< none of the other states: its threads sleep most of the time
  blocked,  ///< a thread is in a system call that no signal interrupts (state D)
  stopped,  ///< by a signal or a debugger
  ended     ///< its parent has not collected its exit status
};
/// "runs", "compiles", ...
const char* to_string(Doing doing);

struct Activity {
  Doing doing = Doing::waits;
  std::string wait;           ///< "futex (futex_wait_queue)"; "" if it does not wait, or unknown
  std::optional<double> cpus; ///< average number of CPUs that it used while watched
  std::vector<std::pair<int, std::string>> compilers; ///< PID and name
  /// How busy its kernels keep the GPU on which it uses most memory, in percent; empty if unknown.
  std::optional<unsigned> gpu_busy_percent = std::nullopt;
  /// The process has a context on a GPU, but the driver does not report how busy its kernels keep
  /// that GPU.
  bool gpu_without_sample = false;
  /// Whether its NIC ports and the NVLinks of its GPU carried over 1 MB/s; empty if unknown.
  std::optional<bool> moves_data = std::nullopt;
};

/// All processes by PID, to find the descendants of a process.
using ProcessTable = std::map<int, ProcessStat>;
ProcessTable read_process_table(const Sysroot& sysroot);

/// @param cpus average number of CPUs that the process used while it was watched; empty if unknown,
/// such as on a recorded tree
Activity activity_of(const Process& process, const ProcessTable& all, std::optional<double> cpus);

/// One inspected process of this node; one without a rank belongs to no job.
struct Member {
  const Process* process = nullptr;
  std::optional<Rank> rank;
  Activity activity;
};

/// A rank of a job as a value that can be sent to another node.
struct JobMember {
  std::string host; ///< "" if only this node is inspected
  std::string job;  ///< "SLURM_JOB_ID 4711", "children of PID 12"
  int pid = 0;
  std::string program;
  int rank = 0;
  std::optional<int> local_rank, local_size; ///< from the launcher's variables
  Activity activity;
};
void serialize(Archive& archive, JobMember& member);

/// The members that have a rank. Left out is a child with the rank of its parent, such as a data
/// loader.
std::vector<JobMember> job_members(const std::vector<Member>& members);

/// A job, that is, processes that a launcher started together, and the rank that the others wait
/// for.
struct JobVerdict {
  std::string job; ///< "SLURM_JOB_ID 4711", "children of PID 12"
  std::vector<int> pids;
  std::vector<std::pair<std::string, int>> places; ///< host and PID of each
  std::string verdict;                             ///< one sentence
  std::optional<int> awaited;                      ///< PID of the rank that is waited for
  std::optional<int> awaited_rank;
  std::string awaited_host;  ///< "" if only this node is inspected
  bool rank_missing = false; ///< the verdict names a local rank that has no process here
  bool guess = false;        ///< the verdict is a guess
};

/// Judges each job of at least two ranks. Members on several hosts belong to one job if a variable
/// of the launcher says so.
/// @param whole whether `members` contains all processes of each job on these hosts, so that a gap
/// means a missing rank
std::vector<JobVerdict> judge_jobs(const std::vector<JobMember>& members, bool whole);
std::vector<JobVerdict> judge_jobs(const std::vector<Member>& members, bool whole);

/// The findings `rank-awaited`.
Findings job_findings(const std::vector<JobVerdict>& jobs);

/// The name of a system call on x86-64; "system call 999" if the number is not in the table.
std::string system_call_name(long number);

} // namespace shmemctl::inspect
