// `shmemctl check`: the node's acceptance test.
#include "cli/session.h"

namespace shmemctl {

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("check", "The node's acceptance test: topo and doctor");
  command->footer("Example: shmemctl check --json check.json");
  add_option(*command, context, "SYSROOT");
  add_mapping_flags(*command, context);
  command->callback([&context] {
    context.run = [](Context& run_context) {
      return with_session(run_context, [&](Session& session, const Options& options) {
        const NodeSource source = session.load({});
        run_topo(session, options, source);
        run_doctor(session, source, run_context.environment, {}, {});
        return session.finish();
      });
    };
  });
}

} // namespace shmemctl
