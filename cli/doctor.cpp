// `shmemctl doctor`: checks the prerequisites of one-sided GPU communication on this node.
#include <iostream>
#include <memory>

#include "cli/host_comparison.h"
#include "cli/node_job.h"
#include "reports/table.h"
#include "src/base/input.h"
#include "src/instruments/doctor/doctor.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

struct DoctorFlags {
  std::vector<std::string> only, skip;
  std::string golden;     ///< --against
  std::string kernel_log; ///< a file
  std::string python;     ///< an interpreter or an environment
  bool list = false;
  std::shared_ptr<SourceFlags> source = std::make_shared<SourceFlags>();
};

ExitCode list_checks() {
  Table table({{"check"}, {"group"}, {"what it checks"}});
  for (const Check& check : all_checks())
    table.add({check.id, check.group, check.title});
  std::cout << table.text(TextStyle{});
  return ExitCode::ok;
}

ExitCode diagnose(Context& context, const DoctorFlags& flags) {
  HostComparison hosts(flags.golden);
  // with several processes, PE 0 compares the hosts when all have reported
  const bool alone = launched_size(context.environment) <= 1;
  return with_node_session(
      context, flags.source->from.empty(),
      [&](Session& session, const Options&) {
        if (alone && hosts.has_golden()) {
          session.phase("reading " + flags.golden);
          hosts.read_golden();
        }
        const NodeSource source = session.load(*flags.source);
        require_files(source, *flags.source);
        if (!flags.python.empty())
          require_python(*source.sysroot, flags.python);
        KernelLogText kernel_log;
        if (!flags.kernel_log.empty()) {
          session.phase("reading " + flags.kernel_log);
          kernel_log = {flags.kernel_log, read_input(flags.kernel_log)};
        }
        run_doctor(session, source, context.environment, flags.only, flags.skip,
                   flags.kernel_log.empty() ? nullptr : &kernel_log, flags.python);
        if (alone)
          hosts.judge_own(session.report());
        return session.finish();
      },
      &hosts);
}

} // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check the prerequisites: drivers, libraries, limits, ports, GIDs, links, GPUDirect");
  command->footer("Examples:\n"
                  "  shmemctl doctor\n"
                  "  shmemctl doctor --only rdma,memlock --verbose\n"
                  "  shmemctl doctor --sysroot copy-of-a-node --json doctor.json\n"
                  "  shmemctl doctor --from node.tar.zst\n"
                  "  shmemctl doctor --against golden.json\n"
                  "  shmemctl doctor --only kernel-log --kernel-log /var/log/kern.log\n"
                  "  shmemctl doctor --only software --python /opt/venv\n"
                  "  mpirun -n 64 --map-by ppr:1:node shmemctl doctor");
  auto flags = std::make_shared<DoctorFlags>();
  add_archive_flags(*command, context, flags->source);
  command->add_flag("--list", flags->list, "List all checks and their groups, and exit");
  command
      ->add_option("--only", flags->only,
                   "Run only these checks or groups, which --list shows (comma-separated)")
      ->delimiter(',')
      ->type_name("ID");
  command
      ->add_option("--skip", flags->skip,
                   "Skip these checks or groups, which --list shows (comma-separated)")
      ->delimiter(',')
      ->type_name("ID");
  command
      ->add_option("--against", flags->golden,
                   "Compare each host with that of this report, which doctor wrote on a node known "
                   "to be good; each difference is a warning (default: compare the hosts of a job "
                   "with one another)")
      ->type_name("FILE");
  command
      ->add_option("--kernel-log", flags->kernel_log,
                   "Read the kernel's messages from this file instead of /dev/kmsg: the output of "
                   "dmesg or journalctl -k, or a syslog file; - is stdin")
      ->type_name("FILE");
  command
      ->add_option("--python", flags->python,
                   "Python environment whose packages are checked: an interpreter, the folder of "
                   "an environment, or its site-packages (default: the active one, as VIRTUAL_ENV "
                   "or CONDA_PREFIX names it)")
      ->type_name("PATH");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      if (flags->list)
        return list_checks();
      return diagnose(run_context, *flags);
    };
  });
}

} // namespace shmemctl
