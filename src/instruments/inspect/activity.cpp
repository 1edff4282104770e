#include "src/instruments/inspect/activity.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

/// Names as /proc/PID/stat has them.
bool is_compiler(std::string_view name) {
  static const std::set<std::string_view> names = {
      "nvcc",    "cicc",  "ptxas",   "fatbinary",  "nvlink", "cudafe++", "ninja",
      "cc1plus", "hipcc", "clang++", "amdclang++", "ld.lld", "nvrtc"};
  return names.count(name) != 0;
}

/// Of the thread that the process is known by: the first.
std::string wait_of(const Process& process) {
  for (const Thread& thread : process.threads) {
    if (thread.state == 'R')
      continue;
    const std::string call =
        thread.system_call ? system_call_name(*thread.system_call) : std::string();
    if (call.empty())
      return thread.wchan;
    return thread.wchan.empty() ? call : call + " (" + thread.wchan + ")";
  }
  return {};
}

std::string variable(const Process& process, const char* name) {
  if (!process.environment)
    return {};
  const auto found = process.environment->find(name);
  return found == process.environment->end() ? std::string() : found->second;
}

std::string job_of(const Process& process) {
  for (const char* name :
       {"SLURM_JOB_ID", "PMIX_NAMESPACE", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID"})
    if (const std::string id = variable(process, name); !id.empty() && id != "none")
      return std::string(name) + " " + id;
  if (const std::string port = variable(process, "MASTER_PORT"); !port.empty())
    return "MASTER_ADDR " + variable(process, "MASTER_ADDR") + ":" + port;
  return "children of PID " + std::to_string(process.stat.parent);
}

std::optional<int> local_number(const Process& process, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto number = parse_integer(variable(process, name));
        number && *number >= 0 && *number < 4096)
      return static_cast<int>(*number);
  return std::nullopt;
}

std::string named(const Member& member) {
  const std::string process =
      fmt::format("PID {} ({})", member.process->pid, member.process->stat.name);
  return member.rank ? fmt::format("rank {}, {},", member.rank->number, process) : process;
}

std::string why(const Member& member) {
  const Activity& activity = member.activity;
  switch (activity.doing) {
  case Doing::compiles: {
    std::vector<std::string> names;
    for (const auto& compiler : activity.compilers)
      if (names.size() < 4)
        names.push_back(fmt::format("{} (PID {})", compiler.second, compiler.first));
    return "still compiles: " + join(names, ", ");
  }
  case Doing::stopped:
    return "is stopped by a signal or a debugger";
  case Doing::blocked:
    return "is blocked in the kernel" +
           (activity.wait.empty() ? std::string() : " in " + activity.wait);
  case Doing::ended:
    return "has ended, and its parent has not collected its exit status";
  case Doing::waits:
    return "sleeps" + (activity.wait.empty() ? std::string() : " in " + activity.wait);
  case Doing::runs:
    break;
  }
  return "runs on a CPU";
}

using Members = std::vector<const Member*>;

Members those(const Members& members, Doing doing) {
  Members found;
  std::copy_if(members.begin(), members.end(), std::back_inserter(found),
               [doing](const Member* member) { return member->activity.doing == doing; });
  return found;
}

/// "rank 3 is not there"
std::string missing_ranks(const Members& members) {
  std::set<int> there;
  std::optional<int> size;
  for (const Member* member : members) {
    if (const auto rank =
            local_number(*member->process, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MPI_LOCALRANKID", "SLURM_LOCALID"}))
      there.insert(*rank);
    size = local_number(*member->process,
                        {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  }
  std::vector<std::string> missing;
  for (int rank = 0; size && rank < *size; ++rank)
    if (there.count(rank) == 0)
      missing.push_back(std::to_string(rank));
  return there.empty() || missing.empty() ? std::string() : join(missing, ", ");
}

void judge(JobVerdict& job, const Members& members, bool whole) {
  // What certainly holds the others up comes first.
  for (const Doing doing : {Doing::ended, Doing::stopped, Doing::compiles, Doing::blocked}) {
    const Members found = those(members, doing);
    if (found.empty() || found.size() == members.size())
      continue;
    job.verdict =
        fmt::format("{} {}{}: the others wait for it", named(*found.front()), why(*found.front()),
                    found.size() > 1 ? fmt::format(" (and {} more)", found.size() - 1) : "");
    job.awaited = found.front()->process->pid;
    if (found.front()->rank)
      job.awaited_rank = found.front()->rank->number;
    return;
  }
  if (const std::string missing = whole ? missing_ranks(members) : ""; !missing.empty()) {
    job.verdict = fmt::format("local rank {} is not among the processes that have loaded a "
                              "communication library",
                              missing);
    return;
  }
  const Members waiting = those(members, Doing::waits), running = those(members, Doing::runs);
  const Members& odd = waiting.size() == 1 ? waiting : running;
  if (members.size() > 2 && odd.size() == 1 && waiting.size() + running.size() == members.size()) {
    job.verdict = fmt::format("{} {} and the {} others {}: probably they wait for it",
                              named(*odd.front()), why(*odd.front()), members.size() - 1,
                              &odd == &waiting ? "run, as processes do that poll" : "sleep");
    job.awaited = odd.front()->process->pid;
    if (odd.front()->rank)
      job.awaited_rank = odd.front()->rank->number;
    return;
  }
  job.verdict = members.size() == running.size()
                    ? "all run: they compute, or all poll for something outside of this node"
                : members.size() == waiting.size() ? "all sleep: they wait for something else"
                                                   : "no process stands out";
}

} // namespace

const char* to_string(Doing doing) {
  switch (doing) {
  case Doing::runs:
    return "runs";
  case Doing::compiles:
    return "compiles";
  case Doing::waits:
    return "waits";
  case Doing::blocked:
    return "blocked";
  case Doing::stopped:
    return "stopped";
  case Doing::ended:
    return "ended";
  }
  return "";
}

ProcessTable read_process_table(const Sysroot& sysroot) {
  ProcessTable table;
  for (const int pid : process_ids(sysroot))
    if (const auto stat = read_stat(sysroot, pid))
      table.emplace(pid, *stat);
  return table;
}

Activity activity_of(const Process& process, const ProcessTable& all, std::optional<double> cpus) {
  Activity activity;
  activity.cpus = cpus;
  // A child may have a lower number than its parent: until nothing is added.
  std::set<int> family = {process.pid};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, stat] : all)
      if (family.count(stat.parent) != 0 && family.insert(pid).second)
        grew = true;
  }
  for (const int pid : family)
    if (const auto child = all.find(pid); pid != process.pid && child != all.end() &&
                                          child->second.state != 'Z' &&
                                          is_compiler(child->second.name))
      activity.compilers.emplace_back(pid, child->second.name);
  const auto any = [&process](char state) {
    return process.stat.state == state ||
           std::any_of(process.threads.begin(), process.threads.end(),
                       [state](const Thread& thread) { return thread.state == state; });
  };
  constexpr double busy_cpus = 0.5;
  if (process.stat.state == 'Z' || process.stat.state == 'X')
    activity.doing = Doing::ended;
  else if (process.stat.state == 'T' || process.stat.state == 't')
    activity.doing = Doing::stopped;
  else if (!activity.compilers.empty())
    activity.doing = Doing::compiles;
  else if (cpus ? *cpus >= busy_cpus : any('R'))
    activity.doing = Doing::runs;
  else if (any('D'))
    activity.doing = Doing::blocked;
  if (activity.doing == Doing::waits || activity.doing == Doing::blocked)
    activity.wait = wait_of(process);
  return activity;
}

std::vector<JobVerdict> judge_jobs(const std::vector<Member>& members, bool whole) {
  std::map<int, const Member*> by_pid;
  for (const Member& member : members)
    by_pid.emplace(member.process->pid, &member);
  std::map<std::string, Members> jobs;
  for (const Member& member : members) {
    if (!member.rank)
      continue;
    const auto parent = by_pid.find(member.process->stat.parent);
    if (parent != by_pid.end() && parent->second->rank &&
        parent->second->rank->number == member.rank->number)
      continue;
    jobs[job_of(*member.process)].push_back(&member);
  }
  std::vector<JobVerdict> verdicts;
  for (const auto& [name, ranks] : jobs) {
    if (ranks.size() < 2)
      continue;
    JobVerdict job;
    job.job = name;
    for (const Member* member : ranks)
      job.pids.push_back(member->process->pid);
    judge(job, ranks, whole);
    verdicts.push_back(std::move(job));
  }
  return verdicts;
}

Findings job_findings(const std::vector<JobVerdict>& jobs) {
  Findings findings;
  for (const JobVerdict& job : jobs) {
    const bool missing = starts_with(job.verdict, "local rank");
    if (!job.awaited && !missing)
      continue;
    const bool guess = job.verdict.find("probably") != std::string::npos;
    const std::string pid = std::to_string(job.awaited.value_or(0));
    findings.push_back(
        {"rank-awaited", guess ? Severity::info : Severity::warning, job.job, job.verdict,
         missing ? "look for that process: its log, dmesg, or why it has not loaded its libraries"
         : job.verdict.find("compiles") != std::string::npos
             ? "wait until it has compiled, raise the timeout of the others, or compile before the "
               "job starts"
             : "look at that process: py-spy dump --pid " + pid + ", or gdb -p " + pid});
  }
  return findings;
}

std::string system_call_name(long number) {
  static const std::map<long, const char*> names = {{0, "read"},
                                                    {1, "write"},
                                                    {7, "poll"},
                                                    {16, "ioctl"},
                                                    {17, "pread64"},
                                                    {18, "pwrite64"},
                                                    {20, "writev"},
                                                    {23, "select"},
                                                    {24, "sched_yield"},
                                                    {34, "pause"},
                                                    {35, "nanosleep"},
                                                    {42, "connect"},
                                                    {43, "accept"},
                                                    {44, "sendto"},
                                                    {45, "recvfrom"},
                                                    {46, "sendmsg"},
                                                    {47, "recvmsg"},
                                                    {61, "wait4"},
                                                    {74, "fsync"},
                                                    {128, "rt_sigtimedwait"},
                                                    {130, "rt_sigsuspend"},
                                                    {202, "futex"},
                                                    {230, "clock_nanosleep"},
                                                    {232, "epoll_wait"},
                                                    {247, "waitid"},
                                                    {257, "openat"},
                                                    {270, "pselect6"},
                                                    {271, "ppoll"},
                                                    {281, "epoll_pwait"},
                                                    {288, "accept4"},
                                                    {299, "recvmmsg"},
                                                    {426, "io_uring_enter"},
                                                    {441, "epoll_pwait2"},
                                                    {449, "futex_waitv"}};
  const auto name = names.find(number);
  return name == names.end() ? "system call " + std::to_string(number) : name->second;
}

} // namespace shmemctl::inspect
