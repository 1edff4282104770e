// Checks of the kernel's log: one for each kind of message (kernel_messages.conf).
#include "src/base/error.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/kernel_log.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

std::function<CheckResult(const CheckContext&)> kernel_log(const std::string& check) {
  return [check](const CheckContext& context) {
    if (context.kernel_log)
      return judge_kernel_events(
          find_kernel_events(context.kernel_log->text, kernel_messages(), check),
          printable(context.kernel_log->origin), context.node);
    const KernelLogRead read = read_kernel_log(context.sysroot);
    if (!read.problem.empty())
      return skipped(read.problem, read.evidence, read.fix);
    return judge_kernel_events(find_kernel_events(read.log.text, kernel_messages(), check),
                               read.log.origin, context.node);
  };
}

} // namespace shmemctl::doctor
