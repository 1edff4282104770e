// `shmemctl doctor`: checks the prerequisites of one-sided GPU communication on this node.
#include <iostream>

#include "cli/node_job.h"
#include "reports/table.h"
#include "src/instruments/doctor/doctor.h"

namespace shmemctl {

namespace {

struct DoctorFlags {
  std::vector<std::string> only, skip;
  bool list = false;
};

ExitCode list_checks() {
  Table table({{"check"}, {"group"}, {"what it checks"}});
  for (const Check& check : all_checks())
    table.add({check.id, check.group, check.title});
  std::cout << table.text(TextStyle{});
  return ExitCode::ok;
}

} // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check the prerequisites: drivers, libraries, limits, ports, GIDs, links, GPUDirect");
  command->footer("Examples:\n"
                  "  shmemctl doctor\n"
                  "  shmemctl doctor --only rdma,memlock --verbose\n"
                  "  shmemctl doctor --sysroot copy-of-a-node --json doctor.json");
  auto flags = std::make_shared<DoctorFlags>();
  add_option(*command, context, "SYSROOT");
  command->add_flag("--list", flags->list, "List all checks and exit");
  command->add_option("--only", flags->only, "Run only these checks or groups (comma-separated)")
      ->delimiter(',')
      ->type_name("ID");
  command->add_option("--skip", flags->skip, "Skip these checks or groups (comma-separated)")
      ->delimiter(',')
      ->type_name("ID");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      if (flags->list)
        return list_checks();
      return with_node_session(run_context, true, [&](Session& session, const Options&) {
        const NodeSource source = session.load({});
        run_doctor(session, source, run_context.environment, flags->only, flags->skip);
        return session.finish();
      });
    };
  });
}

} // namespace shmemctl
