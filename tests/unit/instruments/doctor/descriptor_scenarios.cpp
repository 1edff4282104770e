#include <cerrno>

#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

std::string step_with_error(const std::string& step, int error) {
  return step + "\t" + std::to_string(error);
}

Scenario of_pidfd(const std::string& name, const std::string& answer,
                  const doctor::PassingRights& rights, CheckStatus status,
                  const std::string& evidence, const std::string& fix) {
  return {"pidfd-getfd", name, {}, status, evidence, fix, [=] {
            return doctor::judge_pidfd_getfd(answer, rights);
          }};
}

} // namespace

Scenarios descriptor_scenarios() {
  const std::string message = "descriptor-passing";
  const std::string refused = step_with_error("pidfd_getfd", EPERM);
  doctor::PassingRights plain, yama, filtered, both, traced;
  plain.newer_kernel = "install a kernel";
  yama.ptrace_scope = "1";
  filtered.seccomp = filtered.container = true;
  both = filtered;
  both.ptrace_scope = "1";
  traced.ptrace_scope = "1";
  traced.may_trace = true;
  return {
      of_pidfd("allowed", "ok", yama, pass, "pidfd_getfd between two children", ""),
      of_pidfd("refused by Yama", refused, yama, warning,
               "pidfd_getfd: Operation not permitted; /proc/sys/kernel/yama/ptrace_scope: 1",
               "sysctl -w kernel.yama.ptrace_scope=0"),
      of_pidfd("refused by a filter", refused, filtered, warning, "Seccomp 2",
               "--security-opt seccomp=unconfined"),
      of_pidfd("refused by Yama or a filter", refused, both, warning, "Seccomp 2",
               "docker run --cap-add=SYS_PTRACE"),
      of_pidfd("a filter that hides the call", step_with_error("pidfd_getfd", ENOSYS), filtered,
               warning, "Function not implemented", "--security-opt seccomp=unconfined"),
      of_pidfd("an older kernel", step_with_error("pidfd_open", ENOSYS), plain, warning,
               "pidfd_open: Function not implemented", "install a kernel"),
      of_pidfd("refused by another module", refused, traced, warning, "Operation not permitted",
               "apparmor"),
      of_pidfd("another file than was sent", step_with_error("read of the descriptor", 0), plain,
               warning, "not what the other process sent", "apparmor"),
      of_pidfd("no memory to pass", step_with_error("memfd_create", ENOSYS), filtered, skipped,
               "two children", ""),
      of_pidfd("no child", step_with_error("fork", EAGAIN), yama, skipped, "two children",
               "ulimit -u"),
      of_pidfd("no descriptor left", step_with_error("pidfd_getfd", EMFILE), yama, skipped,
               "two children", "ulimit -n"),
      {"pidfd-getfd", "of a copy", [](Machine&) {}, skipped, "", ""},

      {message,
       "done",
       {},
       pass,
       "SCM_RIGHTS between two children",
       "",
       [plain] { return doctor::judge_descriptor_passing("ok", plain); }},
      {message,
       "refused in a container",
       {},
       fail,
       "recvmsg: Permission denied",
       "apparmor=unconfined",
       [filtered] {
         return doctor::judge_descriptor_passing(step_with_error("recvmsg", EACCES), filtered);
       }},
      {message,
       "refused on the host",
       {},
       fail,
       "recvmsg: the message has no descriptor",
       "ausearch",
       [plain] { return doctor::judge_descriptor_passing(step_with_error("recvmsg", 0), plain); }},
      {message,
       "refused to the sender",
       {},
       fail,
       "sendmsg: Operation not permitted",
       "ausearch",
       [plain] {
         return doctor::judge_descriptor_passing(step_with_error("sendmsg", EPERM), plain);
       }},
      {message,
       "no socket pair",
       {},
       skipped,
       "two children",
       "ulimit -n",
       [plain] {
         return doctor::judge_descriptor_passing(step_with_error("socketpair", EMFILE), plain);
       }},
      {message, "of a copy", [](Machine&) {}, skipped, "", ""},
  };
}

} // namespace shmemctl
