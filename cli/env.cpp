// `shmemctl env`: every option, its value, its origin, and whether it is valid.
#include <iostream>

#include "cli/node_job.h"
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/describe_env.h"
#include "src/base/text.h"
#include "src/instruments/doctor/support.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/transport_choice.h"

namespace shmemctl {

namespace {

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : printable(text);
}

void print_foreign(const EnvDescription& env, const TextStyle& style) {
  if (env.foreign.empty())
    return;
  std::cout << "\nSet for other libraries:\n";
  Table table({{"variable"}, {"value"}, {"what it does here"}});
  for (const ForeignVariable& variable : env.foreign)
    table.add({printable(variable.name), or_dash(variable.value), variable.meaning});
  std::cout << table.text(style);
}

void print_known_foreign(const TextStyle& style) {
  std::cout << "\nVariables of other libraries that affect what shmemctl shows:\n";
  Table table({{"variable"}, {"what it does here"}});
  for (const OptionSpec& spec : option_table())
    if (spec.nvshmem_alias)
      table.add({"NVSHMEM_" + spec.name, "read as SHMEMCTL_" + spec.name});
  for (const auto& [name, meaning] : foreign_variable_table())
    table.add({name, meaning});
  std::cout << table.text(style);
}

/// What BOOTSTRAP=auto looks for, in order, and which bootstrap it selects here.
void print_bootstraps(const Options& options, const Environment& environment,
                      const TextStyle& style) {
  std::string chosen, outcome;
  try {
    const BootstrapChoice choice = choose_bootstrap(options, environment);
    chosen = choice.name;
    outcome = choice.name + " (" + printable(choice.reason) + ")";
  } catch (const Error& error) {
    outcome = "none: " + error.message() + "; " + error.fix();
  }
  std::cout
      << "\nBootstrap: the first that applies is used unless SHMEMCTL_BOOTSTRAP selects one:\n";
  Table table({{""}, {"bootstrap"}, {"looks for"}});
  for (const BootstrapRule& rule : bootstrap_rules())
    table.add({rule.name == chosen ? "*" : "", rule.name, rule.looks_for});
  std::cout << table.text(style) << "here: " << outcome << "\n";
}

/// What REMOTE_TRANSPORT=auto tries, in order, and the result here. Each transport is tried in a
/// child process, because a broken library may crash it.
void print_transports(const Options& options, const TextStyle& style) {
  constexpr std::chrono::seconds deadline{10};
  std::cout << "\nRemote transport: the first that reaches all PEs is used unless "
               "SHMEMCTL_REMOTE_TRANSPORT or SHMEMCTL_TRANSPORT selects others:\n";
  Table table({{"transport"}, {"here"}});
  for (const std::string& name : remote_candidates()) {
    const doctor::ChildOutput answer = doctor::call_in_child(
        [&] {
          try {
            const Reach reach = reach_of_twin(name, options);
            return (reach.capabilities != 0 ? "usable: " : "not usable: ") + reach.reason;
          } catch (const Error& error) {
            return "not usable: " + error.message();
          }
        },
        "the transport " + name, deadline);
    table.add({name, printable(answer.problem.empty() ? answer.text : answer.problem)});
  }
  std::cout << table.text(style);
}

void print_config_files(const Context& context) {
  if (!context.config_files.empty())
    std::cout << "\nConfiguration files: " << printable(join(context.config_files, ", ")) << "\n";
}

std::vector<OptionEntry> option_entries(const EnvDescription& env, bool only_set) {
  std::vector<OptionEntry> entries;
  for (const OptionRow& row : env.options)
    if (!only_set || row.origin != to_string(OptionOrigin::default_value))
      entries.push_back({"SHMEMCTL_" + row.name, row.value, row.origin, row.origin_name,
                         row.default_value, row.type, row.doc, row.problem});
  return entries;
}

} // namespace

void add_env(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "env", "Show every option: value, origin, default, and whether it is valid");
  command->footer("The first of these that sets an option counts: command line, "
                  "SHMEMCTL_<NAME>,\nNVSHMEM_<NAME> (if NVSHMEM has that variable), configuration "
                  "files, default.\nConfiguration files are /etc/shmemctl.conf and "
                  "$XDG_CONFIG_HOME/shmemctl.conf (without that\nvariable in ~/.config), of which "
                  "the second one wins; --config FILE replaces both.\n"
                  "Examples:\n"
                  "  shmemctl env --changed\n"
                  "  SHMEMCTL_POLICY=nccl shmemctl env");
  auto all = std::make_shared<bool>(false);
  auto changed = std::make_shared<bool>(false);
  command->add_flag("--all", *all,
                    "Also list the variables of other libraries that affect what shmemctl shows, "
                    "whether or not they are set (no effect with --changed)");
  command->add_flag("--changed", *changed, "List only what is set, and what is wrong with it");
  add_mapping_flags(*command, context);
  add_option(*command, context, "SYSROOT");
  command->callback([&context, all, changed] {
    context.shows_environment = true;
    context.run = [all, changed](Context& run_context) {
      return once_per_job(run_context, [&](Session& session, const Options& options) {
        const EnvDescription env = describe_environment(options, run_context.environment);
        session.report().options = option_entries(env, *changed);
        session.report().findings = env.findings;
        const ExitCode code = session.finish();
        if (session.wants_text()) {
          const TextStyle style = text_style(run_context, options);
          if (*changed && session.report().options.empty())
            std::cout << "No option is set.\n";
          print_foreign(env, style);
          print_config_files(run_context);
          if (*changed)
            return code;
          print_bootstraps(options, run_context.environment, style);
          print_transports(options, style);
          if (*all)
            print_known_foreign(style);
        }
        return code;
      });
    };
  });
}

} // namespace shmemctl
