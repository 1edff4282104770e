#include "src/instruments/inspect/activity.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

/// Whether the name, as in /proc/PID/stat, is that of a compiler, linker or build tool.
bool is_compiler(std::string_view name) {
  static const std::set<std::string_view> names = {
      "nvcc",    "cicc",  "ptxas",   "fatbinary",  "nvlink", "cudafe++", "ninja",
      "cc1plus", "hipcc", "clang++", "amdclang++", "ld.lld", "nvrtc"};
  return names.count(name) != 0;
}

/// The wait of the first thread that is not runnable, which stands for the process.
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

constexpr int max_local_ranks = 4096;

constexpr const char* children_of = "children of PID ";

std::string job_of(const Process& process) {
  for (const char* name :
       {"SLURM_JOB_ID", "PMIX_NAMESPACE", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID"})
    if (const std::string id = variable(process, name); !id.empty() && id != "none")
      return std::string(name) + " " + id;
  if (const std::string port = variable(process, "MASTER_PORT"); !port.empty())
    return "MASTER_ADDR " + variable(process, "MASTER_ADDR") + ":" + port;
  return children_of + std::to_string(process.stat.parent);
}

std::optional<int> local_number(const Process& process, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto number = parse_integer(variable(process, name));
        number && *number >= 0 && *number < max_local_ranks)
      return static_cast<int>(*number);
  return std::nullopt;
}

std::string named(const JobMember& member) {
  return fmt::format("rank {}, PID {} ({}){},", member.rank, member.pid, member.program,
                     member.host.empty() ? "" : " on " + member.host);
}

std::string why(const JobMember& member) {
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

using Members = std::vector<const JobMember*>;

Members those(const Members& members, Doing doing) {
  Members found;
  std::copy_if(members.begin(), members.end(), std::back_inserter(found),
               [doing](const JobMember* member) { return member->activity.doing == doing; });
  return found;
}

/// The local ranks that are missing on a host: "3, 5", "3 on node7". A missing host is not
/// detected, because inspect may run on only some of a job's hosts.
std::string missing_ranks(const Members& members) {
  // by host: the local ranks that are present, and the expected number
  std::map<std::string, std::pair<std::set<int>, int>> hosts;
  for (const JobMember* member : members) {
    std::pair<std::set<int>, int>& host = hosts[member->host];
    if (member->local_rank)
      host.first.insert(*member->local_rank);
    host.second = std::max(host.second, member->local_size.value_or(0));
  }
  std::vector<std::string> missing;
  for (const auto& host : hosts)
    for (int rank = 0; !host.second.first.empty() && rank < host.second.second; ++rank)
      if (host.second.first.count(rank) == 0)
        missing.push_back(std::to_string(rank) + (host.first.empty() ? "" : " on " + host.first));
  return join(missing, ", ");
}

/// Makes this member the one that the verdict names.
void await(JobVerdict& job, const JobMember& member) {
  job.awaited = member.pid;
  job.awaited_rank = member.rank;
  job.awaited_host = member.host;
}

constexpr unsigned busy_percent = 90, idle_percent = 10;

bool has_busy_gpu(const JobMember* member) {
  return member->activity.gpu_busy_percent.value_or(0) >= busy_percent;
}

/// @param sampled whether the driver has samples of other ranks. Then a rank without a sample has
///                not run a kernel lately
bool has_idle_gpu(const JobMember* member, bool sampled) {
  const Activity& activity = member->activity;
  return activity.gpu_busy_percent ? *activity.gpu_busy_percent <= idle_percent
                                   : sampled && activity.gpu_without_sample;
}

bool any_sample(const Members& members) {
  return std::any_of(members.begin(), members.end(), [](const JobMember* member) {
    return member->activity.gpu_busy_percent.has_value();
  });
}

void guess(JobVerdict& job, const JobMember& awaited, std::string verdict) {
  job.verdict = std::move(verdict);
  await(job, awaited);
  job.guess = true;
}

/// The other of two members; nullptr if there are not exactly two.
const JobMember* other_of_two(const Members& members, const JobMember* one) {
  return members.size() != 2 ? nullptr : members[members.front() == one ? 1 : 0];
}

/// Judges by the GPUs, because ranks that wait in a kernel keep their GPU busy, which their CPUs do
/// not show. Returns whether it has set a verdict.
bool judge_by_gpus(JobVerdict& job, const Members& members) {
  const bool sampled = any_sample(members);
  const auto busy = std::count_if(members.begin(), members.end(), has_busy_gpu);
  const auto idle =
      std::find_if(members.begin(), members.end(),
                   [sampled](const JobMember* member) { return has_idle_gpu(member, sampled); });
  const auto others = static_cast<std::ptrdiff_t>(members.size()) - 1;
  if (busy == others && idle != members.end()) {
    const std::optional<unsigned> percent = (*idle)->activity.gpu_busy_percent;
    const std::string that_one =
        fmt::format("{} {} and its GPU is idle ({})", named(**idle), why(**idle),
                    percent ? fmt::format("{}%", *percent) : "no sample of its kernels");
    const JobMember* other = other_of_two(members, *idle);
    // Two ranks that take turns, like stages of a pipeline, look the same for a moment.
    guess(job, **idle,
          other != nullptr
              ? fmt::format("{}, while kernels of rank {} run: perhaps rank {} waits for it",
                            that_one, other->rank, other->rank)
              : fmt::format("{}, while kernels of the {} others run: probably they wait for it",
                            that_one, others));
    return true;
  }
  const bool nothing_moves =
      std::all_of(members.begin(), members.end(), [](const JobMember* member) {
        return has_busy_gpu(member) && member->activity.moves_data == std::optional(false);
      });
  if (nothing_moves)
    job.verdict =
        "kernels of all run, and nothing moves over their NICs and NVLinks: they wait for "
        "something that was not looked at, or for each other";
  return nothing_moves;
}

/// Whether the process sleeps in a call that waits for messages or connections. select() is not
/// included, because interpreters use it to sleep.
bool sleeps_for_a_message(const Activity& activity) {
  static const std::set<std::string_view> calls = {
      "poll",    "ppoll",    "epoll_wait", "epoll_pwait", "epoll_pwait2",  "recvfrom",
      "recvmsg", "recvmmsg", "accept",     "accept4",     "io_uring_enter"};
  // Functions of the kernel, for when the number of the call is not readable.
  static const std::set<std::string_view> functions = {
      "ep_poll",      "do_poll",    "do_sys_poll",     "poll_schedule_timeout",
      "sk_wait_data", "wait_woken", "inet_csk_accept", "__skb_wait_for_more_packets"};
  const std::string_view wait = activity.wait;
  const std::string_view first = wait.substr(0, wait.find(' '));
  return calls.count(first) != 0 || functions.count(first) != 0;
}

/// Judges two ranks of which one sleeps, with no busy GPU, while the other runs. No verdict if the
/// sleeping rank waits for a message and the other has no busy GPU: it may wait for the other one.
/// Returns whether it has set a verdict.
bool judge_pair(JobVerdict& job, const Members& waiting, const Members& running) {
  if (waiting.size() != 1 || running.size() != 1)
    return false;
  const JobMember &asleep = *waiting.front(), &awake = *running.front();
  const bool in_kernels = has_busy_gpu(&awake);
  if (asleep.activity.gpu_busy_percent.value_or(0) > idle_percent ||
      (sleeps_for_a_message(asleep.activity) && !in_kernels))
    return false;
  guess(job, asleep,
        fmt::format("{} {}, and rank {} {}: perhaps rank {} waits for it", named(asleep),
                    why(asleep), awake.rank,
                    in_kernels ? "has kernels that run" : "runs, as processes do that poll",
                    awake.rank));
  return true;
}

void judge(JobVerdict& job, const Members& members, bool whole) {
  // States that certainly block the others are checked first.
  for (const Doing doing : {Doing::ended, Doing::stopped, Doing::compiles, Doing::blocked}) {
    const Members found = those(members, doing);
    if (found.empty() || found.size() == members.size())
      continue;
    job.verdict =
        fmt::format("{} {}{}: the others wait for it", named(*found.front()), why(*found.front()),
                    found.size() > 1 ? fmt::format(" (and {} more)", found.size() - 1) : "");
    await(job, *found.front());
    return;
  }
  if (const std::string missing = whole ? missing_ranks(members) : ""; !missing.empty()) {
    job.verdict = fmt::format("local rank {} is not among the processes that have loaded a "
                              "communication library",
                              missing);
    job.rank_missing = true;
    return;
  }
  if (judge_by_gpus(job, members))
    return;
  const Members waiting = those(members, Doing::waits), running = those(members, Doing::runs);
  if (members.size() == 2 && judge_pair(job, waiting, running))
    return;
  const Members& odd = waiting.size() == 1 ? waiting : running;
  if (members.size() > 2 && odd.size() == 1 && waiting.size() + running.size() == members.size()) {
    guess(job, *odd.front(),
          fmt::format("{} {} and the {} others {}: probably they wait for it", named(*odd.front()),
                      why(*odd.front()), members.size() - 1,
                      &odd == &waiting ? "run, as processes do that poll" : "sleep"));
    return;
  }
  job.verdict = members.size() == running.size()
                    ? "all run: they compute, or all poll for something that was not looked at"
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
  // A child may have a lower PID than its parent, so repeat until nothing is added.
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

void serialize(Archive& archive, JobMember& member) {
  Activity& activity = member.activity;
  archive(member.host, member.job, member.pid, member.program, member.rank, member.local_rank,
          member.local_size);
  archive.choice(activity.doing, Doing::ended);
  archive(activity.wait, activity.cpus, activity.compilers, activity.gpu_busy_percent,
          activity.gpu_without_sample, activity.moves_data);
  for (const std::optional<int>& number : {member.local_rank, member.local_size})
    archive.require(!number || (*number >= 0 && *number < max_local_ranks));
}

std::vector<JobMember> job_members(const std::vector<Member>& members) {
  std::map<int, const Member*> by_pid;
  for (const Member& member : members)
    by_pid.emplace(member.process->pid, &member);
  std::vector<JobMember> ranks;
  for (const Member& member : members) {
    if (!member.rank)
      continue;
    const Process& process = *member.process;
    const auto parent = by_pid.find(process.stat.parent);
    if (parent != by_pid.end() && parent->second->rank &&
        parent->second->rank->number == member.rank->number)
      continue;
    JobMember rank;
    rank.job = job_of(process);
    rank.pid = process.pid;
    rank.program = process.stat.name;
    rank.rank = member.rank->number;
    rank.local_rank = local_number(
        process, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
    rank.local_size = local_number(
        process, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
    rank.activity = member.activity;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

std::vector<JobVerdict> judge_jobs(const std::vector<JobMember>& members, bool whole) {
  // PIDs of different hosts are not comparable.
  std::map<std::pair<std::string, std::string>, Members> jobs;
  for (const JobMember& member : members)
    jobs[{member.job, starts_with(member.job, children_of) ? member.host : std::string()}]
        .push_back(&member);
  std::vector<JobVerdict> verdicts;
  for (const auto& named_job : jobs) {
    const Members& ranks = named_job.second;
    if (ranks.size() < 2)
      continue;
    JobVerdict job;
    job.job = named_job.first.first;
    for (const JobMember* member : ranks) {
      job.pids.push_back(member->pid);
      job.places.emplace_back(member->host, member->pid);
    }
    judge(job, ranks, whole);
    verdicts.push_back(std::move(job));
  }
  return verdicts;
}

std::vector<JobVerdict> judge_jobs(const std::vector<Member>& members, bool whole) {
  return judge_jobs(job_members(members), whole);
}

Findings job_findings(const std::vector<JobVerdict>& jobs) {
  Findings findings;
  for (const JobVerdict& job : jobs) {
    const bool missing = job.rank_missing;
    if (!job.awaited && !missing)
      continue;
    const std::string pid = std::to_string(job.awaited.value_or(0)),
                      place = job.awaited_host.empty() ? "" : " on " + job.awaited_host;
    findings.push_back(
        {"rank-awaited", job.guess ? Severity::info : Severity::warning, job.job, job.verdict,
         missing ? "look for that process: its log, dmesg, or why it has not loaded its libraries"
         : job.verdict.find("compiles") != std::string::npos
             ? "wait until it has compiled, raise the timeout of the others, or compile before the "
               "job starts"
             : "look at that process: py-spy dump --pid " + pid + ", or gdb -p " + pid + place});
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
